"""Releases: the version's text, and the Python versions of compiled wheels."""

from __future__ import annotations

import sys
import sysconfig
from typing import TYPE_CHECKING

import pytest

from compiling.release.changelog import check_changelog
from compiling.release.interpreters import interpreters
from tests.support.harness.project_files import ROOT
from wirebroker import __version__

if TYPE_CHECKING:
    from pathlib import Path


def test_changelog_starts_with_the_current_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert check_changelog(text, __version__, final=False)


def test_changelog_section_ends_at_the_next_heading():
    text = "# Changes\n\n## 0.2.0 (2026-12-01)\nNew.\n\n## 0.1.0 (2026-11-01)\nOld.\n"
    assert check_changelog(text, "0.2.0", final=True) == "New."


@pytest.mark.parametrize(
    ("text", "final", "complaint"),
    [
        pytest.param("# Changes\n", False, "no heading", id="no-version"),
        pytest.param("## 0.1.0 (2026-11-01)\nOld.\n", False, "starts with 0.1.0", id="older"),
        pytest.param("## 0.2.0 (unreleased)\nNew.\n", True, "needs its date", id="no-date"),
        pytest.param("## 0.2.0\nNew.\n", True, "needs its date", id="nothing-instead-of-a-date"),
        pytest.param(
            "## 0.2.0 (unreleased)\n\n## 0.1.0\nOld.\n", False, "does not describe", id="empty"
        ),
    ],
)
def test_a_changelog_that_lags_behind_is_refused(text, final, complaint):
    with pytest.raises(ValueError, match=complaint):
        check_changelog(text, "0.2.0", final=final)


def fake_python(folder: Path, name: str, prints: str, status: int = 0) -> None:
    command = folder / name
    command.write_text(f"#!/bin/sh\necho '{prints}'\nexit {status}\n", encoding="ascii")
    command.chmod(0o755)


@pytest.mark.skipif(sys.platform == "win32", reason="writes shell scripts")
def test_pythons_of_each_abi_are_found_once(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        fake_python(folder, "python3.98", "cpython 3 98 1 cpython-398-somewhere")
    fake_python(first, "python3.10", "cpython 3 10 9 cpython-310-somewhere")
    fake_python(first, "python3.97", "pypy 3 97 0 pypy397")
    fake_python(first, "python3.96", "cpython 3 96 0 cpython-396-somewhere", status=1)
    fake_python(first, "python3.99-config", "cpython 3 99 0 cpython-399-somewhere")
    pythons = interpreters([first, second, tmp_path / "not-there"])
    assert [python.path for python in pythons if python.version >= (3, 90, 0)] == [
        first / "python3.98"
    ]
    assert not [python for python in pythons if python.version < (3, 11, 0)]
    own = [python for python in pythons if python.abi == sysconfig.get_config_var("SOABI")]
    assert [python.version for python in own] == [tuple(sys.version_info[:3])] * len(own)
