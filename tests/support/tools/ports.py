"""Ports for servers that come back on the same one, or are told theirs beforehand.

They are below those that the system gives to outgoing connections. Else, while such a server is
down, its port may be given to anybody's connection; and a client that tries to reach it again and
again is sooner or later given that very port, talks to itself, and holds it.
"""

from __future__ import annotations

import fcntl
import os
import socket
import tempfile
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

HOST = "127.0.0.1"
_FIRST = 10_000
_BLOCK = 200
# The system's usual range for outgoing connections begins at 32,768.
_BLOCKS = 110

# Open, and so locked, as long as this process lives.
_held: list[IO[bytes]] = []


def free_ports(count: int) -> list[int]:
    """Return so many ports that nobody listens on; no other process of tests is given them."""
    found: list[int] = []
    for port in _block():
        if _is_free(port):
            found.append(port)
        if len(found) == count:
            return found
    raise AssertionError("the ports never end")


def free_port() -> int:
    """Return one of them."""
    (port,) = free_ports(1)
    return port


@cache
def _block() -> Iterator[int]:
    """Return the ports of this process, again and again: a port comes back after all others."""
    folder = Path(tempfile.gettempdir()) / f"wirebroker-test-ports-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    for number in range(_BLOCKS):
        file = (folder / str(number)).open("ab")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            continue
        _held.append(file)
        first = _FIRST + number * _BLOCK
        return cycle(range(first, first + _BLOCK))
    raise AssertionError(f"{_BLOCKS} processes have ports: see {folder}")


def _is_free(port: int) -> bool:
    with socket.socket() as one:
        try:
            one.bind((HOST, port))
        except OSError:
            return False
    return True
