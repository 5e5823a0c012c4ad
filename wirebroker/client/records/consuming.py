"""Reading of partitions, from all their leaders concurrently.

Moved leaders are followed; reading fails if no request succeeds within the client's timeout.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.clock import pause
from wirebroker.client.errors import PASSING, ClientError, check
from wirebroker.client.records.fetched_batches import fetched_batches
from wirebroker.client.records.fetching import FetchLimits, fetch_from
from wirebroker.client.topics.leaders import clamped, partitions_of
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import iterate_records
from wirebroker.codecs.records.control import ControlType, control_type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.client.topics.leaders import TopicPartition
    from wirebroker.codecs.records.batch import BatchHeader
    from wirebroker.codecs.records.record import Record

# How long leaders wait for records.
_WAIT_MS: Final = 500
_ANSWER_BYTES: Final = 8 << 20
_PARTITION_BYTES: Final = 1 << 20
# Pause before a retry.
_AGAIN_S: Final = 0.1
_MOVED: Final = PASSING | {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.KAFKA_STORAGE_ERROR}
# Errors that a retry does not fix.
_REFUSED: Final = {ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED}


class PartitionsReader:
    """A reader of partitions; `positions` are the next offsets."""

    __slots__ = (
        "_client",
        "_committed",
        "_failing_since",
        "_is_done",
        "_take",
        "_until",
        "positions",
    )

    def __init__(
        self,
        client: KafkaClient,
        positions: Mapping[TopicPartition, int],
        take: Callable[[TopicPartition, list[Record]], bool],
        *,
        until: Mapping[TopicPartition, int] | None = None,
        read_committed: bool = False,
    ) -> None:
        """Store what to read, from `positions` (or the nearest valid offsets) to `until`.

        `take` is called with each non-empty list of records, in order for each partition, and
        returns whether to continue. `read_committed` skips open and aborted transactions.
        """
        self.positions = dict(positions)
        self._client = client
        self._take = take
        self._until = until
        self._committed: dict[TopicPartition, AbortedFilter] | None = None
        if read_committed:
            self._committed = {partition: AbortedFilter() for partition in positions}
        self._is_done = False
        self._failing_since: float | None = None

    async def run(self) -> None:
        """Read until the end, or until `take` returns False.

        Raises:
            ClientError: Leaders do not respond, return an error, or send malformed batches.
        """
        while not self._is_done and (partitions := self._open()):
            try:
                topics = sorted({partition.topic for partition in partitions})
                leaders = await partitions_of(self._client, topics)
                by_leader: dict[int, list[TopicPartition]] = defaultdict(list)
                for partition in partitions:
                    by_leader[leaders[partition]].append(partition)
                await self._read_from(by_leader)
            except ClientError as error:
                if error.code in _REFUSED or not self._may_retry():
                    raise
                await pause(_AGAIN_S)

    def _open(self) -> list[TopicPartition]:
        if self._until is None:
            return list(self.positions)
        return [
            partition
            for partition, offset in self.positions.items()
            if offset < self._until[partition]
        ]

    def _may_retry(self) -> bool:
        now = self._client.clock.monotonic()
        if self._failing_since is None:
            self._failing_since = now
        return now - self._failing_since < self._client.timeout_s

    async def _read_from(self, by_leader: Mapping[int, list[TopicPartition]]) -> None:
        """Read until a leader is finished or has lost a partition."""
        tasks = [
            asyncio.create_task(self._follow(leader, partitions))
            for leader, partitions in by_leader.items()
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self, leader: int, partitions: list[TopicPartition]) -> None:
        wait_ms = min(_WAIT_MS, int(self._client.timeout_s * 500))
        while not self._is_done:
            open_partitions = set(self._open())
            partitions = [partition for partition in partitions if partition in open_partitions]
            if not partitions:
                return
            fetched = await fetch_from(
                self._client,
                leader,
                [(partition, self.positions[partition]) for partition in partitions],
                FetchLimits(wait_ms, _ANSWER_BYTES, _PARTITION_BYTES),
                read_committed=self._committed is not None,
            )
            for partition, row in fetched:
                if not await self._accept(partition, row):
                    self._failing_since = None
                    await pause(_AGAIN_S)
                    return
                if self._is_done:
                    return
            self._failing_since = None
            # Rotate: the first partition gets a batch of any size.
            partitions = [*partitions[1:], partitions[0]]

    async def _accept(self, partition: TopicPartition, row: Any) -> bool:
        """Pass on records; return False if the leader moved."""
        if row.error_code in _MOVED:
            return False
        if row.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            nearest = await clamped(self._client, {partition: self.positions[partition]})
            self.positions |= nearest
            return True
        check(row.error_code, f"{partition} cannot be fetched")
        aborted = None if self._committed is None else self._committed[partition]
        if aborted is not None:
            aborted.begin(row.aborted_transactions or ())
        try:
            for header, batch in fetched_batches(memoryview(row.records or b"")):
                is_read = not header.is_control
                if aborted is not None:
                    is_read = aborted.lets_through(header, batch)
                records = iterate_records(batch, header) if is_read else iter(())
                new_records = [
                    record for record in records if self._is_wanted(partition, record.offset)
                ]
                if new_records and not self._is_done:
                    self._is_done = not self._take(partition, new_records)
                    self.positions[partition] = new_records[-1].offset + 1
                if self._is_done:
                    break
                next_offset = header.last_offset + 1
                if self._until is not None:  # records after the end are not read
                    next_offset = min(next_offset, self._until[partition])
                self.positions[partition] = max(self.positions[partition], next_offset)
        except KafkaError as error:
            raise ClientError(
                f"{partition} at offset {self.positions[partition]}: {error}"
            ) from error
        return True

    def _is_wanted(self, partition: TopicPartition, offset: int) -> bool:
        if offset < self.positions[partition]:
            return False
        return self._until is None or offset < self._until[partition]


# Aborted transactions, for read_committed consumers


class AbortedFilter:
    """A filter for one partition."""

    __slots__ = ("_aborting", "_waiting")

    def __init__(self) -> None:
        # Producers in an aborted transaction, up to its marker.
        self._aborting: set[int] = set()
        self._waiting: list[Any] = []

    def begin(self, aborted: Sequence[Any]) -> None:
        """Use a response's aborted transactions (`producer_id`, `first_offset`)."""
        self._waiting = sorted(aborted, key=lambda transaction: transaction.first_offset)

    def lets_through(self, header: BatchHeader, batch: memoryview) -> bool:
        """Return whether a batch has committed records; takes all batches in order."""
        while self._waiting and self._waiting[0].first_offset <= header.last_offset:
            self._aborting.add(self._waiting.pop(0).producer_id)
        if header.is_control:
            for record in iterate_records(batch, header):
                if control_type(record.key) is ControlType.ABORT:
                    self._aborting.discard(header.producer_id)
            return False
        return not (header.is_transactional and header.producer_id in self._aborting)
