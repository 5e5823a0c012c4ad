"""Receive and send by descriptor, on non-blocking sockets.

os.readv and os.write are cheaper than socket methods. A compiled build calls recv and send
(_calls.c), holding the GIL up to 64 KiB, where releasing it costs more.
"""

from __future__ import annotations

import os

try:
    from wirebroker.net.sockets import _calls
except ImportError:  # not compiled
    _calls = None  # type: ignore[assignment]


def receive(descriptor: int, buffer: memoryview, /) -> int:
    """See ConnectionTransport."""
    return os.readv(descriptor, (buffer,))


def send(descriptor: int, data: bytes, /) -> int:
    """See ConnectionTransport."""
    return os.write(descriptor, data)


if _calls is not None:
    receive = _calls.receive
    send = _calls.send
