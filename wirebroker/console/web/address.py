"""Where the console listens: only on loopback, until logins exist."""

from __future__ import annotations

import ipaddress
from typing import Final

DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 8989
_LOCAL_NAME: Final = "localhost"


class AddressError(ValueError):
    """An address on which the console must not listen; the message says what to do."""


def checked_host(host: str) -> str:
    """Return a loopback address.

    Raises:
        AddressError: It is another address.
    """
    if host == _LOCAL_NAME:
        return DEFAULT_HOST
    try:
        is_loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback:
        raise AddressError(
            f"cannot listen on {host}: the console has no login yet, so it listens only on this"
            " machine's loopback addresses (use --host 127.0.0.1, and from elsewhere an SSH tunnel:"
            f" ssh -L {DEFAULT_PORT}:127.0.0.1:{DEFAULT_PORT} MACHINE)"
        )
    return host


def is_local_name(host: str) -> bool:
    """Return whether the host of a request's Host or Origin is loopback."""
    name = host.removeprefix("[").removesuffix("]").rstrip(".").lower()
    if name == _LOCAL_NAME:
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
