"""Small files, which are read and replaced as a whole."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from wirebroker.storage.descriptors import Descriptor
from wirebroker.storage.system_calls import AT_ONCE, OPENED, pread, sync_names, write_fully

if TYPE_CHECKING:
    from wirebroker.codecs.primitives import Buffer

# From opening a loop of links, or a socket.
_NO_FILE = frozenset({errno.ELOOP, errno.ENXIO, errno.ENODEV})


def read_small_file(path: str) -> bytes:
    """Return the contents of a small file.

    Raises:
        FileNotFoundError: It does not exist or is not a regular file.
    """
    try:
        # Opening a pipe would wait for a writer.
        descriptor = Descriptor(os.open(path, os.O_RDONLY | AT_ONCE | OPENED))
    except OSError as error:
        if error.errno in _NO_FILE:
            raise FileNotFoundError(errno.ENOENT, "not a regular file", path) from error
        raise
    status = os.fstat(descriptor.number)
    if not stat.S_ISREG(status.st_mode):
        raise FileNotFoundError(errno.ENOENT, "not a regular file", path)
    size = status.st_size
    content = pread(descriptor.number, size, 0)
    assert len(content) == size, "small files are read in one call"
    return content


def write_small_file(path: str, content: Buffer, *, sync: bool = True) -> None:
    """Replace a small file atomically.

    Without `sync` (of file and directory) a power loss may leave it empty.
    """
    temporary = path + ".tmp"
    descriptor = _create(temporary)
    try:
        write_fully(descriptor.number, 0, [content])
        if sync:
            os.fsync(descriptor.number)
        os.replace(temporary, path)
    except OSError:
        with suppress(OSError):  # a full disk needs the room
            os.unlink(temporary)
        raise
    if sync:
        sync_names(os.path.dirname(path))


def _create(path: str) -> Descriptor:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | OPENED
    try:
        return Descriptor(os.open(path, flags, 0o644))
    except FileExistsError:
        os.unlink(path)
        return Descriptor(os.open(path, flags, 0o644))
