"""What a run of storage code changed, told by comparing each file it touched with how it was.

Of a segment's log only the length is compared (it is only ever cut), of other files the contents.
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
    """A file at one moment."""

    size: int
    checksum: int


class Change(NamedTuple):
    """One file that is not as it was: None where it isn't there."""

    path: str
    before: FileState | None
    after: FileState | None


class Journal:
    """The files touched since the last `take`, as they were.

    Attributes:
        on_read: Told how many bytes of a segment's log were read.
    """

    __slots__ = ("_before", "on_read")

    def __init__(self) -> None:
        self._before: dict[str, FileState | None] = {}
        self.on_read: Callable[[int], None] = _ignore

    def note_read(self, path: str, count: int) -> None:
        """Count bytes that were read."""
        if path.endswith(LOG_SUFFIX):
            self.on_read(count)

    def note(self, files: Files, path: str) -> None:
        """Remember a file that is about to be changed; the first time counts."""
        if path not in self._before:
            self._before[path] = _state(files, path)

    def take(self, files: Files) -> list[Change]:
        """Return what changed, by path, and begin anew."""
        before, self._before = self._before, {}
        changes = [Change(path, was, _state(files, path)) for path, was in sorted(before.items())]
        return [change for change in changes if change.before != change.after]


class JournaledFiles(Files):
    """The file system itself, with a journal of what is changed."""

    __slots__ = ("_journal",)

    def __init__(self, journal: Journal) -> None:
        super().__init__()
        self._journal = journal

    def data(self, path: str) -> DataFile:
        """Return the file at `path`."""
        return _JournaledFile(self, self._cache, path)

    def changing(self, path: str) -> None:
        """Note that a path is about to change."""
        self._journal.note(self, path)

    def was_read(self, path: str, count: int) -> None:
        """Note that bytes of a file were read."""
        self._journal.note_read(path, count)

    def write_whole(self, path: str, content: Buffer, *, sync: bool = True) -> None:
        """Replace a small file."""
        self.changing(path)
        super().write_whole(path, content, sync=sync)

    def rename(self, old_path: str, new_path: str) -> None:
        """Rename a file or a directory."""
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
        found = super().read_at(position, length)
        self._files.was_read(self.path, len(found))
        return found

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
    """Do nothing: nobody counts."""


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
