"""The application: routes, checks, error pages, and the collectors' life."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from wirebroker.console.api.endpoints import ENDPOINTS
from wirebroker.console.api.json_responses import error_response as json_error
from wirebroker.console.audit.audit_log import AuditLog
from wirebroker.console.changes.making.notices import Notices
from wirebroker.console.changes.making.pending_plans import PendingPlans
from wirebroker.console.changes.making.runner import ChangeRunner
from wirebroker.console.login.access import ConsoleAccess
from wirebroker.console.model.rights import log_missing_rights
from wirebroker.console.pages import (
    about,
    access,
    access_check,
    brokers,
    changes,
    clients,
    delivery,
    groups,
    login,
    messages,
    operations,
    overview,
    streams,
    testing,
    topics,
)
from wirebroker.console.pages.body_budget import BodyBudget
from wirebroker.console.pages.page import Console, console_of
from wirebroker.console.view.assets import Assets
from wirebroker.console.view.rendering import Templates
from wirebroker.console.web.request_check import API_PATH, RequestCheck
from wirebroker.console.web.security_headers import SecurityHeaders
from wirebroker.console.web.site_address import SiteAddress
from wirebroker.console.web.stream_limit import StreamLimit
from wirebroker.console.web.viewer_check import ViewerCheck
from wirebroker.console.web_settings import DEFAULTS, audit_file

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from wirebroker.base.clock import Clock
    from wirebroker.console.model.collector import Collector
    from wirebroker.console.web_settings import WebSettings

_BUG: Final = "The console failed; see its log."
_A_YEAR: Final = "public, max-age=31536000, immutable"
_PAGES: Final[dict[str, Any]] = {
    "": overview.overview,
    "about": about.about,
    "acls": access.acls,
    "acls/check": access_check.acl_check,
    "broker": brokers.broker,
    "broker/loggers": brokers.broker_loggers,
    "brokers": brokers.brokers,
    "change/{kind}": changes.change_form,
    "changes": changes.change_runs,
    "changes/run": changes.change_run,
    "clients": clients.clients,
    "delivery": delivery.delivery,
    "events": streams.events,
    "group": groups.group,
    "groups": groups.groups,
    "quorum": brokers.quorum,
    "quotas": access.quotas,
    "reassignments": operations.reassignments,
    "testing": testing.testing,
    "topic": topics.topic,
    "topic/configs": topics.topic_configs,
    "topic/download": messages.download,
    "topic/messages": messages.messages,
    "topic/record": messages.record,
    "topic/search": streams.search,
    "topic/stopped": streams.stopped,
    "topic/tail": streams.tail,
    "topic/written": topics.topic_written,
    "topics": topics.topics,
    "transactions": operations.transactions,
    "users": access.users,
}
_SENT_FORMS: Final[dict[str, Any]] = {
    "change/{kind}": changes.change_plan,
    "change/{kind}/apply": changes.change_apply,
    "changes/stop": changes.change_stop,
}


def make_app(
    collectors: Sequence[Collector], clock: Clock, settings: WebSettings = DEFAULTS
) -> ASGIApp:
    """Return the application; its lifespan starts and stops the collectors.

    The checks are around it, not in it: Starlette's own error responses get the headers too.

    Raises:
        CredentialError: A file of users or tokens cannot be used.
    """
    site = SiteAddress.of(settings)
    console = _console(collectors, clock, settings)
    app = Starlette(
        routes=_routes(),
        exception_handlers={HTTPException: _error_response, Exception: _bug_response},
        lifespan=_life_of(console),
    )
    app.state.console = console
    checked = ViewerCheck(StreamLimit(app), console.access, site)
    return SecurityHeaders(RequestCheck(checked, site))


def _routes() -> list[Route]:
    pages = [Route(f"/c/{{cluster}}/{path}", page) for path, page in _PAGES.items()]
    sent_forms = [
        Route(f"/c/{{cluster}}/{path}", page, methods=["POST"])
        for path, page in _SENT_FORMS.items()
    ]
    api = [
        Route(f"{API_PATH}v1/{path}", endpoint, methods=[method])
        for method, path, endpoint in ENDPOINTS
    ]
    return [
        Route("/", overview.clusters),
        Route("/static/{name}", _static),
        Route(login.LOGIN_PATH, login.login_page),
        Route(login.LOGIN_PATH, login.log_in, methods=["POST"]),
        Route(login.LOGOUT_PATH, login.log_out, methods=["POST"]),
        *sent_forms,
        *pages,
        *api,
    ]


def _life_of(console: Console) -> Callable[[Starlette], AbstractAsyncContextManager[None]]:
    """Return the start and stop of the collectors; changes that run are stopped before them."""
    collectors = console.collectors.values()

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncGenerator[None]:
        for collector in collectors:
            await collector.start()
        reports = [
            asyncio.create_task(
                log_missing_rights(collector, is_read_only=console.is_read_only), name="rights"
            )
            for collector in collectors
        ]
        try:
            yield
        finally:
            for report in reports:
                report.cancel()
            await asyncio.gather(*reports, return_exceptions=True)
            await console.runner.close()
            await asyncio.gather(*(collector.stop() for collector in collectors))

    return lifespan


async def _static(request: Request) -> Response:
    asset = console_of(request).templates.assets.get(request.path_params["name"])
    if asset is None:
        raise HTTPException(404, "There is no such file.")
    return Response(
        asset.content,
        headers={"Content-Type": asset.content_type, "Cache-Control": _A_YEAR},
    )


async def _error_response(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if request.url.path.startswith(API_PATH):
        return json_error(error.status_code, error.detail, error.headers)
    return _error_page(request, error)


async def _bug_response(request: Request, _error: Exception) -> Response:
    """Return a bug's response; Starlette raises the error again, for the log."""
    if request.url.path.startswith(API_PATH):
        return json_error(500, _BUG)
    return PlainTextResponse(f"{_BUG}\n", 500)


def _console(collectors: Sequence[Collector], clock: Clock, settings: WebSettings) -> Console:
    return Console(
        collectors={collector.settings.name: collector for collector in collectors},
        templates=Templates(Assets()),
        clock=clock,
        access=ConsoleAccess(clock, settings.users, settings.tokens),
        runner=ChangeRunner(AuditLog(audit_file(settings), clock), clock),
        plans=PendingPlans(clock),
        notices=Notices(),
        bodies=BodyBudget(),
        is_read_only=settings.is_read_only,
    )


def _error_page(request: Request, error: HTTPException) -> Response:
    text = console_of(request).templates.render(
        "error.html",
        status=error.status_code,
        reason=error.detail,
        is_part=request.headers.get("hx-request") == "true",
    )
    return HTMLResponse(text, status_code=error.status_code, headers=error.headers)
