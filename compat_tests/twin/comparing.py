"""Compare the twins' directories, and separate the agreed differences."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from compat_tests.twin.agreed import AGREED, Agreed
from compat_tests.twin.directory import PRESENT, lines_of_directory

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


class Difference(NamedTuple):
    """A line of one twin only: `-` and Apache Kafka's, or `+` and wirebroker's."""

    file: str
    line: str


class Comparison(NamedTuple):
    """The result.

    Attributes:
        file_count: Number of files in either directory.
        agreed: Number of differences that each row of the table explains.
        unexplained: All other differences.
        idle: Rows of the table that explain none.
    """

    file_count: int
    agreed: Counter[Agreed]
    unexplained: list[Difference]
    idle: list[Agreed]

    @property
    def is_good(self) -> bool:
        return not self.unexplained and not self.idle

    def report(self) -> Iterator[str]:
        yield f"{self.file_count} files compared"
        for row, count in self.agreed.items():
            yield f"agreed, {count} lines in {row.files}: {row.reason}"
        for row in self.idle:
            yield f"IDLE: nothing is explained by {row}"
        last = ""
        for difference in self.unexplained:
            if difference.file != last:
                yield f"DIFFERENT: {difference.file}"
                last = difference.file
            yield f"    {difference.line}"


def compare(apache: Path, wirebroker: Path) -> Comparison:
    return compare_lines(lines_of_directory(apache), lines_of_directory(wirebroker), AGREED)


def compare_lines(
    kafka_lines: dict[str, list[str]],
    wirebroker_lines: dict[str, list[str]],
    table: Sequence[Agreed],
) -> Comparison:
    """Compare the lines of all files, and look up differences in the table of agreed ones."""
    names = sorted(kafka_lines.keys() | wirebroker_lines.keys())
    agreed: Counter[Agreed] = Counter()
    unexplained: list[Difference] = []
    for name in names:
        for line in _differences(kafka_lines.get(name), wirebroker_lines.get(name)):
            row = _row_for(table, name, line)
            if row is None:
                unexplained.append(Difference(name, line))
            else:
                agreed[row] += 1
    idle = [row for row in table if row not in agreed]
    return Comparison(len(names), agreed, unexplained, idle)


def _differences(
    kafka_lines: list[str] | None, wirebroker_lines: list[str] | None
) -> Iterator[str]:
    if kafka_lines is None or wirebroker_lines is None:
        yield f"{'+' if kafka_lines is None else '-'} {PRESENT}"
        return
    for line in difflib.unified_diff(kafka_lines, wirebroker_lines, n=0, lineterm=""):
        if not line.startswith(("---", "+++", "@@")):
            yield f"{line[0]} {line[1:]}"


def _row_for(table: Sequence[Agreed], name: str, line: str) -> Agreed | None:
    for row in table:
        if re.fullmatch(row.files, name) and re.fullmatch(row.line, line, re.DOTALL):
            return row
    return None
