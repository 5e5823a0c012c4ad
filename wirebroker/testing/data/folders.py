"""Temporary folders, in memory if there is enough."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - only our own folder in it is used
# A container's 64 MiB are too few.
_ENOUGH_BYTES: Final = 1 << 30


def new_folder() -> Path:
    """Create a temporary folder."""
    return Path(tempfile.mkdtemp(prefix="wirebroker-", dir=_memory_with_room()))


def empty_directory(directory: Path | None, folder: Path) -> Path:
    """Return a directory; None creates one in `folder`.

    Raises:
        ValueError: It is not empty.
    """
    if directory is None:
        return Path(tempfile.mkdtemp(prefix="snapshot-", dir=folder))
    if directory.exists() and any(directory.iterdir()):
        raise ValueError(f"{directory} is not empty")
    return directory


def _memory_with_room() -> Path | None:
    """Return the in-memory file system if it has room."""
    try:
        has_room = shutil.disk_usage(_MEMORY).free >= _ENOUGH_BYTES
    except OSError:
        return None
    return _MEMORY if has_room and os.access(_MEMORY, os.W_OK) else None
