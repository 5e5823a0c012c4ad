"""The unit file: systemd takes it, and finds little that it could do."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.harness.project_files import ROOT

UNIT = ROOT / "deploy" / "systemd" / "wirebroker.service"

pytestmark = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here"
)


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["systemd-analyze", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def unit(tmp_path):
    """Return the unit with the program that is here."""
    program = str(Path(sys.executable).parent / "wirebroker")
    file = tmp_path / UNIT.name
    file.write_text(UNIT.read_text().replace("/opt/wirebroker/bin/wirebroker", program))
    return str(file)


def test_systemd_understands_every_line(unit):
    done = analyze("verify", "--man=no", "--recursive-errors=no", unit)
    assert (done.returncode, done.stderr) == (0, "")


def test_unit_has_a_low_systemd_exposure_level(unit):
    result = analyze("security", "--offline=true", "--no-pager", unit)
    if "unrecognized option" in result.stderr:
        pytest.skip("this systemd-analyze can't look at files")
    match = re.search(r"Overall exposure level for \S+: ([0-9.]+)", result.stdout)
    assert match is not None, result.stderr
    assert float(match[1]) <= 2.0
