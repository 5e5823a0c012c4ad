"""Directory listings by kind."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def names_by_kind(path: str) -> tuple[list[str], list[str]]:
    """Return the names of a directory's regular files, and all other names.

    Links are followed, as in Java's File.isFile; broken links count as others.

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
    """Return the names of a directory's subdirectories, including links."""
    with os.scandir(path) as entries:
        return [entry.name for entry in entries if _is(entry.is_dir)]


def _is(kind: Callable[[], bool]) -> bool:
    try:
        return kind()
    except OSError as error:
        if error.errno == errno.ELOOP:
            return False
        raise
