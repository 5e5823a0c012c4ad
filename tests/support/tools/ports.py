"""Ports for servers that must know their port before they start or keep it over restarts.

They are below the system's range for outgoing connections. A port in that range could be given to
another connection while the server is down; a client that reconnects could even be given the port
itself and connect to itself.
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

# The locks of this process's blocks, held until it ends.
_held: list[IO[bytes]] = []


def free_ports(count: int) -> list[int]:
    """Return free ports that no other test process gets."""
    ports: list[int] = []
    for port in _block():
        if _is_free(port):
            ports.append(port)
        if len(ports) == count:
            return ports
    raise AssertionError("the ports never end")


def free_port() -> int:
    (port,) = free_ports(1)
    return port


@cache
def _block() -> Iterator[int]:
    """Return an endless cycle over the ports of this process."""
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
    with socket.socket() as sock:
        try:
            sock.bind((HOST, port))
        except OSError:
            return False
    return True
