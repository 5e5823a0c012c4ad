"""Reading of regular files up to a maximum size."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def read_regular(path: str | Path, most_bytes: int) -> bytes:
    """Return the contents of a regular file without blocking.

    Raises:
        OSError: It cannot be read, is not regular, or is too long; `strerror` says which.
    """
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError:  # a NUL in the path
        raise OSError(errno.EINVAL, "the path contains a NUL character", str(path)) from None
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    with os.fdopen(number, "rb") as file:
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise OSError(errno.EFBIG, f"longer than {most_bytes} bytes", str(path))
    return data


def check_regular(path: str | Path) -> None:
    """Refuse a file that is not regular, for libraries that open files themselves.

    Raises:
        OSError: As `read_regular`.
    """
    read_regular(path, 64 << 20)
