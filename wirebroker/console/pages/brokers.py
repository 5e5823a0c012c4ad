"""Brokers and the quorum of controllers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException

from wirebroker.console.changes.kinds.loggers import ROOT_LOGGER
from wirebroker.console.model import details
from wirebroker.console.pages.config_list import chosen_configs
from wirebroker.console.pages.page import asked, collector_of, page
from wirebroker.console.view.formats import number, size
from wirebroker.console.view.paging import ListQuery, page_of
from wirebroker.console.view.plots import bar_plot

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from wirebroker.console.model.snapshot import BrokerInfo, ClusterSnapshot


async def brokers(request: Request) -> Response:
    """Show the brokers, and how leaders, replicas and data are spread over them."""
    snapshot = collector_of(request).snapshot
    rows = [snapshot.brokers[broker_id] for broker_id in sorted(snapshot.brokers)]
    sizes = [(f"broker {row.broker_id}", float(row.size_bytes or 0)) for row in rows]
    leaders = [(f"broker {row.broker_id}", float(row.leader_count)) for row in rows]
    return page(
        request,
        "brokers.html",
        section="brokers",
        rows=rows,
        leaders_plot=bar_plot(leaders, title="Partitions led by each broker", text_of=number),
        size_plot=bar_plot(sizes, title="Data stored by each broker", text_of=size, is_binary=True),
    )


async def broker(request: Request) -> Response:
    """Show a broker: its log directories and configs."""
    collector = collector_of(request)
    row = _broker_of(request, collector.snapshot)
    answer = await asked(details.configs(collector, "broker", str(row.broker_id)))
    return page(
        request,
        "broker.html",
        section="brokers",
        broker=row,
        configs=chosen_configs(answer, request.query_params),
    )


async def broker_loggers(request: Request) -> Response:
    """Show a page of a broker's loggers with their levels."""
    collector = collector_of(request)
    row = _broker_of(request, collector.snapshot)
    answer = await asked(details.configs(collector, "loggers", str(row.broker_id)))
    listed = await page_of(
        answer.value or [],
        ListQuery.of(request.query_params),
        name=lambda logger: logger.name,
        columns={
            "name": lambda logger: logger.name,
            "level": lambda logger: (logger.value or "", logger.name),
        },
        default_sort="name",
    )
    return page(
        request,
        "broker_loggers.html",
        section="brokers",
        broker=row,
        listed=listed,
        failure=answer.failure,
        root=ROOT_LOGGER,
    )


def _broker_of(request: Request, snapshot: ClusterSnapshot) -> BrokerInfo:
    """Return the broker of the parameter `id`.

    Raises:
        HTTPException: 404, it is not in the snapshot.
    """
    text = request.query_params.get("id", "")
    broker_id = int(text) if text.isascii() and text.isdigit() and len(text) < 11 else -1
    row = snapshot.brokers.get(broker_id)
    if row is None:
        raise HTTPException(404, f"There is no broker {text[:20]!r} in this cluster.")
    return row


async def quorum(request: Request) -> Response:
    """Show the controllers, and how far each node is with the metadata."""
    snapshot = collector_of(request).snapshot
    return page(request, "quorum.html", section="quorum", quorum=snapshot.quorum)
