"""A disk that fails where and when a test says so."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from wirebroker.storage.files import DataFile, Files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.storage.files import Buffer


class FailingFiles(Files):
    """The file system; `broken` says what goes wrong.

    Attributes:
        broken: Kinds of calls ("write", "sync", "read", "create") by the prefix of paths for which
            they fail.
        error_number: The error they fail with.
    """

    __slots__ = ("broken", "error_number")

    def __init__(self, *, max_open_files: int = 256) -> None:
        super().__init__(max_open_files=max_open_files)
        self.broken: dict[str, set[str]] = {}
        self.error_number = errno.EIO

    def fail(self, prefix: object, *kinds: str) -> None:
        """From now on have these calls fail below `prefix`."""
        self.broken.setdefault(str(prefix), set()).update(kinds)

    def check(self, kind: str, path: str) -> None:
        """Fail if it is time to."""
        for prefix, kinds in self.broken.items():
            if kind in kinds and path.startswith(prefix):
                raise OSError(self.error_number, os.strerror(self.error_number), path)

    def data(self, path: str) -> DataFile:
        return _FailingFile(self, path)

    def make_directory(self, path: str) -> None:
        self.check("create", path)
        super().make_directory(path)

    def write_whole(self, path: str, content: Buffer, *, sync: bool = True) -> None:
        self.check("write", path)
        super().write_whole(path, content, sync=sync)


class _FailingFile(DataFile):
    """A file on that disk."""

    __slots__ = ("_disk",)

    def __init__(self, disk: FailingFiles, path: str) -> None:
        super().__init__(disk._cache, path)
        self._disk = disk

    def write_at(self, position: int, buffers: Buffer | Sequence[Buffer]) -> None:
        self._disk.check("write", self.path)
        super().write_at(position, buffers)

    def read_at(self, position: int, length: int) -> bytes:
        self._disk.check("read", self.path)
        return super().read_at(position, length)

    def sync(self) -> None:
        self._disk.check("sync", self.path)
        super().sync()
