"""Receive and send by descriptor, on sockets that never block.

os.readv and os.write have no keywords to parse and no timeout to look at, as socket methods have. A
compiled build calls recv and send itself (_calls.c), without giving the GIL away for up to 64 KiB,
which costs more than it gives to others.
"""

from __future__ import annotations

import os

try:
    from wirebroker.net.sockets import _calls
except ImportError:  # not compiled
    _calls = None  # type: ignore[assignment]


def receive(descriptor: int, buffer: memoryview, /) -> int:
    """Receive into a writable buffer and return how many bytes; 0 at the end.

    Raises:
        OSError: BlockingIOError if there is nothing yet; InterruptedError.
    """
    return os.readv(descriptor, (buffer,))


def send(descriptor: int, data: bytes, /) -> int:
    """Send what the socket takes and return how many bytes that were.

    Raises:
        OSError: BlockingIOError if it takes nothing; InterruptedError.
    """
    return os.write(descriptor, data)


if _calls is not None:
    receive = _calls.receive
    send = _calls.send
