"""Addresses of the HTTP server: `wirebroker.http.listeners=HOST:PORT,…`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from wirebroker.config.listeners.listeners import Address
from wirebroker.config.rows.row import ConfigError

if TYPE_CHECKING:
    from wirebroker.config.values import Config

_ADDRESS = re.compile(r"(?:\[([0-9a-fA-F:.%]+)\]|([^\[\]:/]*)):([0-9]{1,5})")


def http_listeners_of(config: Config) -> tuple[Address, ...]:
    """Return the addresses to open; empty if HTTP is off.

    Raises:
        ConfigError: An address is invalid.
    """
    return tuple(_address(item) for item in config.list("wirebroker.http.listeners"))


def _address(item: str) -> Address:
    match = _ADDRESS.fullmatch(item)
    if match is None or int(match.group(3)) > 65535:
        raise ConfigError(
            f"wirebroker.http.listeners: {item} cannot be used: write HOST:PORT, such as "
            "127.0.0.1:9404"
        )
    return Address(match.group(1) or match.group(2) or "", int(match.group(3)))
