"""Access control for HTTP requests.

HTTP is not encrypted, and metrics reveal the names of topics and groups. So an address that other
machines can reach requires a token or `wirebroker.http.open=true`. On loopback without a token,
Host must name loopback, else DNS rebinding could make a browser read responses. Origin must name it
too, else a web page could make a browser send requests.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, NamedTuple

from wirebroker.base.addresses import is_loopback
from wirebroker.config import StartError
from wirebroker.http.message import HttpError
from wirebroker.net.listeners.ready_lines import shown_address

if TYPE_CHECKING:
    from wirebroker.config import Config
    from wirebroker.http.message import HttpRequest
    from wirebroker.http.routes import Route


class Access(NamedTuple):
    """Requirements for requests.

    Attributes:
        token: Expected as `Authorization: Bearer <token>`; None if not required.
        is_open: Whether other machines may connect without a token.
    """

    token: str | None
    is_open: bool

    @classmethod
    def of(cls, config: Config) -> Access:
        """Return a configuration's access rules."""
        token = config.optional_str("wirebroker.http.token")
        return cls(token, config.bool("wirebroker.http.open"))

    def check_address(self, host: str, port: int) -> None:
        """Refuse an address that other machines could reach without a token.

        Raises:
            StartError: The address is refused.
        """
        if self.token is None and not self.is_open and not is_loopback(host):
            raise StartError(
                f"wirebroker.http.listeners: {shown_address(host, port)} is reachable from "
                "other machines",
                "set a token (wirebroker.http.token), listen on 127.0.0.1, or allow access without "
                "a token (wirebroker.http.open=true)",
            )

    def check(self, request: HttpRequest, route: Route) -> None:
        """Check a request's token, or its Host and Origin headers.

        Raises:
            HttpError: 401 without the token; 403 for a foreign Host or Origin.
        """
        if route.is_open:
            return
        if self.token is not None:
            kind, _, client_token = request.headers.get("authorization", "").partition(" ")
            is_same = hmac.compare_digest(client_token.strip().encode(), self.token.encode())
            if kind.lower() != "bearer" or not is_same:
                headers = {"WWW-Authenticate": "Bearer"}
                raise HttpError(401, "send the token: Authorization: Bearer …", headers)
        elif not self.is_open and not _names_loopback(request.headers.get("host", "")):
            raise HttpError(403, "use localhost or a loopback address as the host, or set a token")
        elif not self.is_open and not _is_local_origin(request.headers.get("origin")):
            raise HttpError(403, "requests from other web origins are refused")


def _is_local_origin(origin: str | None) -> bool:
    if origin is None:
        return True
    _, scheme_end, host = origin.partition("://")
    return bool(scheme_end and host) and _names_loopback(host)


def _names_loopback(host: str) -> bool:
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    # HTTP/1.0 has no Host header; browsers do not use it.
    return not name or is_loopback(name)
