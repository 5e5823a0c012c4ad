"""Run a module, or import all of wirebroker, as if on another system.

    python hide.py macos|windows -m wirebroker serve ...
    python hide.py macos|windows --import-all

First removes from the standard library what that system lacks.
"""

from __future__ import annotations

import argparse
import asyncio  # noqa: F401 - before what it chooses by is hidden; so with subprocess
import contextlib
import errno
import importlib
import mmap
import os
import pkgutil
import runpy
import select
import selectors
import signal
import socket
import subprocess  # noqa: F401
import sys
import types

_NOT_ON_MACOS = {
    select: [name for name in dir(select) if name.lower().startswith("epoll")],
    selectors: ["EpollSelector"],
    os: [
        *("posix_fadvise", "posix_fallocate", "fdatasync", "copy_file_range", "splice", "pipe2"),
        *("eventfd", "memfd_create", "sched_getaffinity", "sched_setaffinity", "sync_file_range"),
        *(name for name in dir(os) if name.startswith(("RWF_", "POSIX_FADV_"))),
    ],
    socket: ["MSG_MORE", "MSG_NOSIGNAL", "SO_INCOMING_CPU", "TCP_CORK", "TCP_USER_TIMEOUT"],
    mmap: ["MAP_NORESERVE", "MAP_POPULATE"],
}
_NOT_ON_WINDOWS = {
    os: [
        *("pread", "preadv", "pwrite", "pwritev", "readv", "writev", "sendfile", "statvfs"),
        *("O_CLOEXEC", "O_DIRECTORY", "O_NONBLOCK", "fork", "nice", "getuid", "geteuid"),
    ],
    select: ["poll"],
    selectors: ["PollSelector"],
    signal: ["SIGHUP", "SIGKILL", "SIGUSR1", "SIGUSR2", "SIGALRM"],
    socket: ["MSG_DONTWAIT", "SO_REUSEPORT"],
    mmap: ["MAP_PRIVATE", "MAP_ANONYMOUS", "MAP_SHARED", "PROT_READ", "PROT_WRITE"],
}
# They need PySpark.
_OF_EXTRAS = ("wirebroker.segments.", "wirebroker.pipelines.")
_MODULES_NOT_ON_WINDOWS = ("fcntl", "grp", "pwd", "resource", "termios", "tty")


def main(system: str, arguments: list[str]) -> None:
    _take_away(_NOT_ON_MACOS)
    vars(selectors)["DefaultSelector"] = selectors.PollSelector
    if system == "windows":
        _take_away(_NOT_ON_WINDOWS)
        for name in _MODULES_NOT_ON_WINDOWS:
            sys.modules[name] = None  # type: ignore[assignment]
        sys.modules["msvcrt"] = _msvcrt()
        vars(selectors)["DefaultSelector"] = selectors.SelectSelector
    if arguments == ["--import-all"]:
        _import_all()
    else:
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)


def _take_away(names_of: dict[types.ModuleType, list[str]]) -> None:
    for module, names in names_of.items():
        for name in names:
            with contextlib.suppress(AttributeError):
                delattr(module, name)


def _msvcrt() -> types.ModuleType:
    """Return a replacement for Windows' msvcrt, with locks inside this process."""
    module = types.ModuleType("msvcrt")
    locked: set[tuple[int, int]] = set()

    def locking(descriptor: int, _mode: int, _count: int) -> None:
        status = os.fstat(descriptor)
        file = (status.st_dev, status.st_ino)
        if file in locked:
            raise PermissionError(errno.EACCES, "locked")
        locked.add(file)

    module.locking = locking  # type: ignore[attr-defined]
    module.LK_NBLCK = 2  # type: ignore[attr-defined]
    return module


def _import_all() -> None:
    import wirebroker

    for module in pkgutil.walk_packages(wirebroker.__path__, "wirebroker."):
        if not module.name.endswith("__main__") and not module.name.startswith(_OF_EXTRAS):
            importlib.import_module(module.name)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("system", choices=("macos", "windows"))
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    main(options.system, options.arguments)
