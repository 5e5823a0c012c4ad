"""A file system for storage code whose changes stay in memory."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from wirebroker.inspect.views.read_only_files import ReadOnlyFiles
from wirebroker.storage.descriptors import DirectoryLock
from wirebroker.storage.files import DataFile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.inspect.views.journal import Journal
    from wirebroker.storage.file_cache import FileCache
    from wirebroker.storage.files import Buffer


class _Contents:
    """Contents of a file: `kept` bytes from the disk, then `added`."""

    __slots__ = ("added", "disk", "kept")

    def __init__(self, disk: DataFile | None = None) -> None:
        self.disk = disk
        self.kept = 0 if disk is None else disk.size()
        self.added = bytearray()

    def size(self) -> int:
        return self.kept + len(self.added)

    def read(self, position: int, length: int) -> bytes:
        end = min(position + length, self.size())
        data = b""
        if position < self.kept and self.disk is not None:
            data = self.disk.read_at(position, min(end, self.kept) - position)
        if end > self.kept:
            data += self.added[max(position - self.kept, 0) : end - self.kept]
        return data

    def write(self, position: int, data: bytes) -> None:
        if position < self.kept and self.disk is not None:
            self.added[:0] = self.disk.read_at(position, self.kept - position)
            self.kept = position
        start = position - self.kept
        self.added.extend(bytes(max(0, start - len(self.added))))
        self.added[start : start + len(data)] = data

    def truncate(self, length: int) -> None:
        del self.added[max(0, length - self.kept) :]
        self.kept = min(self.kept, length)


class OverlayFiles(ReadOnlyFiles):
    """Files with changes in memory; `journal` records each path before a change."""

    __slots__ = ("_changed", "_created_directories", "_journal", "_names", "_originals")

    def __init__(self, journal: Journal | None = None) -> None:
        super().__init__()
        self._changed: dict[str, _Contents | None] = {}
        self._names: dict[str, set[str]] = {}  # names in _changed, by folder
        self._originals: dict[str, _Contents] = {}  # unchanged files, with their size at first use
        self._created_directories: set[str] = set()  # directories
        self._journal = journal

    def contents(self, path: str) -> _Contents | None:
        """Return a file's contents, or None without a file."""
        if path in self._changed:
            return self._changed[path]
        contents = self._originals.get(path)
        if contents is None and self.is_file(path):
            contents = self._originals[path] = _Contents(super().data(path))
        return contents

    def changing(self, path: str) -> None:
        """Record a state before a change."""
        if self._journal is not None:
            self._journal.note(self, path)

    def was_read(self, path: str, count: int) -> None:
        """Count read bytes."""
        if self._journal is not None:
            self._journal.note_read(path, count)

    def own(self, path: str) -> _Contents:
        """Return changeable contents, which may be new."""
        self.changing(path)
        contents = self.contents(path) or _Contents()
        self._put(path, contents)
        return contents

    def _put(self, path: str, contents: _Contents | None) -> None:
        self._changed[path] = contents
        folder, _, name = path.rpartition("/")
        self._names.setdefault(folder, set()).add(name)

    def data(self, path: str) -> DataFile:
        """Return a file."""
        return _OverlayFile(self, self._cache, path)

    def exists(self, path: str) -> bool:
        """Return whether a path exists."""
        if path in self._changed:
            return self._changed[path] is not None
        return path in self._created_directories or super().exists(path)

    def list_directory(self, path: str) -> list[str]:
        """Return the names in a directory."""
        names = set(super().list_directory(path)) if super().exists(path) else set[str]()
        for name in self._names.get(path, ()):
            is_gone = self._changed[f"{path}/{name}"] is None
            (names.discard if is_gone else names.add)(name)
        names |= {
            directory.rpartition("/")[2]
            for directory in self._created_directories
            if directory.rpartition("/")[0] == path
        }
        return list(names)

    def list_by_kind(self, path: str) -> tuple[list[str], list[str]]:
        """Return the names of regular files, and the others."""
        regular, others = super().list_by_kind(path) if super().exists(path) else ([], [])
        changed = {name: self._changed[f"{path}/{name}"] for name in self._names.get(path, ())}
        existing = {name for name, contents in changed.items() if contents is not None}
        others = [name for name in others if name not in changed]
        return [*(name for name in regular if name not in changed), *existing], others

    def make_directory(self, path: str) -> None:
        """Create a directory."""
        if not super().exists(path):
            self._created_directories.add(path)

    def read_file(self, path: str) -> bytes:
        """Return a file's contents."""
        contents = self.contents(path)
        if contents is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return contents.read(0, contents.size())

    def write_file(self, path: str, content: Buffer, *, sync: bool = True) -> None:
        """Replace a file."""
        del sync
        self.changing(path)
        contents = _Contents()
        contents.added += content
        self._put(path, contents)

    def rename(self, old_path: str, new_path: str) -> None:
        """Rename a file."""
        contents = self.contents(old_path)
        if contents is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), old_path)
        self.changing(old_path)
        self.changing(new_path)
        self._put(new_path, contents)
        self._put(old_path, None)

    def unlink(self, path: str) -> None:
        """Remove a file if it exists."""
        if self.contents(path) is not None:
            self.changing(path)
            self._put(path, None)

    def sync_directory(self, path: str) -> None:
        """Do nothing."""

    def lock_directory(self, path: str) -> DirectoryLock:
        """Return a lock without effect."""
        return _NoLock()

    def modified_ms(self, path: str) -> int:
        """Return the time of the last write on disk; 0 for a file in memory."""
        try:
            return super().modified_ms(path)
        except FileNotFoundError:
            return 0


class _OverlayFile(DataFile):
    """A file with changes in memory, which keeps its contents after a rename."""

    __slots__ = ("_files",)

    def __init__(self, files: OverlayFiles, cache: FileCache, path: str) -> None:
        super().__init__(cache, path)
        self._files = files

    def size(self) -> int:
        contents = self._files.contents(self.path)
        return 0 if contents is None else contents.size()

    def create(self) -> None:
        if self._files.contents(self.path) is None:
            self._files.own(self.path)

    def reserve(self, length: int) -> None:
        del length  # opening a log appends nothing
        self.create()

    def write_at(self, position: int, buffers: Buffer | Sequence[Buffer]) -> None:
        parts = [buffers] if isinstance(buffers, bytes | bytearray | memoryview) else buffers
        self._files.own(self.path).write(position, b"".join(parts))

    def read_at(self, position: int, length: int) -> bytes:
        contents = self._files.contents(self.path)
        if contents is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self.path)
        self._files.was_read(self.path, length)
        return contents.read(position, length)

    def truncate(self, length: int) -> None:
        assert length <= self.size(), "truncation never lengthens a file"
        contents = self._files.contents(self.path)
        if contents is None or contents.size() != length:
            self._files.own(self.path).truncate(length)

    def sync(self) -> None:
        """Do nothing."""

    def rename(self, new_path: str) -> None:
        self._files.rename(self.path, new_path)
        self.path = new_path

    def unlink(self) -> None:
        self._files.unlink(self.path)


class _NoLock(DirectoryLock):
    __slots__ = ()

    def __init__(self) -> None:
        self._descriptor = None
        self._path = ""
