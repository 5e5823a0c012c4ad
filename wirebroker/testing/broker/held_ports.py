"""Ports of earlier brokers, held by sockets that do not listen.

Otherwise a client that a test left behind could connect to a later broker with the same port.
"""

from __future__ import annotations

import socket
from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from wirebroker.net.client.settings import PeerAddress

# Each costs a file descriptor.
_MOST: Final = 200


class ReservedPorts:
    """The last ports of one broker."""

    def __init__(self) -> None:
        self._sockets: deque[socket.socket] = deque()

    def hold(self, address: PeerAddress) -> None:
        """Reserve a port that the broker just left, unless it is in use."""
        if len(self._sockets) == _MOST:
            self._sockets.popleft().close()
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        reserved_socket = socket.socket(family, socket.SOCK_STREAM)
        try:
            # The broker's closed connections are in TIME_WAIT.
            reserved_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            reserved_socket.bind((address.host, address.port))
        except OSError:
            reserved_socket.close()
        else:
            self._sockets.append(reserved_socket)

    def release(self) -> None:
        """Release all ports."""
        while self._sockets:
            self._sockets.pop().close()
