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
    """Receive into a writable buffer and return the number of bytes; 0 at the end.

    Raises:
        OSError: BlockingIOError if there is nothing yet; InterruptedError.
    """
    return os.readv(descriptor, (buffer,))


def send(descriptor: int, data: bytes, /) -> int:
    """Send what the socket takes and return the number of bytes.

    Raises:
        OSError: BlockingIOError if it takes nothing; InterruptedError.
    """
    return os.write(descriptor, data)


if _calls is not None:
    receive = _calls.receive
    send = _calls.send
