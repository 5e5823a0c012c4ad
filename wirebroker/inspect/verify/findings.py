"""What verify says: how bad, where, what.

error     data or what leads to it is wrong, or a law of the format is broken
warning   the next start mends it, or it may be right for a reason that cannot be seen here
note      worth knowing, nothing is wrong
"""

from __future__ import annotations

import shlex
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from wirebroker.inspect.rows.text_lines import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from wirebroker.inspect.rows.rows import Row

# Of one file; thousands of findings of the same damage tell nothing more.
_MOST_OF_A_FILE = 20
MENDED = "; the next start mends it"


class Severity(Enum):
    """How bad a finding is."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Finding(NamedTuple):
    """One thing that was found; `position` is a byte of the file, `offset` a record's number."""

    severity: Severity
    path: str
    message: str
    position: int | None = None
    offset: int | None = None

    def as_row(self) -> Row:
        """Return it as printers take it."""
        return {"type": "finding", **self._asdict(), "severity": self.severity.value}

    def as_text(self) -> str:
        """Return it as one line."""
        places = (("offset", self.offset), ("byte", self.position))
        where = ", ".join(f"{name} {place}" for name, place in places if place is not None)
        place = f" ({where})" if where else ""
        return f"{self.severity.value:<8} {printable(self.path)}{place}: {printable(self.message)}"


class Tally:
    """What a run found, counted.

    Attributes:
        counts: How many findings of each severity.
        mended_count: How many of them the next start mends.
    """

    __slots__ = ("counts", "mended_count")

    def __init__(self) -> None:
        self.counts = dict.fromkeys(Severity, 0)
        self.mended_count = 0

    def add(self, finding: Finding) -> None:
        """Count one more."""
        self.counts[finding.severity] += 1
        self.mended_count += finding.message.endswith(MENDED)

    def next_step(self, directories: Iterable[str]) -> str | None:
        """Return what to do about it in one sentence; None if nothing needs it."""
        names = shlex.join(directories)
        if self.counts[Severity.ERROR]:
            return (
                "next, with the broker stopped and for want of a good copy: "
                f"wirebroker repair --dry-run {names} tells what a start would mend, "
                f"repair --full {names} cuts each log at its damage, and what follows is lost"
            )
        if self.mended_count:
            return f"next: start the broker, or wirebroker repair {names} without a start"
        return None


class FileReport:
    """Takes the findings of one file.

    Args:
        path: The file's.
        emit: Takes each finding.
        mended_from: Errors at this offset or above are mended by the next start, and so only
            warnings; None if it checks nothing.
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
        """Say what is wrong."""
        severity = Severity.ERROR
        mended_from = self._mended_from
        if offset is not None and mended_from is not None and offset >= mended_from:
            message += MENDED
            severity = Severity.WARNING
        self._add(Finding(severity, self.path, message, position, offset))

    def warning(
        self, message: str, *, position: int | None = None, offset: int | None = None
    ) -> None:
        """Say what may be wrong, or will be mended."""
        self._add(Finding(Severity.WARNING, self.path, message, position, offset))

    def note(self, message: str, *, position: int | None = None, offset: int | None = None) -> None:
        """Say what is worth knowing."""
        self._add(Finding(Severity.NOTE, self.path, message, position, offset))

    def _add(self, finding: Finding) -> None:
        self._left -= 1
        if self._left > 0:
            self._emit(finding)
        elif self._left == 0:
            self._emit(finding._replace(message="more of this file is not told"))
