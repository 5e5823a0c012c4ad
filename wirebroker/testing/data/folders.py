"""Where the data of brokers for tests lies: in memory if the machine has enough of it."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - a folder of our own is made in it
# Containers have 64 MiB there, which a test may fill.
_ENOUGH_BYTES: Final = 1 << 30


def new_folder() -> Path:
    """Make a folder that nobody else has."""
    return Path(tempfile.mkdtemp(prefix="wirebroker-", dir=_memory_with_room()))


def _memory_with_room() -> Path | None:
    """Return the file system in memory, None where there is none or it is small or full."""
    try:
        has_room = shutil.disk_usage(_MEMORY).free >= _ENOUGH_BYTES
    except OSError:
        return None
    return _MEMORY if has_room and os.access(_MEMORY, os.W_OK) else None
