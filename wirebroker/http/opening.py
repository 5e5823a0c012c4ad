"""Start of the HTTP server, before the logs are recovered."""

from __future__ import annotations

import errno
import logging
import re
from typing import TYPE_CHECKING

from wirebroker.config import ConfigError, StartError
from wirebroker.config.listeners.listeners import Address
from wirebroker.http.access import Access
from wirebroker.http.health import add_health
from wirebroker.http.server import HttpServer
from wirebroker.net.listeners.listener import bind
from wirebroker.net.listeners.ready_lines import shown_address
from wirebroker.net.settings import NetworkSettings

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from wirebroker.config import Config

logger = logging.getLogger("wirebroker.http")

_ADDRESS = re.compile(r"(?:\[([0-9a-fA-F:.%]+)\]|([^\[\]:/]*)):([0-9]{1,5})")


async def open_http(config: Config, *, not_ready_reason: Callable[[], str | None]) -> HttpServer:
    """Serve at the addresses of `wirebroker.http.listeners`.

    Raises:
        StartError: A required address cannot be bound, or `Access` refuses it.
        ConfigError: An address is invalid.
    """
    access = Access.of(config)
    addresses = [_address(item) for item in config.list("wirebroker.http.listeners")]
    settings = NetworkSettings()
    sockets: list[socket.socket] = []
    try:
        for address in addresses:
            sock = _bind(address, settings, is_optional=config.bool("wirebroker.http.optional"))
            if sock is not None:
                sockets.append(sock)
                access.check_address(*sock.getsockname()[:2])
    except BaseException:
        for sock in sockets:
            sock.close()
        raise
    server = HttpServer(sockets, access)
    add_health(server.routes, not_ready_reason)
    await server.start()
    return server


def _address(item: str) -> Address:
    match = _ADDRESS.fullmatch(item)
    if match is None or int(match.group(3)) > 65535:
        raise ConfigError(
            f"wirebroker.http.listeners: {item} cannot be used: write HOST:PORT, such as "
            "127.0.0.1:9404"
        )
    return Address(match.group(1) or match.group(2) or "", int(match.group(3)))


def _bind(
    address: Address, settings: NetworkSettings, *, is_optional: bool
) -> socket.socket | None:
    """Return a listening socket; None if the address is in use and optional."""
    try:
        return bind(address.host, address.port, settings)
    except OSError as error:
        address_text = shown_address(address.host or "*", address.port)
        message = f"cannot listen on {address_text} for HTTP: {error.strerror or error}"
        if is_optional and error.errno == errno.EADDRINUSE:
            logger.warning("%s; continuing without it", message)
            return None
        raise StartError(message, "choose another address (wirebroker.http.listeners)") from error
