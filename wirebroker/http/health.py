"""The routes /live and /ready, for supervisors and load balancers.

    GET /live     200 as long as the event loop responds
    GET /ready    200 if clients are served; 503 with the reason while the broker starts, recovers
                  its logs, is fenced by the controller, or shuts down

Probes have no token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.http.message import HttpAnswer

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.http.message import HttpRequest
    from wirebroker.http.routes import Routes


def add_health(routes: Routes, not_ready_reason: Callable[[], str | None]) -> None:
    """Add both routes; `not_ready_reason` returns None if clients are served."""

    async def live(_request: HttpRequest) -> HttpAnswer:
        return HttpAnswer.of_text("live")

    async def ready(_request: HttpRequest) -> HttpAnswer:
        reason = not_ready_reason()
        if reason is None:
            return HttpAnswer.of_text("ready")
        return HttpAnswer.of_text(f"not ready: {reason}", 503)

    routes.add("GET", "/live", live, is_open=True)
    routes.add("GET", "/ready", ready, is_open=True)
