"""Pending records of a delivery service, read from its topic within bounds."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.base.clock import SystemClock
from wirebroker.base.threads import Work, in_thread
from wirebroker.client.errors import ClientError
from wirebroker.console.model.settings import open_client
from wirebroker.delivery.operations import (
    MOST_SEARCHED_BYTES,
    MOST_SEARCHED_RECORDS,
    find_pending,
    pending_rows,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any, TypeVar

    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.console.model.collector import Collector
    from wirebroker.console.model.settings import ClusterSettings
    from wirebroker.console.model.topic_info import TopicInfo
    from wirebroker.delivery.operations import PendingRow

    _Result = TypeVar("_Result")

MOST_RECORDS: Final = MOST_SEARCHED_RECORDS
_MOST_ROWS: Final = 100
_TIMEOUT_S: Final = 60.0


class PendingRecords(NamedTuple):
    """The pending records that are due next, and the number of all."""

    rows: tuple[PendingRow, ...]
    total: int


def is_readable(topic: TopicInfo) -> bool:
    """Return whether a pending topic is small enough to be read for a page."""
    records, size = topic.record_count, topic.size_bytes
    return records is not None and records <= MOST_RECORDS and (size or 0) <= MOST_SEARCHED_BYTES


async def pending_records(collector: Collector, topic: TopicInfo) -> PendingRecords:
    """Return the pending records of a readable topic.

    Raises:
        ClientError: The topic cannot be read.
    """

    async def read() -> PendingRecords:
        rows, total = await _in_own_loop(
            collector.settings,
            lambda client: pending_rows(client, topic.name, target=None, most=_MOST_ROWS),
        )
        return PendingRecords(tuple(rows), total)

    return await collector.details.get(("pending", topic.name), read)


async def pending_record(
    collector: Collector, topic: TopicInfo, *, delivery_id: str | None, entry: str | None
) -> PendingRow | None:
    """Return the pending record with an id, or an entry; None if it is not pending.

    Raises:
        ClientError: The topic cannot be read.
    """
    return await _in_own_loop(
        collector.settings,
        lambda client: find_pending(client, topic.name, delivery_id=delivery_id, entry=entry),
    )


async def _in_own_loop(
    settings: ClusterSettings, work: Callable[[KafkaClient], Coroutine[Any, Any, _Result]]
) -> _Result:
    """Run work with a separate client in a thread: decoding would hold the console's loop."""

    async def connected() -> _Result:
        async with asyncio.timeout(_TIMEOUT_S), open_client(settings, SystemClock()) as client:
            return await work(client)

    def run() -> _Result:
        try:
            return asyncio.run(connected())
        except TimeoutError:
            raise ClientError(f"the pending records take over {_TIMEOUT_S:g} s to read") from None

    return await in_thread(Work.DELIVERY, run)
