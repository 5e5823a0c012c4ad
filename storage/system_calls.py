"""Calls that not every system has, and what stands in for them there.

| | Linux | macOS | Windows |
| --- | --- | --- | --- |
| reads and writes at a position | pread, pwrite | the same | seek, then read or write, in turns |
| data alone to the disk | fdatasync | fsync | fsync |
| a range leaves the page cache | posix_fadvise | stays | stays |
| a range comes into it | sendfile to nowhere | is read | is read |
| it is to come soon | posix_fadvise | nothing | nothing |
| names to the disk | fsync of the folder | the same | left to the file system |
| lock of a folder | POSIX record lock | the same | msvcrt's, of one byte |

Apache Kafka's FileLock is a POSIX record lock where there are any, so that both exclude each other
on Linux and macOS.
"""

from __future__ import annotations

import errno
import importlib
import os
import struct
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.codecs.primitives import Buffer

# Of every file that is opened: not for children, no translation of line ends.
OPENED: Final[int] = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
# Opening a pipe does not wait for its other end.
AT_ONCE: Final[int] = getattr(os, "O_NONBLOCK", 0)
FOLDER: Final[int] = getattr(os, "O_DIRECTORY", 0)
# struct flock of 64-bit Linux.
_FLOCK: Final = struct.Struct("hhqqi4x")
# Elsewhere files are sent to sockets alone.
_sends_anywhere: Final = sys.platform == "linux"
_WARMED_BYTES: Final = 64 << 10
# A descriptor has one position, and threads share descriptors.
_position: Final = threading.Lock()


def _module(name: str) -> Any:
    """Return a module that only some systems have; None elsewhere."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


_fcntl: Final = _module("fcntl")
_msvcrt: Final = _module("msvcrt")


def _read(descriptor: int, length: int, position: int, /) -> bytes:
    with _position:
        os.lseek(descriptor, position, os.SEEK_SET)
        return os.read(descriptor, length)


def _read_into(descriptor: int, buffers: Sequence[Any], position: int, flags: int = 0, /) -> int:
    if flags:  # Linux's alone
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
    (buffer,) = buffers
    data = _read(descriptor, len(buffer), position)
    buffer[: len(data)] = data
    return len(data)


def _write(descriptor: int, buffer: Buffer, position: int, /) -> int:
    with _position:
        os.lseek(descriptor, position, os.SEEK_SET)
        return os.write(descriptor, buffer)


def _write_from(descriptor: int, buffers: Sequence[Buffer], position: int, /) -> int:
    return _write(descriptor, buffers[0], position)


pread = getattr(os, "pread", _read)
preadv = getattr(os, "preadv", _read_into)
pwrite = getattr(os, "pwrite", _write)
pwritev = getattr(os, "pwritev", _write_from)
sync_data = getattr(os, "fdatasync", os.fsync)


def cool(descriptor: int, position: int, length: int) -> None:
    """Have a range leave the page cache, where a system can be asked for that."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(descriptor, position, length, os.POSIX_FADV_DONTNEED)


def expect(descriptor: int, position: int, length: int) -> None:
    """Have a range come into the page cache, where a system can be asked for that; waits not."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(descriptor, position, length, os.POSIX_FADV_WILLNEED)


def open_ahead(path: str, descriptor: int) -> int | None:
    """Open a file once more, for a thread that reads ahead; by `descriptor` nobody does any more.

    Whoever meets a mark of the kernel's reading ahead asks for the next range, of 8 MiB on some
    disks, which takes 3.5 ms: that shall be the thread.

    Returns:
        None if files are not read that way here, if this one has no name any more, or another, if
        its name is another file's by now, or if no descriptor is left.
    """
    if not _sends_anywhere:
        return None
    read_no_further(descriptor)
    with suppress(OSError):
        number = os.open(path, os.O_RDONLY | OPENED)
        if os.path.sameopenfile(number, descriptor):
            return number
        os.close(number)
    return None


def read_no_further(descriptor: int) -> None:
    """Have the kernel read what is asked for by a descriptor, and nothing ahead, where it can."""
    if _sends_anywhere:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)


def warm(descriptor: int, position: int, length: int) -> None:
    """Have a range of a file in the page cache when this returns; blocks.

    In calls of 64 KiB: some kernels are not preempted in one, and whoever was woken on the same
    core waits for its end.
    """
    end = position + length
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY | OPENED) if _sends_anywhere else None
    except OSError:  # no descriptor is left
        nowhere = None
    try:
        while position < end:
            count = min(_WARMED_BYTES, end - position)
            if nowhere is None:
                count = len(pread(descriptor, count, position))
            else:
                count = os.sendfile(nowhere, descriptor, position, count)
            if not count:
                return
            position += count
    finally:
        if nowhere is not None:
            os.close(nowhere)


def sync_names(path: str) -> None:
    """Wait until the names in a folder are on the disk, where folders can be opened."""
    if FOLDER:
        number = os.open(path, os.O_RDONLY | FOLDER | OPENED)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def lock(descriptor: int) -> None:
    """Lock a file for this process.

    Raises:
        OSError: Another one has it locked.
    """
    if _fcntl is not None:
        _fcntl.lockf(descriptor, _fcntl.LOCK_EX | _fcntl.LOCK_NB)
    else:
        _msvcrt.locking(descriptor, _msvcrt.LK_NBLCK, 1)


def lock_holder(descriptor: int) -> int | None:
    """Return which process has a file locked; None if none has, or if it can't be asked."""
    if _fcntl is None:
        return None
    asked = _FLOCK.pack(_fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    kind, _, _, _, process_id = _FLOCK.unpack(_fcntl.fcntl(descriptor, _fcntl.F_GETLK, asked))
    return None if kind == _fcntl.F_UNLCK else process_id


def free_and_total_bytes(path: str) -> tuple[int, int]:
    """Return what an unprivileged process may still write below a path, and its volume's size."""
    if hasattr(os, "statvfs"):
        status = os.statvfs(path)
        return status.f_bavail * status.f_frsize, status.f_blocks * status.f_frsize
    import shutil  # noqa: PLC0415 - elsewhere it is not needed for a start

    usage = shutil.disk_usage(path)
    return usage.free, usage.total
