"""Run the tests of each project in examples/ with pytest in its folder, as its author would."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support.harness.project_files import ROOT
from tests.support.tools import tools

EXAMPLES = ROOT / "examples"
# Packages that conflict with the tests' own: another version of confluent-kafka.
APART = {"sensors": ("quixstreams", "quixstreams>=3.28,<4")}
WITH_SPARK = "streams"  # spark_it/guide/test_example_streams.py runs it
PROJECTS = ("notifications", "orders", "payments", "sensors")


def test_each_example_has_tests():
    folders = {path.parent.name for path in EXAMPLES.glob("*/test_*.py")}
    assert folders == {*PROJECTS, WITH_SPARK}


@pytest.mark.nightly
@pytest.mark.timeout(600)
@pytest.mark.parametrize("project", PROJECTS)
def test_an_example_passes_its_tests(project):
    outer = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST_")}
    environment = {**outer, "PYTHONDONTWRITEBYTECODE": "1"}
    if project in APART:
        name, package = APART[project]
        folder = tools._installed(name, lambda target: tools._pip_install(package, target))
        environment["PYTHONPATH"] = str(folder)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        command,
        cwd=EXAMPLES / project,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
