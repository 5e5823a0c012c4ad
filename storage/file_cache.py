"""The bound on open data files, by the clock algorithm: a recent use spares a file once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wirebroker.storage.descriptors import Descriptor


class CachedFile:
    """A file whose descriptor the cache may drop; a local variable keeps it open during a use."""

    __slots__ = ("__weakref__", "descriptor", "is_recent")

    def __init__(self) -> None:
        self.descriptor: Descriptor | None = None
        self.is_recent = False  # used since its last turn


class FileCache:
    """All open files, in the order of their next turn."""

    __slots__ = ("_files", "_lock", "max_open_files", "renaming")

    def __init__(self, max_open_files: int) -> None:
        assert max_open_files > 0
        self.max_open_files = max_open_files
        self._files: OrderedDict[CachedFile, None] = OrderedDict()
        self._lock = threading.Lock()
        self.renaming = threading.Lock()  # held while a file's path and its name on disk may differ

    def __len__(self) -> int:
        return len(self._files)

    def admit(self, file: CachedFile) -> None:
        """Add an opened file, and close others to stay within the bound."""
        with self._lock:
            self._files.pop(file, None)
            while len(self._files) >= self.max_open_files:
                candidate, _ = self._files.popitem(last=False)
                if candidate.is_recent:
                    candidate.is_recent = False
                    self._files[candidate] = None
                else:
                    candidate.descriptor = None
            self._files[file] = None
            file.is_recent = False  # so that it closes early if used only once

    def close(self, file: CachedFile) -> None:
        """Close a file if it is open."""
        with self._lock:
            self._files.pop(file, None)
            file.descriptor = None

    def forget(self, file: CachedFile) -> None:
        """Remove a file from the cache; it closes with its last user."""
        with self._lock:
            self._files.pop(file, None)

    def close_all(self) -> None:
        """Close every file."""
        for file in self.open_files():
            self.close(file)

    def open_files(self) -> list[CachedFile]:
        """Return the open files; safe in a thread."""
        with self._lock:
            return list(self._files)
