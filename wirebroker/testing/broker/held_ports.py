"""Ports that brokers have left, kept from everybody: who knocks there is refused.

A client that a test has left behind goes on knocking where its broker was. The system gives free
ports out again, to the broker of a later test or of another process that runs tests; so the last
ones stay taken, by sockets that do not listen.
"""

from __future__ import annotations

import socket
from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from wirebroker.net.client.settings import PeerAddress

# A descriptor each.
_MOST: Final = 200


class HeldPorts:
    """The ports of one broker's former lives, the last ones."""

    def __init__(self) -> None:
        self._sockets: deque[socket.socket] = deque()

    def hold(self, address: PeerAddress) -> None:
        """Keep a port that was just left; one that somebody has taken already is his."""
        if len(self._sockets) == _MOST:
            self._sockets.popleft().close()
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        held = socket.socket(family, socket.SOCK_STREAM)
        try:
            # Connections that the broker has closed are remembered for a minute.
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            held.bind((address.host, address.port))
        except OSError:
            held.close()
        else:
            self._sockets.append(held)

    def release(self) -> None:
        """Give all of them back."""
        while self._sockets:
            self._sockets.pop().close()
