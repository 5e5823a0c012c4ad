"""/live and /ready: what supervisors and load balancers ask.

    GET /live     200 as long as the broker's loop answers at all
    GET /ready    200 if clients are served; 503 with the reason while it starts, recovers its logs,
                  is fenced by the controller, or stops

Anybody may ask, without a token: a probe has none, and learns nothing but this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.http.message import HttpAnswer

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.http.message import HttpRequest
    from wirebroker.http.routes import Routes


def add_health(routes: Routes, why_not_ready: Callable[[], str | None]) -> None:
    """Add both routes.

    Args:
        routes: Where to.
        why_not_ready: What keeps clients from being served; None: nothing.
    """

    async def live(_request: HttpRequest) -> HttpAnswer:
        return HttpAnswer.of_text("live")

    async def ready(_request: HttpRequest) -> HttpAnswer:
        reason = why_not_ready()
        if reason is None:
            return HttpAnswer.of_text("ready")
        return HttpAnswer.of_text(f"not ready: {reason}", 503)

    routes.add("GET", "/live", live, is_open=True)
    routes.add("GET", "/ready", ready, is_open=True)
