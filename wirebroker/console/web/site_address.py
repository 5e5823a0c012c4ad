"""The names and scheme of the console, its cookie, and the clients' addresses."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.console.web_settings import is_loopback

if TYPE_CHECKING:
    from starlette.types import Scope

    from wirebroker.console.web_settings import WebSettings

_LOCAL_NAME: Final = "localhost"
_FORWARDED: Final = b"x-forwarded-for"
_COOKIE: Final = "wirebroker-console"


class SiteAddress(NamedTuple):
    """How browsers reach the console.

    Attributes:
        names: Lower-case hosts that requests may name, besides those of this machine.
        is_local: Whether requests may name `localhost` and loopback addresses.
        is_secure: Whether browsers use TLS.
        is_behind_proxy: Whether a proxy adds X-Forwarded-For.
    """

    names: frozenset[str] = frozenset()
    is_local: bool = True
    is_secure: bool = False
    is_behind_proxy: bool = False

    @classmethod
    def of(cls, settings: WebSettings) -> SiteAddress:
        """Return the address that the settings describe."""
        is_local = is_loopback(settings.host)
        names = {_plain(name) for name in settings.allowed_hosts}
        if not is_local and not ipaddress.ip_address(settings.host).is_unspecified:
            names.add(settings.host.lower())
        return cls(
            frozenset(names),
            is_local,
            settings.tls_cert is not None or settings.is_behind_proxy,
            settings.is_behind_proxy,
        )

    @property
    def scheme(self) -> str:
        """The scheme of pages' addresses."""
        return "https" if self.is_secure else "http"

    @property
    def names_text(self) -> str:
        """The names for messages."""
        names = sorted(self.names)
        return ", ".join([*names, "localhost or 127.0.0.1"] if self.is_local else names)

    def is_served(self, host: str) -> bool:
        """Return whether the host of a request is one of the names."""
        name = _plain(host)
        return name in self.names or (self.is_local and is_local_name(name))

    def cookie_name(self, scope: Scope) -> str:
        """Return the cookie's name; `__Host-` makes browsers refuse it from other hosts.

        Without TLS it contains the port: all ports of a host share their cookies.
        """
        if self.is_secure:
            return f"__Host-{_COOKIE}"
        server = scope.get("server")
        return f"{_COOKIE}-{server[1]}" if server else _COOKIE

    def client_of(self, scope: Scope) -> str:
        """Return the address of a request's client; the last hop that the proxy has seen."""
        client = scope.get("client")
        address = client[0] if client else "unknown"
        if not self.is_behind_proxy:
            return address
        forwarded = [value for name, value in scope["headers"] if name == _FORWARDED]
        if not forwarded:
            return address
        last = forwarded[-1].decode("latin-1").rpartition(",")[2].strip()
        try:
            return str(ipaddress.ip_address(last))
        except ValueError:
            return address


def is_local_name(name: str) -> bool:
    """Return whether a host is this machine."""
    if name == _LOCAL_NAME:
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _plain(host: str) -> str:
    return host.removeprefix("[").removesuffix("]").rstrip(".").lower()
