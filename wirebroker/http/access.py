"""Who may ask over HTTP.

Nothing is encrypted, and whoever reads metrics reads names of topics and groups. So an address
beyond this machine is opened only with a token, or where somebody says that it may be open. On
loopback, without a token, the Host header has to name loopback too: else a web page, by a name of
its own that leads to 127.0.0.1, could have its visitor's browser ask us. By our own name it could
still have it send something: so has Origin to, which browsers add.
"""

from __future__ import annotations

import hmac
from ipaddress import ip_address
from typing import TYPE_CHECKING, NamedTuple

from wirebroker.config import StartError
from wirebroker.http.message import HttpError
from wirebroker.net.listeners.ready_lines import is_loopback, shown_address

if TYPE_CHECKING:
    from wirebroker.config import Config
    from wirebroker.http.message import HttpRequest
    from wirebroker.http.routes import Route


class Access(NamedTuple):
    """What a request must bring.

    Attributes:
        token: Expected as `Authorization: Bearer <token>`; None: nothing is.
        is_open: Whether addresses beyond this machine do without one.
    """

    token: str | None
    is_open: bool

    @classmethod
    def of(cls, config: Config) -> Access:
        """Read what the configuration says."""
        token = config.optional_str("wirebroker.http.token")
        return cls(token, config.bool("wirebroker.http.open"))

    def check_address(self, host: str, port: int) -> None:
        """Refuse an address that others could reach without a token.

        Args:
            host: The numeric address that is bound.
            port: Its port.

        Raises:
            StartError: It is one.
        """
        if self.token is None and not self.is_open and not is_loopback(host):
            raise StartError(
                f"wirebroker.http.listeners: {shown_address(host, port)} is open beyond this "
                "machine",
                "give a token (wirebroker.http.token), listen at 127.0.0.1, or say that everybody "
                "may read (wirebroker.http.open=true)",
            )

    def check(self, request: HttpRequest, route: Route) -> None:
        """Refuse a request that does not bring what it must.

        Raises:
            HttpError: 401 without the token, 403 by a name that is not ours.
        """
        if route.is_open:
            return
        if self.token is not None:
            kind, _, given = request.headers.get("authorization", "").partition(" ")
            same = hmac.compare_digest(given.strip().encode(), self.token.encode())
            if kind.lower() != "bearer" or not same:
                headers = {"WWW-Authenticate": "Bearer"}
                raise HttpError(401, "bring the token, Authorization: Bearer …", headers)
        elif not self.is_open and not _names_loopback(request.headers.get("host", "")):
            raise HttpError(403, "ask by the name localhost or by the address")
        elif not self.is_open and not _is_ours(request.headers.get("origin")):
            raise HttpError(403, "web pages of others may not ask")


def _is_ours(origin: str | None) -> bool:
    """Tell whether a request comes from no web page, or from one of this machine."""
    if origin is None:
        return True
    _, scheme_end, host = origin.partition("://")
    return bool(scheme_end and host) and _names_loopback(host)


def _names_loopback(host: str) -> bool:
    """Tell whether a Host header names this machine as it alone reaches itself."""
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    if name.lower() in {"", "localhost"}:  # HTTP/1.0 has no such header, and browsers no HTTP/1.0
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False
