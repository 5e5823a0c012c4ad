"""Requests to the kernel to read ahead of a file's reader, by 4 to 8 MiB.

The kernel's own read-ahead takes more than twice the CPU time.
"""

from __future__ import annotations

from typing import Final, Protocol

STEP_BYTES: Final = 4 << 20


class AdvisedFile(Protocol):
    """A file that accepts requests, such as storage.files.DataFile."""

    def expect(self, position: int, length: int) -> None:
        """Request a range."""


class ReadAhead:
    """Requests for one reader of a file, from a position to an end."""

    __slots__ = ("_end", "_file", "_requested_end")

    def __init__(self, file: AdvisedFile, position: int, end: int) -> None:
        self._file = file
        self._requested_end = position
        self._end = end

    def reached(self, position: int) -> None:
        """Request more if the reader is near the end of the requested part."""
        while self._requested_end < min(position + STEP_BYTES + 1, self._end):
            length = min(STEP_BYTES, self._end - self._requested_end)
            self._file.expect(self._requested_end, length)
            self._requested_end += length
