"""Client connections by software, listener and user, from the metrics of the brokers."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from starlette.exceptions import HTTPException

from wirebroker.console.model.http_settings import METRICS_URLS, http_settings
from wirebroker.console.pages.page import collector_of, page
from wirebroker.console.pages.sections import is_section_shown
from wirebroker.console.view.paging import ListQuery, page_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from wirebroker.console.client_metrics.broker_clients import BrokerClients


class ClientRow(NamedTuple):
    """Connections of one kind, and their brokers; `user` is None if unknown."""

    software: str
    version: str
    listener: str
    user: str | None
    connections: int
    broker_ids: tuple[str, ...]


class ScrapedBroker(NamedTuple):
    """A broker with a metrics page; `clients` is None if it was not read yet."""

    broker_id: int
    clients: BrokerClients | None


async def clients(request: Request) -> Response:
    """Show the connections of all brokers with a metrics page.

    Raises:
        HTTPException: 404, the console has no address of a metrics page.
    """
    collector = collector_of(request)
    if not is_section_shown("clients", collector):
        raise HTTPException(404, f"The cluster has no {METRICS_URLS} in the console's file.")
    known = collector.snapshot.clients
    urls = http_settings(collector.settings.properties).metrics_urls
    listed = await page_of(
        _rows(known),
        ListQuery.of(request.query_params),
        name=lambda row: f"{row.software} {row.version} {row.listener} {row.user or ''}",
        columns={
            "software": lambda row: (row.software, row.version),
            "listener": lambda row: row.listener,
            "user": lambda row: row.user,
            "count": lambda row: row.connections,
        },
        default_sort="-count",
    )
    missing = [
        str(broker_id) for broker_id in sorted(collector.snapshot.brokers.keys() - urls.keys())
    ]
    return page(
        request,
        "clients.html",
        section="clients",
        listed=listed,
        brokers=[ScrapedBroker(broker_id, known.get(broker_id)) for broker_id in sorted(urls)],
        total=sum(row.connection_count for row in known.values()),
        missing=missing,
        setting=METRICS_URLS,
    )


def _rows(known: Mapping[int, BrokerClients]) -> list[ClientRow]:
    counts: dict[tuple[str, str, str, str | None], dict[int, int]] = defaultdict(dict)
    for broker_id, of_broker in known.items():
        for row in of_broker.connections:
            counts[row.software, row.version, row.listener, row.user][broker_id] = row.connections
    return [
        ClientRow(*key, sum(by_broker.values()), tuple(map(str, sorted(by_broker))))
        for key, by_broker in counts.items()
    ]
