"""The error of a file that cannot be sent.

A separate module that is never compiled: compiled classes cannot extend built-in ones.
"""

from __future__ import annotations

import errno
from typing import Final

# Errors of failed disks; other errors of the same calls come from sockets.
_DISK_ERRORS: Final = frozenset(
    {errno.EIO, errno.ENXIO, errno.ENODEV, errno.EBADMSG, errno.EUCLEAN, errno.ESTALE}
)


class SliceError(OSError):
    """A file slice cannot be sent, perhaps because its file was deleted (`is_gone`)."""

    def __init__(self, path: str, reason: OSError | str) -> None:
        super().__init__(f"cannot send {path}: {reason}")
        self.path = path
        self.is_gone = isinstance(reason, FileNotFoundError)
        self.is_disk_failure = isinstance(reason, OSError) and reason.errno in _DISK_ERRORS
