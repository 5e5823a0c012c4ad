"""Delivery services: pending records, dead letters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException

from wirebroker.console.delivery.delivery_state import (
    dead_letters_of_cluster,
    has_delivery,
    services_of,
)
from wirebroker.console.delivery.pending_reading import (
    MOST_RECORDS,
    is_readable,
    pending_records,
)
from wirebroker.console.pages.page import Answer, asked, collector_of, page
from wirebroker.console.view.paging import ListQuery, page_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from wirebroker.console.delivery.pending_reading import PendingRecords


async def delivery(request: Request) -> Response:
    """Show the services, the pending records of one, and topics of dead letters.

    Raises:
        HTTPException: 404, the cluster has none of these.
    """
    collector = collector_of(request)
    snapshot = collector.snapshot
    if not has_delivery(snapshot):
        raise HTTPException(
            404, f"Cluster {snapshot.name} has no delivery service and no topics of dead letters."
        )
    services = services_of(snapshot)
    wanted = request.query_params.get("group", "")
    chosen = next((row for row in services if wanted in {"", row.group}), None)
    pending: Answer[PendingRecords] = Answer(None, None)
    if chosen is not None and is_readable(chosen.pending):
        pending = await asked(pending_records(collector, chosen.pending))
    letters = await page_of(
        dead_letters_of_cluster(snapshot),
        ListQuery.of(request.query_params),
        name=lambda row: row.topic.name,
        columns={
            "name": lambda row: row.topic.name,
            "records": lambda row: row.topic.record_count,
            "rate": lambda row: row.topic.records_per_s,
        },
        default_sort="name",
    )
    return page(
        request,
        "delivery.html",
        section="delivery",
        services=services,
        chosen=chosen,
        is_readable=chosen is not None and is_readable(chosen.pending),
        most_records=MOST_RECORDS,
        pending=pending.value,
        listed=letters,
        failure=pending.failure,
    )
