"""Transactions and reassignments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.console.model import details
from wirebroker.console.pages.page import asked, collector_of, page
from wirebroker.console.view.paging import ListQuery, page_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


async def transactions(request: Request) -> Response:
    """Show transactional producers; open and hanging transactions come first."""
    collector = collector_of(request)
    answer = await asked(details.transactions(collector))
    listed = await page_of(
        answer.value or [],
        ListQuery.of(request.query_params),
        name=lambda row: row.transactional_id,
        columns={
            "id": lambda row: row.transactional_id,
            "state": lambda row: row.state,
            "started": lambda row: row.started_ms,
            "hanging": lambda row: (row.is_hanging, row.started_ms is not None),
        },
        default_sort="-hanging",
    )
    return page(
        request,
        "transactions.html",
        section="transactions",
        listed=listed,
        failure=answer.failure,
        hanging_count=sum(row.is_hanging for row in answer.value or ()),
    )


async def reassignments(request: Request) -> Response:
    """Show the replicas that are being moved."""
    collector = collector_of(request)
    answer = await asked(details.reassignments(collector))
    listed = await page_of(
        answer.value or [],
        ListQuery.of(request.query_params),
        name=lambda row: f"{row.topic}-{row.partition:010d}",
        columns={"partition": lambda row: (row.topic, row.partition)},
        default_sort="partition",
    )
    return page(
        request,
        "reassignments.html",
        section="reassignments",
        listed=listed,
        failure=answer.failure,
    )
