"""Writes the markers of decided transactions, each into its partition, until all are there.

    WriteMarkers --> append a marker to every partition --> all on disk --> Complete* record
                       '-- not now: again after a while

A few partitions take no task: the markers, and the record behind them, are written before whoever
ends the transaction is answered. Partitions of `__consumer_offsets` are written through their group
coordinator, for whom a marker means that the offsets count.

The record says that all markers are there, so they have to be committed before it: after a crash
nobody would write them again.

Source: Kafka's TransactionMarkerChannelManager, TransactionMarkerRequestCompletionHandler.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from wirebroker.clock import Slices, pause
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator import transaction_end
from wirebroker.coordinator.group_partitions import CONSUMER_OFFSETS
from wirebroker.coordinator.transactions import TransactionShard

if TYPE_CHECKING:
    from wirebroker.clock import Clock
    from wirebroker.cluster.coordinator_partition import CoordinatorPartition
    from wirebroker.cluster.group_coordinator import GroupCoordinator
    from wirebroker.cluster.partition import Partition
    from wirebroker.cluster.replica_manager import ReplicaManager
    from wirebroker.coordinator.runtime import Marker, Moment, Outcome
    from wirebroker.coordinator.transaction_metadata import TopicPartition
    from wirebroker.coordinator.transactions import WriteMarkers

    # Partition -> the log's end behind its marker, or _UNWRITTEN.
    Waiting = dict[TopicPartition, int]

logger = logging.getLogger(__name__)

_UNWRITTEN = -1

# Markers that are written at once: 30 us each.
_FEW = 50
# How long to wait before what has failed is tried again, at first and at most.
_FIRST_BACKOFF_S = 0.02
_LAST_BACKOFF_S = 1.0

# The group coordinator's ways to say that it is not ready.
_NOT_READY = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    }
)
# Somebody else has ended the transaction, or will.
_FINAL = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})


class MarkerWriter:
    """The markers that this node writes into its partitions."""

    __slots__ = ("_clock", "_groups", "_replicas", "_tasks")

    def __init__(self, *, clock: Clock, replicas: ReplicaManager, groups: GroupCoordinator) -> None:
        self._clock = clock
        self._replicas = replicas
        self._groups = groups
        # Transactions whose markers are being written, in the background.
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, runner: CoordinatorPartition, effect: WriteMarkers) -> None:
        """Write the markers of a decided transaction, now or in a task, and note that."""
        waiting: Waiting = dict.fromkeys(effect.partitions, _UNWRITTEN)
        if len(waiting) <= _FEW:
            try:
                self._write_free(effect, waiting)
            except KafkaError as error:
                _give_up(effect, error)
                return
        if not waiting:
            _complete(runner, effect)
            return
        name = f"markers of {effect.transactional_id}"
        task = asyncio.create_task(self._write_all(runner, effect, waiting), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Stop writing: what is missing is written after the next start."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def write(
        self, topic: str, index: int, marker: Marker, *, end_offset: int = _UNWRITTEN
    ) -> ErrorCode:
        """Write one marker and wait until it is committed; return what went wrong.

        Args:
            topic: Of the partition.
            index: Of the partition.
            marker: The marker.
            end_offset: The log's end behind the marker, if that was appended before.
        """
        partition = self._find(topic, index)
        if partition is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        try:
            if end_offset == _UNWRITTEN:
                await partition.until_settled()
                end_offset = self._append(partition, marker)
            await partition.until_committed(end_offset)
        except KafkaError as error:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER if error.code in _NOT_READY else error.code
        except OSError as error:
            self._replicas.disk_failed(partition, error)
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NONE

    def _write_free(self, effect: WriteMarkers, waiting: Waiting) -> None:
        """Write the markers that need not wait for anybody; take what is done off `waiting`.

        Raises:
            KafkaError: The transaction is not ours to end any more.
        """
        for topic, index in tuple(waiting):
            partition = self._find(topic, index)
            if partition is None:
                del waiting[topic, index]  # deleted: nothing is left to be decided
                continue
            if partition.is_appending:
                continue
            try:
                end_offset = self._append(partition, effect.marker)
            except KafkaError as error:
                if error.code in _FINAL:
                    raise
                continue
            except OSError as error:
                self._replicas.disk_failed(partition, error)
                continue
            waiting[topic, index] = end_offset
            if partition.log.high_watermark >= end_offset:
                del waiting[topic, index]

    async def _write_all(
        self, runner: CoordinatorPartition, effect: WriteMarkers, waiting: Waiting
    ) -> None:
        backoff_s = _FIRST_BACKOFF_S
        while not runner.is_closed:
            waiting = await self._write_round(effect, waiting)
            if not waiting:
                if not runner.is_closed:
                    _complete(runner, effect)
                return
            await pause(backoff_s)
            backoff_s = min(2 * backoff_s, _LAST_BACKOFF_S)

    async def _write_round(self, effect: WriteMarkers, waiting: Waiting) -> Waiting:
        """Try each partition once; return those to be tried again."""
        slices = Slices(self._clock)
        failed: Waiting = {}
        for (topic, index), end_offset in sorted(waiting.items()):
            error = await self.write(topic, index, effect.marker, end_offset=end_offset)
            if error in _FINAL:
                _give_up(effect, KafkaError(error))
                raise asyncio.CancelledError
            if error not in {ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}:
                failed[topic, index] = _UNWRITTEN
            await slices.turn()
        return failed

    def _find(self, topic: str, index: int) -> Partition | None:
        partitions, _ = self._replicas.find(topic, b"", by_id=False)
        return partitions.get(index)

    def _append(self, partition: Partition, marker: Marker) -> int:
        """Append a marker; return the log's end behind it."""
        if partition.topic == CONSUMER_OFFSETS:
            return self._groups.end_transaction(partition.index, marker)
        now_ms = self._clock.now_ms()
        return partition.append_marker(**marker._asdict(), now_ms=now_ms).last_offset + 1


def _complete(runner: CoordinatorPartition, effect: WriteMarkers) -> None:
    def operation(moment: Moment) -> Outcome:
        shard = runner.shard
        assert isinstance(shard, TransactionShard), "the effect is its own"
        return transaction_end.complete(shard, effect, moment)

    runner.run(operation)


def _give_up(effect: WriteMarkers, error: KafkaError) -> None:
    logger.info(
        "the transaction of %s is not ended by producer epoch %d any more: %s",
        effect.transactional_id,
        effect.marker.producer_epoch,
        error.code.name,
    )
