"""Temporary folders for the data of test brokers, in memory if there is enough."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - only our own folder in it is used
# A container's 64 MiB there are too few for a test.
_ENOUGH_BYTES: Final = 1 << 30


def new_folder() -> Path:
    """Create a temporary folder."""
    return Path(tempfile.mkdtemp(prefix="wirebroker-", dir=_memory_with_room()))


def _memory_with_room() -> Path | None:
    """Return the in-memory file system; None if it is missing, small or full."""
    try:
        has_room = shutil.disk_usage(_MEMORY).free >= _ENOUGH_BYTES
    except OSError:
        return None
    return _MEMORY if has_room and os.access(_MEMORY, os.W_OK) else None
