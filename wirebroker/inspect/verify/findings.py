"""Findings of verify: severity, place, message.

- error: data or an index of it is wrong, or the format is violated
- warning: the next start fixes it, or it may be valid for a reason that is not visible here
- note: information
"""

from __future__ import annotations

import shlex
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from wirebroker.inspect.rows.text_lines import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from wirebroker.inspect.rows.rows import Row

# Per file.
_MOST_OF_A_FILE = 20
MENDED = "; the next start fixes it"


class Severity(Enum):
    """Severity of a finding."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Finding(NamedTuple):
    """One finding; `position` is a byte of the file."""

    severity: Severity
    path: str
    message: str
    position: int | None = None
    offset: int | None = None

    def as_row(self) -> Row:
        """Return its row."""
        return {"type": "finding", **self._asdict(), "severity": self.severity.value}

    def as_text(self) -> str:
        """Return its line."""
        coordinates = (("offset", self.offset), ("byte", self.position))
        location = ", ".join(
            f"{name} {number}" for name, number in coordinates if number is not None
        )
        location_text = f" ({location})" if location else ""
        subject = f"{printable(self.path)}{location_text}"
        return f"{self.severity.value:<8} {subject}: {printable(self.message)}"


class Tally:
    """Counts of findings by severity, and of those that the next start fixes."""

    __slots__ = ("counts", "mended_count")

    def __init__(self) -> None:
        self.counts = dict.fromkeys(Severity, 0)
        self.mended_count = 0

    def add(self, finding: Finding) -> None:
        """Count a finding."""
        self.counts[finding.severity] += 1
        self.mended_count += finding.message.endswith(MENDED)

    def next_step(self, directories: Iterable[str]) -> str | None:
        """Return a sentence about what to do, or None."""
        names = shlex.join(directories)
        if self.counts[Severity.ERROR]:
            return (
                "next: restore a good copy, or stop the broker and run wirebroker repair "
                f"--dry-run {names} to see what a start would fix; wirebroker repair --full "
                f"{names} truncates each log at its damage, and records after it are lost"
            )
        if self.mended_count:
            return f"next: start the broker, or run wirebroker repair {names}"
        return None


class FileReport:
    """Takes the findings of one file.

    The next start fixes errors from offset `mended_from` on, so they become warnings.
    """

    __slots__ = ("_emit", "_left", "_mended_from", "path")

    def __init__(
        self, path: str, emit: Callable[[Finding], None], *, mended_from: int | None = None
    ) -> None:
        self.path = path
        self._mended_from = mended_from
        self._emit = emit
        self._left = _MOST_OF_A_FILE

    def error(
        self, message: str, *, position: int | None = None, offset: int | None = None
    ) -> None:
        """Report an error."""
        severity = Severity.ERROR
        mended_from = self._mended_from
        if offset is not None and mended_from is not None and offset >= mended_from:
            message += MENDED
            severity = Severity.WARNING
        self._add(Finding(severity, self.path, message, position, offset))

    def warning(
        self, message: str, *, position: int | None = None, offset: int | None = None
    ) -> None:
        """Report a warning."""
        self._add(Finding(Severity.WARNING, self.path, message, position, offset))

    def note(self, message: str, *, position: int | None = None, offset: int | None = None) -> None:
        """Report a note."""
        self._add(Finding(Severity.NOTE, self.path, message, position, offset))

    def _add(self, finding: Finding) -> None:
        self._left -= 1
        if self._left > 0:
            self._emit(finding)
        elif self._left == 0:
            self._emit(finding._replace(message="further findings of this file are not shown"))
