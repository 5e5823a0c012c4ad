"""What a directory of the file system holds: regular files apart from everything else."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def names_by_kind(path: str) -> tuple[list[str], list[str]]:
    """Return the names of the regular files in a directory, and the others.

    Links are followed, as by Java's File.isFile: directories, devices, pipes, sockets, and links to
    these or to nothing are others.

    Raises:
        OSError: The directory cannot be listed.
    """
    regular: list[str] = []
    others: list[str] = []
    with os.scandir(path) as entries:
        for entry in entries:
            (regular if _is(entry.is_file) else others).append(entry.name)
    return regular, others


def subdirectories(path: str) -> list[str]:
    """Return the names of the directories in a directory; links to directories count."""
    with os.scandir(path) as entries:
        return [entry.name for entry in entries if _is(entry.is_dir)]


def _is(kind: Callable[[], bool]) -> bool:
    """Return what an entry of a directory is; a loop of links is nothing."""
    try:
        return kind()
    except OSError as error:
        if error.errno == errno.ELOOP:
            return False
        raise
