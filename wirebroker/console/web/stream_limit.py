"""A bound of the open streams: each holds a connection, and a search reads a topic."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import PlainTextResponse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import ASGIApp, Receive, Scope, Send

_PAGES: Final = "/c/"
# By the last part of the path: searches and downloads read as fast as they can.
STREAM_LIMITS: Final = {"events": 100, "tail": 20, "search": 8, "download": 4}


def stream_kind(scope: Mapping[str, Any]) -> str | None:
    """Return the kind of stream that a request opens, or None."""
    if scope["type"] != "http" or not scope["path"].startswith(_PAGES):
        return None
    kind: str = scope["path"].rpartition("/")[2]
    return kind if kind in STREAM_LIMITS else None


class StreamLimit:
    """Middleware that refuses further streams of a kind with 503.

    Where users log in, one of them can have at most half of the streams of a kind.
    """

    __slots__ = ("_app", "_open")

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        # By kind and user; without logins every viewer has the name None.
        self._open: Counter[tuple[str, str | None]] = Counter()

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
        user = (kind, scope["viewer"].name)
        refusal = self._refusal(*user)
        if refusal:
            response = PlainTextResponse(refusal, status_code=503, headers={"Retry-After": "5"})
            await response(scope, receive, send)
            return
        self._open[user] += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._open[user] -= 1
            if not self._open[user]:
                del self._open[user]

    def _refusal(self, kind: str, name: str | None) -> str:
        """Return why a user cannot open a further stream of a kind, or an empty text."""
        most = STREAM_LIMITS[kind]
        if sum(count for (other, _), count in self._open.items() if other == kind) >= most:
            return f"{most} streams of this kind are open: stop one, then try again.\n"
        if name is not None and self._open[kind, name] >= most // 2:
            return f"You have {most // 2} streams of this kind open: stop one, then try again.\n"
        return ""
