"""What is raised when a file that is being sent cannot be read.

A module of its own, and never compiled: compiled classes cannot extend built-in ones.
"""

from __future__ import annotations

import errno
from typing import Final

# What a read says of a disk that has failed; the same calls tell of sockets that have.
_DISK_ERRORS: Final = frozenset(
    {errno.EIO, errno.ENXIO, errno.ENODEV, errno.EBADMSG, errno.EUCLEAN, errno.ESTALE}
)


class SliceError(OSError):
    """A file slice cannot be sent: our disk's fault, not the peer's.

    Attributes:
        path: The file.
        is_disk_failure: Whether the disk cannot be trusted any more.
        is_gone: Whether the file is not there any more, as when its topic was deleted.
    """

    def __init__(self, path: str, reason: OSError | str) -> None:
        super().__init__(f"cannot send {path}: {reason}")
        self.path = path
        self.is_gone = isinstance(reason, FileNotFoundError)
        self.is_disk_failure = isinstance(reason, OSError) and reason.errno in _DISK_ERRORS
