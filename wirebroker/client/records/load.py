"""Records written at full speed or at a rate, for measurements.

Several batches are in flight, so order is not kept. Any error ends the run, also a retriable one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.base.clock import pause
from wirebroker.base.text import counted
from wirebroker.client.errors import check
from wirebroker.client.topics.leaders import partitions_of
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.records.batch import build_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.client.topics.leaders import TopicPartition
    from wirebroker.codecs.records.codec import Codec

# Last version with topic names.
_BY_NAME: Final = 12


class LoadPlan(NamedTuple):
    """A load to write.

    Attributes:
        acks: 1, or -1 for all in-sync replicas.
        records_per_s: None for full speed.
    """

    topic: str
    records: int
    batch_records: int
    in_flight: int
    codec: Codec
    acks: int = -1
    records_per_s: float | None = None


class LoadWriter:
    """One run of a plan."""

    __slots__ = (
        "_client",
        "_leaders",
        "_on_stored",
        "_plan",
        "_remaining",
        "_sent",
        "_start",
        "_turn",
    )

    def __init__(
        self, client: KafkaClient, plan: LoadPlan, on_stored: Callable[[int, int, float], None]
    ) -> None:
        """Store the plan.

        `on_stored` is called for each batch with its records, the bytes of their values, and the
        latency in seconds.
        """
        self._client = client
        self._plan = plan
        self._on_stored = on_stored
        self._remaining = plan.records
        self._sent = 0
        self._turn = 0
        self._start = 0.0
        self._leaders: list[tuple[TopicPartition, int]] = []

    async def run(self, values: Iterator[bytes]) -> None:
        """Write these values, as many as planned."""
        leaders = await partitions_of(self._client, [self._plan.topic], may_create=True)
        self._leaders = list(leaders.items())
        self._start = self._client.clock.monotonic()
        workers = [self._work(values) for _ in range(self._plan.in_flight)]
        await self._client.together(*workers)

    async def _work(self, values: Iterator[bytes]) -> None:
        plan = self._plan
        while self._remaining:
            count = min(plan.batch_records, self._remaining)
            self._remaining -= count
            sent_before = self._sent
            self._sent += count
            partition, leader = self._leaders[self._turn % len(self._leaders)]
            self._turn += 1
            if plan.records_per_s is not None:
                now = self._client.clock.monotonic()
                wait_s = self._start + sent_before / plan.records_per_s - now
                if wait_s > 0:
                    await pause(wait_s)
            batch = [next(values) for _ in range(count)]
            await self._write(partition, leader, batch)

    async def _write(self, partition: TopicPartition, leader: int, values: list[bytes]) -> None:
        clock = self._client.clock
        records = build_batch(
            [(None, value, ()) for value in values],
            timestamp_ms=clock.now_ms(),
            codec=self._plan.codec,
        )
        rows = [{"index": partition.partition, "records": records}]
        body: dict[str, Any] = {
            "acks": self._plan.acks,
            "timeout_ms": int(self._client.timeout_s * 1000),
            "topic_data": [{"name": partition.topic, "partition_data": rows}],
        }
        began = clock.monotonic()
        answer = await self._client.request_of(leader, ApiKey.PRODUCE, body, at_most=_BY_NAME)
        (row,) = answer.responses[0].partition_responses
        check(row.error_code, f"{counted(len(values), 'record')} cannot be written to {partition}")
        self._on_stored(len(values), sum(map(len, values)), clock.monotonic() - began)
