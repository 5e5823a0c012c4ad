"""The ports of a node's listeners, taken before anything is written."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from wirebroker.config import StartError
from wirebroker.net.listener import bind
from wirebroker.ready_lines import BoundListener, shown_address

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

    from wirebroker.config.listeners import ListenerConfig
    from wirebroker.net.settings import NetworkSettings


class BoundSockets:
    """Sockets that listen, in the order in which the listeners are written.

    Attributes:
        pairs: Each listener with its socket, once it is bound.
    """

    __slots__ = ("_listeners", "_settings", "pairs")

    def __init__(self, listeners: Sequence[ListenerConfig], settings: NetworkSettings) -> None:
        self._listeners = listeners
        self._settings = settings
        self.pairs: list[tuple[ListenerConfig, socket.socket]] = []

    @property
    def bound(self) -> list[BoundListener]:
        """Return where they listen."""
        return [
            BoundListener(each.name, *_address(sock), each.advertised) for each, sock in self.pairs
        ]

    def bind(self) -> None:
        """Take all ports.

        Raises:
            StartError: One cannot be had; `close` lets go of the others.
        """
        for each in self._listeners:
            try:
                sock = bind(each.host, each.port, self._settings)
            except OSError as error:
                raise StartError(
                    f"cannot listen on {shown_address(each.host or '*', each.port)}: "
                    f"{error.strerror or error}",
                    _how_to_listen(error),
                ) from error
            self.pairs.append((each, sock))

    def close(self) -> None:
        """Let go of the ports."""
        for _, sock in self.pairs:
            sock.close()


def _address(sock: socket.socket) -> tuple[str, int]:
    host, port = sock.getsockname()[:2]
    return host, port


def _how_to_listen(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "stop what uses the port, or choose another (--port N; 0 picks a free one)"
    if error.errno == errno.EACCES:
        return "choose a port that needs no privilege (--port N)"
    return "choose an address that this machine has (--host HOST)"
