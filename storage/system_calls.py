"""System calls that some platforms lack, and their replacements.

| | Linux | macOS | Windows |
| --- | --- | --- | --- |
| read or write at a position | pread, pwrite | the same | seek, then read or write, under a lock |
| sync data only | fdatasync | fsync | fsync |
| load a range into the page cache | sendfile to /dev/null | read | read |
| drop it from there, or announce a read | posix_fadvise | nothing | nothing |
| sync names | fsync of the directory | the same | left to the file system |
| lock a directory | POSIX record lock (as Kafka's FileLock) | the same | msvcrt lock of one byte |
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
    from collections.abc import Iterable, Sequence

    from wirebroker.codecs.primitives import Buffer

# Not inherited by children, no translation of line ends.
OPENED: Final[int] = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
# Opening a pipe does not block.
AT_ONCE: Final[int] = getattr(os, "O_NONBLOCK", 0)
FOLDER: Final[int] = getattr(os, "O_DIRECTORY", 0)
# struct flock of 64-bit Linux.
_FLOCK: Final = struct.Struct("hhqqi4x")
# Other systems send files to sockets only.
_sends_anywhere: Final = sys.platform == "linux"
_WARMED_BYTES: Final = 64 << 10
# IOV_MAX on Linux.
_MAX_BUFFERS: Final = 1024
# Threads share descriptors, which have only one position.
_position: Final = threading.Lock()


def _module(name: str) -> Any:
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
    if flags:  # only Linux has flags
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


def write_fully(number: int, position: int, buffers: Iterable[Buffer]) -> None:
    """Write all buffers at a position, in as many calls as it takes.

    Raises:
        OSError: The write failed; ENOSPC also if nothing more can be written.
    """
    views = [memoryview(buffer) for buffer in buffers if len(buffer)]
    while views:
        written = pwritev(number, views[:_MAX_BUFFERS], position)
        if written == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        position += written
        done = 0
        while done < len(views) and written >= len(views[done]):
            written -= len(views[done])
            done += 1
        del views[:done]
        if written:
            views[0] = views[0][written:]


def cool(descriptor: int, position: int, length: int) -> None:
    """Drop a range from the page cache."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(descriptor, position, length, os.POSIX_FADV_DONTNEED)


def expect(descriptor: int, position: int, length: int) -> None:
    """Start to load a range into the page cache; does not wait."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(descriptor, position, length, os.POSIX_FADV_WILLNEED)


def open_ahead(path: str, descriptor: int) -> int | None:
    """Open a file again for a thread that reads ahead, and stop readahead on `descriptor`.

    A read that reaches the kernel's readahead mark submits up to 8 MiB more (3.5 ms on some disks),
    which may delay only the thread. Return None if unsupported, if the file was deleted or renamed,
    or if no descriptor is left.
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
    """Disable the kernel's readahead on a descriptor."""
    if _sends_anywhere:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)


def warm(descriptor: int, position: int, length: int) -> None:
    """Read a range of a file into the page cache. Blocks.

    Some kernels do not preempt the calls, so they are limited to 64 KiB.
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
    """Sync the names in a directory."""
    if FOLDER:
        number = os.open(path, os.O_RDONLY | FOLDER | OPENED)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def lock(descriptor: int) -> None:
    """Lock a file for this process.

    Raises:
        OSError: Another process holds the lock.
    """
    if _fcntl is not None:
        _fcntl.lockf(descriptor, _fcntl.LOCK_EX | _fcntl.LOCK_NB)
    else:
        _msvcrt.locking(descriptor, _msvcrt.LK_NBLCK, 1)


def lock_holder(descriptor: int) -> int | None:
    """Return the id of the process that holds the lock, or None."""
    if _fcntl is None:
        return None
    query = _FLOCK.pack(_fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    kind, _, _, _, process_id = _FLOCK.unpack(_fcntl.fcntl(descriptor, _fcntl.F_GETLK, query))
    return None if kind == _fcntl.F_UNLCK else process_id


def free_and_total_bytes(path: str) -> tuple[int, int]:
    """Return a volume's free bytes for unprivileged processes, and its size."""
    if hasattr(os, "statvfs"):
        status = os.statvfs(path)
        return status.f_bavail * status.f_frsize, status.f_blocks * status.f_frsize
    import shutil  # noqa: PLC0415 - not needed elsewhere

    usage = shutil.disk_usage(path)
    return usage.free, usage.total
