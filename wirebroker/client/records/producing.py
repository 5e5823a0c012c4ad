"""Records written to a topic in batches with acks=all, in order.

Each partition has one batch in flight, so order is kept without idempotence. If a connection is
lost, it is unknown whether its records were stored, and writing ends.
"""

from __future__ import annotations

from collections import defaultdict, deque
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.base.text import counted
from wirebroker.base.threads import LONGEST_ON_LOOP_BYTES, Work, in_thread
from wirebroker.client.errors import PASSING, ClientError, check
from wirebroker.client.topics.leaders import partitions_of
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.records.batch import build_batch
from wirebroker.codecs.records.record import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.codecs.records.batch import BareRecord
    from wirebroker.codecs.records.codec import Codec

# Last version with topic names.
_BY_NAME: Final = 12
_ALL_IN_SYNC: Final = -1
# Half of the default max.message.bytes; a single record may be larger.
_BATCH_BYTES: Final = 512 << 10
# More records are grouped in a thread: 10,000 take 20 ms.
_MOST_ON_LOOP: Final = 500
# Maximum overhead of a record.
_RECORD_OVERHEAD_BYTES: Final = 21
_HEADER_OVERHEAD_BYTES: Final = 10
# A leader may learn of a new topic later than other brokers.
_AGAIN: Final = PASSING | {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


class Stored(NamedTuple):
    """The records stored in one partition."""

    partition: int
    records: int
    first_offset: int
    last_offset: int
    append_time_ms: int  # of the last record with LogAppendTime, else -1


class _Batch:
    """Records of one partition; `size` is about their size as bytes."""

    __slots__ = ("records", "size")

    def __init__(self) -> None:
        self.records: list[BareRecord | Record] = []
        self.size = 0

    def add(self, record: BareRecord | Record, size: int) -> None:
        """Append a record; its offset is its place in the batch."""
        if isinstance(record, Record):
            record = record._replace(offset=len(self.records))
        self.records.append(record)
        self.size += size


class TopicWriter:
    """A writer to the partitions of one topic."""

    __slots__ = ("_client", "_codec", "_leaders", "_stored", "_topic", "partition_count")

    def __init__(self, client: KafkaClient, topic: str, codec: Codec) -> None:
        self._client = client
        self._topic = topic
        self._codec = codec
        self._leaders: dict[int, int] = {}
        self._stored: dict[int, Stored] = {}
        self.partition_count = 0

    @property
    def stored(self) -> list[Stored]:
        """Acknowledged records."""
        return [self._stored[partition] for partition in sorted(self._stored)]

    async def open(self) -> None:
        """Find the topic, which the cluster may create, and its leaders."""
        leaders = await partitions_of(self._client, [self._topic], may_create=True)
        self._leaders = {partition.partition: leader for partition, leader in leaders.items()}
        self.partition_count = len(leaders)

    async def write(
        self,
        records: Sequence[tuple[int, BareRecord | Record]],
        *,
        timestamp_ms: int | None = None,
    ) -> None:
        """Write records by partition, and return when all are acknowledged.

        A Record keeps its timestamp; a BareRecord gets `timestamp_ms` (None for now).

        Raises:
            ClientError: Records are refused, or it is unknown whether they are stored. If a
                partition does not exist, nothing is written (UNKNOWN_TOPIC_OR_PARTITION).
        """
        if len(records) <= _MOST_ON_LOOP:
            waiting = _batches(records)
        else:
            waiting = await in_thread(Work.RECORDS, _batches, records)
        unknown = waiting.keys() - self._leaders.keys()
        if unknown:
            raise ClientError(
                f"there is no partition {min(unknown)}: {self._topic} has "
                f"{self.partition_count}, numbered from 0",
                code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            )
        async for _ in self._client.tries():
            while waiting:
                refused = await self._write_firsts(waiting, timestamp_ms)
                for partition in set(waiting) - set(refused):
                    waiting[partition].popleft()
                    if not waiting[partition]:
                        del waiting[partition]
                if refused:
                    break
            if not waiting:
                return
            await self.open()
        raise ClientError(f"partitions {sorted(waiting)} of {self._topic} have no leader")

    async def _write_firsts(
        self, waiting: dict[int, deque[_Batch]], timestamp_ms: int | None
    ) -> list[int]:
        """Send each partition's first batch; return the partitions to retry."""
        by_leader: dict[int, list[int]] = defaultdict(list)
        for partition in waiting:
            by_leader[self._leaders[partition]].append(partition)
        now_ms = self._client.clock.now_ms() if timestamp_ms is None else timestamp_ms
        requests: list[Any] = []
        for leader, partitions in by_leader.items():
            data = [
                {
                    "index": partition,
                    "records": await self._built(waiting[partition][0], now_ms),
                }
                for partition in partitions
            ]
            body = {
                "acks": _ALL_IN_SYNC,
                "timeout_ms": int(self._client.timeout_s * 1000),
                "topic_data": [{"name": self._topic, "partition_data": data}],
            }
            requests.append(self._client.request_of(leader, ApiKey.PRODUCE, body, at_most=_BY_NAME))
        refused: list[int] = []
        for answer in await self._client.together(*requests):
            for row in answer.responses[0].partition_responses:
                if row.error_code in _AGAIN:
                    refused.append(row.index)
                else:
                    self._note(row, len(waiting[row.index][0].records))
        return refused

    async def _built(self, batch: _Batch, now_ms: int) -> bytearray:
        build = partial(build_batch, batch.records, timestamp_ms=now_ms, codec=self._codec)
        if batch.size <= LONGEST_ON_LOOP_BYTES:
            return build()
        return await in_thread(Work.RECORDS, build)

    def _note(self, row: Any, count: int) -> None:
        check(
            row.error_code,
            f"{counted(count, 'record')} cannot be written to {self._topic}-{row.index}",
            getattr(row, "error_message", None),
        )
        last = row.base_offset + count - 1
        before = self._stored.get(row.index)
        if before is None:
            before = Stored(row.index, 0, row.base_offset, last, -1)
        self._stored[row.index] = before._replace(
            records=before.records + count,
            last_offset=last,
            append_time_ms=row.log_append_time_ms,
        )


def _batches(records: Sequence[tuple[int, BareRecord | Record]]) -> dict[int, deque[_Batch]]:
    batches: dict[int, deque[_Batch]] = defaultdict(deque)
    for partition, record in records:
        size = _size_of(record)
        of_partition = batches[partition]
        if not of_partition or of_partition[-1].size + size > _BATCH_BYTES:
            of_partition.append(_Batch())
        of_partition[-1].add(record, size)
    return batches


def _size_of(record: BareRecord | Record) -> int:
    key, value, headers = record[-3:]
    size = len(key or b"") + len(value or b"") + _RECORD_OVERHEAD_BYTES
    for name, content in headers:
        size += len(name) + len(content or b"") + _HEADER_OVERHEAD_BYTES
    return size
