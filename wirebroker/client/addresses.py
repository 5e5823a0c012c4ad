"""Addresses of a cluster as text: `host:port,host:port`."""

from __future__ import annotations

from typing import Final

from wirebroker.net.client.settings import PeerAddress

DEFAULT_PORT: Final = 9092


def addresses_of(text: str) -> list[PeerAddress]:
    """Parse a list of addresses; the default port is 9092, `[::1]:9092` is IPv6.

    Raises:
        ValueError: An address is invalid.
    """
    return [_address(part.strip()) for part in text.split(",") if part.strip()] or [_address("")]


def _address(text: str) -> PeerAddress:
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":")
    elif text.count(":") > 1:  # an IPv6 address without brackets
        host, port = text, ""
    else:
        host, _, port = text.partition(":")
    port = port or str(DEFAULT_PORT)
    if not host or not (port.isascii() and port.isdigit() and 0 < int(port) <= 0xFFFF):
        raise ValueError(f"{text!r} is not an address: write HOST:PORT")
    return PeerAddress(host, int(port))
