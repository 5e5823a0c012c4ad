"""The file of the audit log: each entry is appended and synced before its writer continues."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
from collections import deque
from typing import TYPE_CHECKING, Final

from wirebroker.base.threads import Work, in_thread
from wirebroker.console.audit.audit_entry import line_of

if TYPE_CHECKING:
    from pathlib import Path

    from wirebroker.base.clock import Clock
    from wirebroker.console.audit.audit_entry import AuditEntry

_MODE: Final = 0o600
_MOST_LATE: Final = 200


class AuditError(OSError):
    """An entry that cannot be written; the message says why and what to do."""


class AuditLog:
    """A log in a file, which is opened with the first entry.

    If the file is moved away (log rotation), the next entry begins a new one.
    """

    # laws: _late has at most _MOST_LATE entries

    __slots__ = (
        "_clock",
        "_descriptor",
        "_identity",
        "_is_torn",
        "_late",
        "_lock",
        "_path",
        "_writing",
    )

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._lock = asyncio.Lock()
        self._writing: asyncio.Task[AuditError | None] | None = None
        self._descriptor = -1
        self._identity = (-1, -1)
        # The file does not end with a whole line.
        self._is_torn = False
        self._late: deque[bytes] = deque(maxlen=_MOST_LATE)

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    def open(self) -> None:
        """Open the file, and create it and its folder if they do not exist.

        Raises:
            AuditError: It cannot be opened.
        """
        try:
            self._open()
        except OSError as error:
            raise self._refusal(error) from None

    async def write(self, *entries: AuditEntry) -> None:
        """Append entries and sync the file.

        Raises:
            AuditError: The entries may not be on the disk.
        """
        await self._write(self._lines(entries), is_kept=False)

    async def write_or_keep(self, *entries: AuditEntry) -> None:
        """Append the entries of an event; if that fails, they are kept and written before the next.

        Those of at most 200 events are kept. Entries that were written but not synced are written
        again.

        Raises:
            AuditError: The entries may not be on the disk.
        """
        await self._write(self._lines(entries), is_kept=True)

    async def write_kept(self) -> None:
        """Append the entries that were kept, after the writes that have begun.

        Raises:
            AuditError: They may not be on the disk.
        """
        await self._write(b"", is_kept=False)

    def _lines(self, entries: tuple[AuditEntry, ...]) -> bytes:
        now_ms = self._clock.now_ms()
        return b"".join(line_of(entry, now_ms) for entry in entries)

    async def _write(self, lines: bytes, *, is_kept: bool) -> None:
        async with self._lock:
            if self._writing is not None:
                await asyncio.wait([self._writing])  # it continues if its caller was cancelled
            self._writing = asyncio.create_task(self._written(lines, is_kept=is_kept))
            refusal = await asyncio.shield(self._writing)
        if refusal is not None:
            raise refusal

    async def _written(self, lines: bytes, *, is_kept: bool) -> AuditError | None:
        """Append kept entries and these; return the refusal if that fails."""
        data = b"".join((*self._late, lines))
        if not data:
            return None
        try:
            await in_thread(Work.AUDIT, self._append, data)
        except OSError as error:
            if is_kept:
                self._late.append(lines)
            return self._refusal(error)
        self._late.clear()
        return None

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _refusal(self, error: OSError) -> AuditError:
        reason = error.strerror or str(error)
        return AuditError(
            f"cannot write the audit log {self._path}: {reason.lower()} (make it writable, or start"
            " the console with --audit-log FILE)"
        )

    def _open(self) -> None:
        self.close()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
        self._descriptor = os.open(self._path, flags, _MODE)
        status = os.fstat(self._descriptor)
        if not stat.S_ISREG(status.st_mode):
            self.close()
            raise OSError(errno.EINVAL, "it is not a regular file")
        self._identity = (status.st_dev, status.st_ino)
        size = status.st_size
        self._is_torn = size > 0 and os.pread(self._descriptor, 1, size - 1) != b"\n"

    def _append(self, lines: bytes) -> None:
        if not self._is_current():
            self._open()
        if self._is_torn:
            lines = b"\n" + lines
        self._is_torn = True
        written = 0
        while written < len(lines):
            written += os.write(self._descriptor, lines[written:])
        self._is_torn = False
        os.fsync(self._descriptor)

    def _is_current(self) -> bool:
        """Return whether the open file is still at its path."""
        if self._descriptor < 0:
            return False
        try:
            status = self._path.stat()
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == self._identity
