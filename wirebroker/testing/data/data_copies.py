"""Copies of a data directory, made in milliseconds.

A copy looks like the directory after a kill. Closed segments are hard links if possible: do not
write to them. Other files are copied, by the kernel if it can.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from wirebroker.storage.log_directory import CLEAN_SHUTDOWN_MARKER

if TYPE_CHECKING:
    from pathlib import Path

_MARK: Final = "meta.properties"
_LOG: Final = ".log"
# Directories of partitions, also of moved or deleted ones.
_PARTITION: Final = re.compile(r"\S+-\d+(?:\.\S+-(?:delete|stray|future))?")
_FILES: Final = {_MARK, CLEAN_SHUTDOWN_MARKER}
_ENDS_OF_FILES: Final = ("checkpoint", ".tmp")
# Locks, unfinished files, and deleted ones.
_LEFT_OUT: Final = (".lock", ".tmp", ".part", ".deleted", ".cleaned", "-delete", "-stray")
# The kernel cannot copy between these files.
_CANNOT: Final = {errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM}
_MOST_AT_ONCE: Final = 1 << 30
# Without it, Windows changes line ends.
_BINARY: Final[int] = getattr(os, "O_BINARY", 0)


def copy_data(source: Path, target: Path) -> None:
    """Copy a data directory to a new or empty one.

    Raises:
        ValueError: The source is not a data directory, or the target is not empty.
    """
    check_data(source)
    if target.exists() and any(target.iterdir()):
        raise ValueError(f"{target} is not empty")
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        _copy_folder(str(source), str(part))
        with suppress(FileNotFoundError):
            target.rmdir()
        part.rename(target)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise


def put_data(snapshot: Path, directory: Path) -> None:
    """Replace a directory with a copy.

    Raises:
        ValueError: The snapshot is not a data directory.
    """
    check_data(snapshot)
    directory.mkdir(parents=True, exist_ok=True)
    _empty(directory)
    _copy_folder(str(snapshot), str(directory))


def remove_data(directory: Path) -> None:
    """Remove only the files of brokers from a directory."""
    for path in directory.iterdir():
        name = path.name
        is_broker_file = name in _FILES or name.endswith(_ENDS_OF_FILES)
        if _PARTITION.fullmatch(name) if path.is_dir() else is_broker_file:
            _remove(path)


def _empty(directory: Path) -> None:
    """Empty a directory; it may be a volume, which cannot be renamed."""
    for path in directory.iterdir():
        _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def check_data(directory: Path) -> None:
    """Raise ValueError unless it is a data directory."""
    if not (directory / _MARK).is_file():
        raise ValueError(f"{directory} is not a data directory: it has no {_MARK}")


def _copy_folder(source: str, target: str) -> None:
    with suppress(FileExistsError):
        os.mkdir(target)  # noqa: PTH102 - path objects take a third of a copy's time
    with os.scandir(source) as listing:
        entries = [entry for entry in listing if not entry.name.endswith(_LEFT_OUT)]
    # The segment with the largest base offset is still appended to.
    active = max((entry.name for entry in entries if entry.name.endswith(_LOG)), default=None)
    for entry in entries:
        copy = f"{target}/{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            _copy_folder(entry.path, copy)
        elif entry.is_file(follow_symlinks=False):
            is_closed = entry.name.endswith(_LOG) and entry.name != active
            if not (is_closed and _linked(entry.path, copy)):
                _copy_file(entry.path, copy)


def _linked(source: str, target: str) -> bool:
    """Create a hard link; return False if it cannot."""
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:
        return False
    return True


def _copy_file(source: str, target: str) -> None:
    read = os.open(source, os.O_RDONLY | _BINARY)
    try:
        written = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _BINARY, 0o666)
        try:
            if not _copied_by_kernel(read, written):
                _copy_bytes(read, written)
        finally:
            os.close(written)
    finally:
        os.close(read)


def _copy_bytes(source: int, target: int) -> None:
    with open(source, "rb", closefd=False) as read, open(target, "wb", closefd=False) as written:
        shutil.copyfileobj(read, written)


def _copied_by_kernel(source: int, target: int) -> bool:
    """Copy in the kernel, which may share blocks; return False if it cannot."""
    copy = getattr(os, "copy_file_range", None)
    if copy is None:
        return False
    is_begun = False
    try:
        while copy(source, target, _MOST_AT_ONCE):
            is_begun = True
    except OSError as error:
        if is_begun or error.errno not in _CANNOT:
            raise
        return False
    return True
