"""Which tests each run excludes, and that the named exclusions exist."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

import conftest
from tests.support.harness.scheduling import APART, TOGETHER

_ROOT = Path(__file__).resolve().parents[3]


def item(*names):
    return SimpleNamespace(iter_markers=lambda: [SimpleNamespace(name=name) for name in names])


@pytest.mark.parametrize(
    ("asked", "left"), [((), 1), (("long",), 2), (("long", "nightly"), 4)], ids=str
)
def test_long_and_nightly_tests_run_when_they_are_asked_for(asked, left):
    deselected_items = []

    def deselected(*, items):
        deselected_items.extend(items)

    config = SimpleNamespace(
        getoption=lambda name: name in asked, hook=SimpleNamespace(pytest_deselected=deselected)
    )
    items = [item("java"), item("long"), item("nightly", "java"), item("long", "nightly")]
    conftest.pytest_collection_modifyitems(config, items)  # type: ignore[arg-type]  # so much
    assert (len(items), len(deselected_items)) == (left, 4 - left)


def test_paths_excluded_from_the_compiled_run_exist():
    makefile = (_ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", "")
    left_out = re.findall(r"\$\(addprefix --ignore=(\S+/),([^)]+)\)", makefile)
    paths = [folder + name for folder, names in left_out for name in names.split()]
    assert len(paths) > 10
    assert [path for path in paths if not (_ROOT / path).exists()] == []


def test_paths_in_the_scheduling_tables_exist():
    assert [path for path in (*APART, *TOGETHER) if not (_ROOT / path).is_file()] == []


def test_subprocesses_of_tests_use_compiled_modules(tmp_path):
    """Otherwise each broker and verb would recompile its modules: half its CPU time."""
    lines = (_ROOT / "Makefile").read_text(encoding="utf-8").splitlines()
    switch = [line for line in lines if "BYTECODE" in line]
    (tmp_path / "Makefile").write_text("\n".join([*switch, "show:", "\t@env"]))
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        ["make", "show"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert "PATH=" in done.stdout
    assert "PYTHONDONTWRITEBYTECODE" not in done.stdout
