"""The application: routes, checks, error pages, and the collectors' life."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from wirebroker.console.pages import (
    access,
    brokers,
    groups,
    messages,
    operations,
    overview,
    streams,
    topics,
)
from wirebroker.console.pages.page import Console
from wirebroker.console.view.assets import Assets
from wirebroker.console.view.rendering import Templates
from wirebroker.console.web.request_check import RequestCheck
from wirebroker.console.web.security_headers import SecurityHeaders
from wirebroker.console.web.stream_limit import StreamLimit

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from wirebroker.base.clock import Clock
    from wirebroker.console.model.collector import Collector

_A_YEAR: Final = "public, max-age=31536000, immutable"
_PAGES: Final[dict[str, Any]] = {
    "": overview.overview,
    "acls": access.acls,
    "broker": brokers.broker,
    "brokers": brokers.brokers,
    "events": streams.events,
    "group": groups.group,
    "groups": groups.groups,
    "quorum": brokers.quorum,
    "quotas": access.quotas,
    "reassignments": operations.reassignments,
    "topic": topics.topic,
    "topic/configs": topics.topic_configs,
    "topic/download": messages.download,
    "topic/messages": messages.messages,
    "topic/record": messages.record,
    "topic/search": streams.search,
    "topic/stopped": streams.stopped,
    "topic/tail": streams.tail,
    "topics": topics.topics,
    "transactions": operations.transactions,
    "users": access.users,
}


def make_app(collectors: Sequence[Collector], clock: Clock) -> ASGIApp:
    """Return the application; its lifespan starts and stops the collectors.

    The checks are around it, not in it: Starlette's own error responses get the headers too.
    """
    assets = Assets()
    templates = Templates(assets)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncGenerator[None]:
        for collector in collectors:
            await collector.start()
        try:
            yield
        finally:
            await asyncio.gather(*(collector.stop() for collector in collectors))

    async def static(request: Request) -> Response:
        asset = assets.get(request.path_params["name"])
        if asset is None:
            raise HTTPException(404, "There is no such file.")
        return Response(
            asset.content,
            headers={"Content-Type": asset.content_type, "Cache-Control": _A_YEAR},
        )

    async def error_page(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return _error_page(request, error, templates)

    app = Starlette(
        routes=[
            Route("/", overview.clusters),
            Route("/static/{name}", static),
            *(Route(f"/c/{{cluster}}/{path}", page) for path, page in _PAGES.items()),
        ],
        exception_handlers={HTTPException: error_page},
        lifespan=lifespan,
    )
    app.state.console = Console(
        {collector.settings.name: collector for collector in collectors}, templates, clock
    )
    return SecurityHeaders(RequestCheck(StreamLimit(app)))


def _error_page(request: Request, error: HTTPException, templates: Templates) -> Response:
    text = templates.render(
        "error.html",
        status=error.status_code,
        reason=error.detail,
        is_part=request.headers.get("hx-request") == "true",
    )
    return HTMLResponse(text, status_code=error.status_code, headers=error.headers)
