"""The file system with changes that stay in memory: storage code runs over it, the disk stays.

    overlay   path -> contents changed here, or None: gone
    contents  the first bytes of a file on the disk, and bytes added behind them

Cutting and renaming cost nothing; what is written is held in memory (indexes, checkpoints).
"""

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
    """What a file holds: `kept` bytes of one on the disk, then `added`."""

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
    """One directory tree as it would be.

    Args:
        journal: Is told of each path before it changes.
    """

    __slots__ = ("_changed", "_journal", "_made", "_names", "_seen")

    def __init__(self, journal: Journal | None = None) -> None:
        super().__init__()
        self._changed: dict[str, _Contents | None] = {}
        self._names: dict[str, set[str]] = {}  # by folder: those in _changed
        self._seen: dict[str, _Contents] = {}  # not changed; as long as when they were first used
        self._made: set[str] = set()  # directories
        self._journal = journal

    def contents(self, path: str) -> _Contents | None:
        """Return what a file holds, None if there is none."""
        if path in self._changed:
            return self._changed[path]
        seen = self._seen.get(path)
        if seen is None and self.is_file(path):
            seen = self._seen[path] = _Contents(super().data(path))
        return seen

    def changing(self, path: str) -> None:
        """Note that a path is about to change."""
        if self._journal is not None:
            self._journal.note(self, path)

    def was_read(self, path: str, count: int) -> None:
        """Note that bytes of a file were read."""
        if self._journal is not None:
            self._journal.note_read(path, count)

    def own(self, path: str) -> _Contents:
        """Return contents that may be changed, made if there are none."""
        self.changing(path)
        found = self.contents(path) or _Contents()
        self._put(path, found)
        return found

    def _put(self, path: str, contents: _Contents | None) -> None:
        self._changed[path] = contents
        folder, _, name = path.rpartition("/")
        self._names.setdefault(folder, set()).add(name)

    def data(self, path: str) -> DataFile:
        """Return the file at `path`."""
        return _OverlayFile(self, self._cache, path)

    def exists(self, path: str) -> bool:
        """Return whether there is a file or directory at `path`."""
        if path in self._changed:
            return self._changed[path] is not None
        return path in self._made or super().exists(path)

    def list_directory(self, path: str) -> list[str]:
        """Return the names in a directory."""
        names = set(super().list_directory(path)) if super().exists(path) else set[str]()
        for name in self._names.get(path, ()):
            is_gone = self._changed[f"{path}/{name}"] is None
            (names.discard if is_gone else names.add)(name)
        names |= {made.rpartition("/")[2] for made in self._made if made.rpartition("/")[0] == path}
        return list(names)

    def list_by_kind(self, path: str) -> tuple[list[str], list[str]]:
        """Return the names in a directory: of its regular files, and of the rest."""
        regular, others = super().list_by_kind(path) if super().exists(path) else ([], [])
        changed = {name: self._changed[f"{path}/{name}"] for name in self._names.get(path, ())}
        there = {name for name, contents in changed.items() if contents is not None}
        others = [name for name in others if name not in changed]
        return [*(name for name in regular if name not in changed), *there], others

    def make_directory(self, path: str) -> None:
        """Create a directory."""
        if not super().exists(path):
            self._made.add(path)

    def read_whole(self, path: str) -> bytes:
        """Return the contents of a small file."""
        contents = self.contents(path)
        if contents is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return contents.read(0, contents.size())

    def write_whole(self, path: str, content: Buffer, *, sync: bool = True) -> None:
        """Replace a small file."""
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
        """Remove a file; one that does not exist is no error."""
        if self.contents(path) is not None:
            self.changing(path)
            self._put(path, None)

    def sync_directory(self, path: str) -> None:
        """Nothing is waited for."""

    def lock_directory(self, path: str) -> DirectoryLock:
        """Lock nothing."""
        return _NoLock()

    def modified_ms(self, path: str) -> int:
        """Return when a file was last written; 0 for one that was made here."""
        try:
            return super().modified_ms(path)
        except FileNotFoundError:
            return 0


class _OverlayFile(DataFile):
    """A file as it would be. Users keep it over a rename, as they do with a real one."""

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
        del length  # who opens the log appends nothing
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
        """Nothing is waited for."""

    def rename(self, new_path: str) -> None:
        self._files.rename(self.path, new_path)
        self.path = new_path

    def unlink(self) -> None:
        self._files.unlink(self.path)


class _NoLock(DirectoryLock):
    """The lock of a directory that isn't touched."""

    __slots__ = ()

    def __init__(self) -> None:
        self._descriptor = None
        self._path = ""
