"""Brokers with an authorizer, on which changes of the console are made."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from tests.support.brokers.collectors import collecting, snapshot_when
from tests.support.brokers.servers import ONE_NODE, running
from wirebroker.client.topics.topics import create_topics
from wirebroker.config.rows.authorizer import STANDARD

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from wirebroker.console.model.collector import Collector

GUARDED: Final = {
    **ONE_NODE,
    "authorizer.class.name": STANDARD,
    "super.users": "User:ANONYMOUS",
}
OPEN_BY_DEFAULT: Final = {**GUARDED, "allow.everyone.if.no.acl.found": "true"}
TOPICS: Final = {"orders": 2, "orders-archive": 1, "payments": 1}


@contextlib.asynccontextmanager
async def guarded_cluster(
    directory: Path,
    settings: Mapping[str, str] = GUARDED,
    properties: Mapping[str, str] | None = None,
) -> AsyncIterator[Collector]:
    """Run a broker with topics, and a collector that has read them."""
    async with running(directory, settings=dict(settings)) as server:
        host, port = server.address
        async with collecting(f"{host}:{port}", properties) as collector:
            await create_topics(collector.client, TOPICS, configs={})
            await snapshot_when(collector, lambda snapshot: TOPICS.keys() <= snapshot.topics.keys())
            yield collector
