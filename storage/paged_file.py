"""A data file that is opened when needed, and the pages of it in the page cache.

A descriptor closes when its last user releases it, so a thread may warm or sync a file while the
event loop closes, renames or evicts it.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from wirebroker.storage.descriptors import Descriptor
from wirebroker.storage.file_cache import CachedFile
from wirebroker.storage.system_calls import (
    OPENED,
    cool,
    expect,
    open_ahead,
    preadv,
    read_no_further,
    warm,
)

if TYPE_CHECKING:
    from wirebroker.storage.file_cache import FileCache

_RWF_NOWAIT: int = getattr(os, "RWF_NOWAIT", 0)
# From file systems without RWF_NOWAIT.
_UNKNOWN_FLAG = frozenset({errno.EOPNOTSUPP, errno.EINVAL})
_probe_byte = bytearray(1)


class PagedFile(CachedFile):
    """A file with a name, a descriptor while it is open, and pages in the page cache."""

    __slots__ = ("_cache", "_reports_residency", "path")

    def __init__(self, cache: FileCache, path: str) -> None:
        super().__init__()
        self._cache = cache
        # False once the file system (tmpfs) has refused.
        self._reports_residency = True
        self.path = path

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.path!r})"

    def held(self) -> Descriptor:
        """Return the descriptor, which stays open while the caller holds it."""
        return self.descriptor or self._open()

    def close(self) -> None:
        """Release the descriptor; the next use opens the file again."""
        self._cache.close(self)

    def rename(self, new_path: str) -> None:
        """Rename the file; concurrent users find it at any time."""
        with self._cache.renaming:
            os.rename(self.path, new_path)
            self.path = new_path

    def remove(self) -> None:
        """Remove the file permanently; slices in flight can still be sent."""
        if self.descriptor is None:
            with suppress(FileNotFoundError):
                self._open()
        self._cache.forget(self)
        with suppress(FileNotFoundError):
            os.unlink(self.path)

    def free_gradually(self) -> None:
        """Remove the file from the cache; it closes with its last user."""
        self._cache.forget(self)

    def is_resident(self, position: int, length: int = 1) -> bool:
        """Return whether a range is in the page cache, or the file system cannot report it.

        Never blocks. Readahead loads pages in order, so the first and the last byte are checked.
        """
        self.is_recent = True
        descriptor = self.descriptor or self._open()
        if self._reports_residency:
            try:
                preadv(descriptor.number, (_probe_byte,), position, _RWF_NOWAIT)
                if length > 1:
                    preadv(descriptor.number, (_probe_byte,), position + length - 1, _RWF_NOWAIT)
            except BlockingIOError:
                return False
            except OSError as error:
                self._note_unknown_flag(error)
        return True

    def read_cached(self, position: int, memory: memoryview) -> int:
        """Fill `memory` as far as cached, without blocking; return the number of bytes read.

        If the file system cannot report that, the range is read anyway.
        """
        self.is_recent = True
        descriptor = self.descriptor or self._open()
        if self._reports_residency:
            try:
                return preadv(descriptor.number, (memory,), position, _RWF_NOWAIT)
            except BlockingIOError:
                return 0
            except OSError as error:
                self._note_unknown_flag(error)
        return preadv(descriptor.number, (memory,), position)

    def _note_unknown_flag(self, error: OSError) -> None:
        if error.errno not in _UNKNOWN_FLAG:
            raise error
        self._reports_residency = False

    def warm(self, position: int, length: int) -> None:
        """Read a range into the page cache. Blocks. See open_ahead."""
        warm_by(self.ahead() or self.held(), position, length)

    def ahead(self, own: Descriptor | None = None) -> Descriptor | None:
        """Return a descriptor for reading ahead in a thread; `own` is an earlier one."""
        if own is not None:
            read_no_further(self.held().number)
            return own
        number = open_ahead(self.path, self.held().number)
        return None if number is None else Descriptor(number)

    def expect(self, position: int, length: int) -> None:
        """See system_calls.expect."""
        expect(self.held().number, position, length)

    def cool(self, position: int, length: int) -> None:
        """See system_calls.cool."""
        cool(self.held().number, position, length)

    def _open(self, flags: int = 0) -> Descriptor:
        flags |= os.O_RDWR | OPENED
        path = self.path
        try:
            descriptor = Descriptor(os.open(path, flags, 0o644))
        except FileNotFoundError:
            descriptor = None
        if descriptor is None or path != self.path:
            # Its old name may now be another file's.
            with self._cache.renaming:
                descriptor = Descriptor(os.open(self.path, flags, 0o644))
        self.descriptor = descriptor
        self._cache.admit(self)
        return descriptor


def warm_by(descriptor: Descriptor, position: int, length: int) -> None:
    """See PagedFile.warm; the descriptor is from PagedFile.ahead."""
    warm(descriptor.number, position, length)
