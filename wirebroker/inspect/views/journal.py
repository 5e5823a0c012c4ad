"""Changes that storage code made, found by comparing each touched file with its earlier state.

Segments' logs are only truncated, so only their lengths are compared; of other files the contents.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirebroker.codecs.records.checksum import crc32c
from wirebroker.storage.files import DataFile, Files
from wirebroker.storage.log.segment.segment_files import LOG_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wirebroker.storage.file_cache import FileCache
    from wirebroker.storage.files import Buffer

_CHUNK_BYTES = 1 << 20


class FileState(NamedTuple):
    """The state of a file."""

    size: int
    checksum: int


class Change(NamedTuple):
    """A changed file; None if it does not exist."""

    path: str
    before: FileState | None
    after: FileState | None


class Journal:
    """The earlier states of the files touched since the last `take`.

    Attributes:
        on_read: Takes counts of bytes read from segments' logs.
    """

    __slots__ = ("_before", "on_read")

    def __init__(self) -> None:
        self._before: dict[str, FileState | None] = {}
        self.on_read: Callable[[int], None] = _ignore

    def note_read(self, path: str, count: int) -> None:
        """Count read bytes."""
        if path.endswith(LOG_SUFFIX):
            self.on_read(count)

    def note(self, files: Files, path: str) -> None:
        """Record a file's state before its first change."""
        if path not in self._before:
            self._before[path] = _state(files, path)

    def take(self, files: Files) -> list[Change]:
        """Return the changes by path, and start again."""
        before, self._before = self._before, {}
        changes = [Change(path, was, _state(files, path)) for path, was in sorted(before.items())]
        return [change for change in changes if change.before != change.after]


class JournaledFiles(Files):
    """The file system, with a journal of changes."""

    __slots__ = ("_journal",)

    def __init__(self, journal: Journal) -> None:
        super().__init__()
        self._journal = journal

    def data(self, path: str) -> DataFile:
        """Return a file."""
        return _JournaledFile(self, self._cache, path)

    def changing(self, path: str) -> None:
        """Record a state before a change."""
        self._journal.note(self, path)

    def was_read(self, path: str, count: int) -> None:
        """Count read bytes."""
        self._journal.note_read(path, count)

    def write_file(self, path: str, content: Buffer, *, sync: bool = True) -> None:
        """Replace a file."""
        self.changing(path)
        super().write_file(path, content, sync=sync)

    def rename(self, old_path: str, new_path: str) -> None:
        """Rename a path."""
        self.changing(old_path)
        self.changing(new_path)
        super().rename(old_path, new_path)

    def unlink(self, path: str) -> None:
        """Remove a file."""
        self.changing(path)
        super().unlink(path)


class _JournaledFile(DataFile):
    __slots__ = ("_files",)

    def __init__(self, files: JournaledFiles, cache: FileCache, path: str) -> None:
        super().__init__(cache, path)
        self._files = files

    def create(self) -> None:
        self._files.changing(self.path)
        super().create()

    def write_at(self, position: int, buffers: Buffer | Sequence[Buffer]) -> None:
        self._files.changing(self.path)
        super().write_at(position, buffers)

    def read_at(self, position: int, length: int) -> bytes:
        data = super().read_at(position, length)
        self._files.was_read(self.path, len(data))
        return data

    def truncate(self, length: int) -> None:
        self._files.changing(self.path)
        super().truncate(length)

    def rename(self, new_path: str) -> None:
        self._files.changing(self.path)
        self._files.changing(new_path)
        super().rename(new_path)

    def unlink(self) -> None:
        self._files.changing(self.path)
        super().unlink()


def _ignore(count: int) -> None:
    """Do nothing."""


def _state(files: Files, path: str) -> FileState | None:
    if not files.exists(path):
        return None
    file = files.data(path)
    size = file.size()
    checksum = 0
    if not path.endswith(LOG_SUFFIX):
        for position in range(0, size, _CHUNK_BYTES):
            checksum = crc32c(file.read_at(position, _CHUNK_BYTES), checksum)
    file.close()
    return FileState(size, checksum)
