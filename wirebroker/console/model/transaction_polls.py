"""The poll of open transactions, to find those that hang."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from wirebroker.client.transactions.transactions import (
    ONGOING,
    describe_transactions,
    list_transactions,
)

if TYPE_CHECKING:
    from wirebroker.client.transactions.transactions import DescribedTransaction
    from wirebroker.console.model.polled_cluster import PolledCluster

# Transactions of a request, and of a poll.
_CHUNK: Final = 50
_MOST: Final = 1000
# Time between two clocks, and between the timeout and the abort.
_GRACE_MS: Final = 15_000


async def poll_transactions(cluster: PolledCluster) -> None:
    """Read the transactions that are open for longer than their timeout."""
    listed = await cluster.timed(list_transactions(cluster.client, states=(ONGOING,)))
    by_coordinator: dict[int, list[str]] = defaultdict(list)
    for transaction in listed[:_MOST]:
        by_coordinator[transaction.coordinator_id].append(transaction.transactional_id)
    described: list[DescribedTransaction] = []

    async def read(broker_id: int) -> None:
        ids = by_coordinator[broker_id]
        for first in range(0, len(ids), _CHUNK):
            described.extend(
                await cluster.timed(
                    describe_transactions(cluster.client, broker_id, ids[first : first + _CHUNK]),
                    broker_id,
                )
            )

    await cluster.on_each_broker(read, by_coordinator)
    now_ms = cluster.clock.now_ms()
    cluster.state.transactions = [
        transaction for transaction in described if is_hanging(transaction, now_ms)
    ]


def is_hanging(transaction: DescribedTransaction, now_ms: int) -> bool:
    """Return whether its coordinator should have aborted a transaction."""
    open_ms = transaction.open_ms(now_ms)
    return open_ms is not None and open_ms > transaction.timeout_ms + _GRACE_MS
