"""Binding of listeners."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from wirebroker.config import StartError
from wirebroker.coordinator.controller.image.cluster_image import Endpoint
from wirebroker.net.listeners.listener import bind
from wirebroker.net.listeners.ready_lines import shown_address

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable

    from wirebroker.config.listeners.listeners import ListenerConfig
    from wirebroker.net.settings import NetworkSettings


def bind_all(
    listeners: Iterable[ListenerConfig], settings: NetworkSettings
) -> list[tuple[ListenerConfig, socket.socket]]:
    """Bind listeners in their order.

    Raises:
        StartError: One cannot be bound; the others are closed.
    """
    bound: list[tuple[ListenerConfig, socket.socket]] = []
    for listener in listeners:
        try:
            sock = bind(listener.host, listener.port, settings)
        except OSError as error:
            for _, other in bound:
                other.close()
            raise StartError(
                f"cannot listen on {shown_address(listener.host or '*', listener.port)}: "
                f"{error.strerror or error}",
                _how_to_listen(error),
            ) from error
        bound.append((listener, sock))
    return bound


def endpoint_of(listener: ListenerConfig, sock: socket.socket) -> Endpoint:
    """Return a listener's endpoint for the registration."""
    port = sock.getsockname()[1]
    if listener.advertised is None:
        return Endpoint(listener.name, listener.host, port, listener.protocol_number)
    host, advertised_port = listener.advertised
    return Endpoint(listener.name, host, advertised_port or port, listener.protocol_number)


def _how_to_listen(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            "stop the process that uses it, or choose another port (--port N; 0 picks a free one)"
        )
    if error.errno == errno.EACCES:
        return "choose a port that needs no privilege (--port N)"
    return "choose an address that this machine has (--host HOST)"
