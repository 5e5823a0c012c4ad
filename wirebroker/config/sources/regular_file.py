"""Files that settings name: read only if they are regular files, and only so much of them.

Opening a FIFO waits for somebody who writes into it, a device may give bytes for ever.

A leaf.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def read_regular(path: str | Path, most_bytes: int) -> bytes:
    """Return what a regular file holds; never waits for anybody.

    Args:
        path: Of the file; links are followed.
        most_bytes: A longer one is refused.

    Raises:
        OSError: It cannot be read, is something else, or is longer; `strerror` says which.
    """
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError:  # Python's word for a NUL
        raise OSError(errno.EINVAL, "its name has a NUL", str(path)) from None
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    with os.fdopen(number, "rb") as file:
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise OSError(errno.EFBIG, f"longer than {most_bytes} bytes", str(path))
    return data


def check_regular(path: str | Path) -> None:
    """Refuse what is no regular file, for libraries that open a file themselves.

    Raises:
        OSError: As `read_regular`.
    """
    read_regular(path, 64 << 20)
