"""The console's viewer, its own user in the cluster, and the rights of both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.console.changes.kinds.table import CHANGES
from wirebroker.console.model import details
from wirebroker.console.pages.page import asked, collector_of, console_of, page

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


async def about(request: Request) -> Response:
    """Show the user and the role, the console's Kafka user, and the rights that it lacks."""
    is_read_only = console_of(request).is_read_only
    missing = details.missing_rights(collector_of(request), is_read_only=is_read_only)
    answer = await asked(missing)
    return page(
        request,
        "about.html",
        section="about",
        missing=answer.value,
        failure=answer.failure,
        kinds=sorted(CHANGES.values(), key=lambda kind: (kind.section, kind.title)),
    )
