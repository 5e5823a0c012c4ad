"""The poll of the brokers' metrics pages; see wirebroker/console/client_metrics."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from wirebroker.client.errors import ClientError
from wirebroker.console.client_metrics.broker_clients import BrokerClients, broker_clients
from wirebroker.console.client_metrics.scrapes import read_timed_samples

if TYPE_CHECKING:
    from wirebroker.console.model.polled_cluster import PolledCluster

# A poll reads the pages of at most this number of brokers, the longest waiting first.
_MOST_AT_ONCE: Final = 10
# Reading its page takes at most this share of a broker's time.
_SHARE: Final = 0.005
_MOST_PAUSE_S: Final = 300.0
# A page that cannot be read is not tried again for this time.
_RETRY_S: Final = 60.0


async def poll_clients(cluster: PolledCluster) -> None:
    """Read the metrics pages that are due; store a failure with its broker's values."""
    due = cluster.state.clients_due
    now = cluster.clock.monotonic()
    ready = [broker_id for broker_id in cluster.http.metrics_urls if due.get(broker_id, now) <= now]
    ready.sort(key=lambda broker_id: due.get(broker_id, 0.0))
    await asyncio.gather(*(_read(cluster, broker_id) for broker_id in ready[:_MOST_AT_ONCE]))


async def _read(cluster: PolledCluster, broker_id: int) -> None:
    state, clock, http = cluster.state, cluster.clock, cluster.http
    try:
        page, seconds = await read_timed_samples(http.metrics_urls[broker_id], http.token, clock)
    except ClientError as error:
        before = state.clients.get(broker_id, BrokerClients())
        state.clients[broker_id] = before._replace(failure=str(error))
        state.clients_due[broker_id] = clock.monotonic() + _RETRY_S
        return
    state.clients[broker_id] = broker_clients(page, clock.now_ms())
    state.clients_due[broker_id] = clock.monotonic() + min(_MOST_PAUSE_S, seconds / _SHARE)
