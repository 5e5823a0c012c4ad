"""A bound of the open streams: each holds a connection, and a search reads a topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.responses import PlainTextResponse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_PAGES: Final = "/c/"
# By the last part of the path: searches and downloads read as fast as they can.
STREAM_LIMITS: Final = {"events": 100, "tail": 20, "search": 8, "download": 4}


def stream_kind(scope: Scope) -> str | None:
    """Return the kind of stream that a request opens, or None."""
    if scope["type"] != "http" or not scope["path"].startswith(_PAGES):
        return None
    kind: str = scope["path"].rpartition("/")[2]
    return kind if kind in STREAM_LIMITS else None


class StreamLimit:
    """Middleware that refuses further streams of a kind with 503."""

    __slots__ = ("_app", "_open")

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._open = dict.fromkeys(STREAM_LIMITS, 0)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a stream, or refuse it."""
        kind = stream_kind(scope)
        if kind is None:
            await self._app(scope, receive, send)
            return
        if scope["method"] == "HEAD":
            response = PlainTextResponse(status_code=405, headers={"Allow": "GET"})
            await response(scope, receive, send)
            return
        if self._open[kind] >= STREAM_LIMITS[kind]:
            text = f"{self._open[kind]} streams of this kind are open: stop one, then try again.\n"
            response = PlainTextResponse(text, status_code=503, headers={"Retry-After": "5"})
            await response(scope, receive, send)
            return
        self._open[kind] += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._open[kind] -= 1
