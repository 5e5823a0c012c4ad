"""The same requests to either broker result in the same files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.twin.agreed import Agreed
from compat_tests.twin.comparing import Comparison, compare, compare_lines
from compat_tests.twin.running import run_twins

if TYPE_CHECKING:
    from pathlib import Path

NO_FILES: dict[str, list[str]] = {}


@pytest.mark.java
def test_both_brokers_leave_the_same_directory_but_for_what_is_agreed_on(tmp_path: Path) -> None:
    comparison = compare(*run_twins(tmp_path))
    assert comparison.file_count > 100
    assert comparison.is_good, "\n".join(comparison.report())


def compared(theirs: dict[str, list[str]], ours: dict[str, list[str]]) -> Comparison:
    table = [Agreed("known", "- only theirs", "a reason"), Agreed("lock", r"\+ PRESENT", "another")]
    return compare_lines(theirs, ours, table)


def test_equal_files_are_not_told_and_idle_rows_are() -> None:
    comparison = compared({"a": ["x"]}, {"a": ["x"]})
    assert (comparison.unexplained, len(comparison.idle)) == ([], 2)
    assert not comparison.is_good


def test_agreed_differences_are_counted_by_their_rows() -> None:
    theirs = {"known": ["same", "only theirs"]}
    comparison = compared(theirs, {"known": ["same"], "lock": []})
    assert comparison.is_good
    assert "agreed, 1 lines in known: a reason" in comparison.report()


def test_any_other_line_and_any_other_file_is_a_difference() -> None:
    comparison = compared({"known": ["other"], "b": []}, {"known": []})
    assert comparison.unexplained == [("b", "- PRESENT"), ("known", "- other")]
    assert list(comparison.report())[-2:] == ["DIFFERENT: known", "    - other"]
