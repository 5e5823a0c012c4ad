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
@pytest.mark.nightly
def test_directories_of_both_brokers_differ_only_as_agreed(tmp_path: Path) -> None:
    comparison = compare(*run_twins(tmp_path))
    assert comparison.file_count > 100
    assert comparison.is_good, "\n".join(comparison.report())


def compared(
    kafka_lines: dict[str, list[str]], wirebroker_lines: dict[str, list[str]]
) -> Comparison:
    table = [Agreed("known", "- only theirs", "a reason"), Agreed("lock", r"\+ PRESENT", "another")]
    return compare_lines(kafka_lines, wirebroker_lines, table)


def test_report_names_unused_rows_but_no_equal_files() -> None:
    comparison = compared({"a": ["x"]}, {"a": ["x"]})
    assert (comparison.unexplained, len(comparison.idle)) == ([], 2)
    assert not comparison.is_good


def test_agreed_differences_are_counted_per_row() -> None:
    kafka_lines = {"known": ["same", "only theirs"]}
    comparison = compared(kafka_lines, {"known": ["same"], "lock": []})
    assert comparison.is_good
    assert "agreed, 1 lines in known: a reason" in comparison.report()


def test_other_lines_and_files_are_unexplained_differences() -> None:
    comparison = compared({"known": ["other"], "b": []}, {"known": []})
    assert comparison.unexplained == [("b", "- PRESENT"), ("known", "- other")]
    assert list(comparison.report())[-2:] == ["DIFFERENT: known", "    - other"]
