"""Refuse requests that other sites cause, and what the console never serves.

A page of another site could make a browser send requests to the console. So each request must name
the console as its Host (a name that another site controls may resolve to its address: DNS
rebinding) and come from the console's own pages: browsers say so in Origin and Sec-Fetch-Site. A
link from another site may only open a page, not a stream: streams are few and read whole topics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from starlette.responses import PlainTextResponse

from wirebroker.console.api.json_responses import error_response
from wirebroker.console.web.stream_limit import stream_kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

    from wirebroker.console.web.site_address import SiteAddress

_READING: Final = frozenset({"GET", "HEAD"})
_METHODS: Final = frozenset({*_READING, "POST", "DELETE"})
_MOST_TARGET_BYTES: Final = 16 * 1024
_OWN_SITES: Final = frozenset({"same-origin", "none"})
API_PATH: Final = "/api/"


class RequestCheck:
    """Middleware that refuses a request before any page runs."""

    __slots__ = ("_app", "_site")

    def __init__(self, app: ASGIApp, site: SiteAddress) -> None:
        self._app = app
        self._site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "http":
            refusal = refusal_of(scope, self._site)
            if refusal is not None:
                await _refusal_response(scope, *refusal)(scope, receive, send)
                return
            # Redirects have it: behind a proxy, the connection has another one.
            scope["scheme"] = self._site.scheme
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        await self._app(scope, receive, send)


def _refusal_response(scope: Scope, status: int, reason: str) -> Response:
    if scope["path"].startswith(API_PATH):
        return error_response(status, reason)
    return PlainTextResponse(f"{reason}\n", status_code=status)


def refusal_of(scope: Scope, site: SiteAddress) -> tuple[int, str] | None:
    """Return the status and reason for which a request is refused, or None."""
    if scope["method"] not in _METHODS:
        return 405, f"The console serves only {', '.join(sorted(_METHODS))}."
    if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > _MOST_TARGET_BYTES:
        return 414, f"The address is longer than {_MOST_TARGET_BYTES} bytes."
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    if len(hosts) != 1:
        return 400, "The request must have one Host header."
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    host = _host_of(f"http://{headers['host']}")
    if host is None or not site.is_served(host):
        return 421, (
            f"The console does not serve the host {headers['host'][:100]!r}: open it as"
            f" {site.names_text}, or start it with --allowed-host NAME."
        )
    return _refusal_by_site(scope, headers, site)


def _refusal_by_site(
    scope: Scope, headers: Mapping[str, str], site: SiteAddress
) -> tuple[int, str] | None:
    origin = headers.get("origin")
    if origin is not None and origin != f"{site.scheme}://{headers['host']}":
        return 403, "Requests from pages of other sites are refused (Origin)."
    fetch_site = headers.get("sec-fetch-site")
    is_link_to_page = (
        scope["method"] in _READING
        and stream_kind(scope) is None
        and headers.get("sec-fetch-mode") == "navigate"
        and headers.get("sec-fetch-dest", "document") == "document"
    )
    if (fetch_site or "none") not in _OWN_SITES and not is_link_to_page:
        return 403, "Requests from pages of other sites are refused (Sec-Fetch-Site)."
    is_of_browser = not scope["path"].startswith(API_PATH)
    if scope["method"] not in _READING and is_of_browser and not (origin or fetch_site):
        return 403, "A form's request must have the header Origin or Sec-Fetch-Site."
    return None


def _host_of(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        _ = parts.port  # ValueError for a text
    except ValueError:
        return None
    is_host_alone = not (parts.path or parts.query or parts.fragment or parts.username)
    return parts.hostname if is_host_alone else None
