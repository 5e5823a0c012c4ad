"""Writes the markers of decided transactions into their partitions, until all are committed.

    WriteMarkers --> a marker to every partition leader --> all committed --> Complete*
                       '-- failed: retry later, at the leader of that time

All markers must be committed before Complete*: after a crash nothing would write them again.

Source: Kafka's TransactionMarkerChannelManager, TransactionMarkerRequestCompletionHandler.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from wirebroker.base.clock import Slices, next_turn, pause
from wirebroker.base.log_bound import about_transaction
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordination.transactions.marker_routes import MarkerRoutes
from wirebroker.coordinator.groups.partitions import CONSUMER_OFFSETS
from wirebroker.coordinator.transactions import end as transaction_end

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from wirebroker.base.clock import Clock
    from wirebroker.coordination.group_coordinator import GroupCoordinator
    from wirebroker.coordination.transactions.marker_routes import MarkerSender
    from wirebroker.coordinator.outcome import Marker, Moment, Outcome, Token
    from wirebroker.coordinator.transactions.metadata import TopicPartition
    from wirebroker.coordinator.transactions.shard import TransactionShard, WriteMarkers
    from wirebroker.engine.engine import Engine
    from wirebroker.replica.partition import Partition
    from wirebroker.replica.replica_manager import ReplicaManager

logger = logging.getLogger(__name__)


# Written without a task, in 30 us each.
_FEW = 50
_FIRST_BACKOFF_S = 0.02
_LAST_BACKOFF_S = 1.0

# The group coordinator is not ready.
_NOT_READY = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    }
)
# Another coordinator or epoch ends the transaction there; as in Kafka the id stays locked.
_FINAL = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})


class _AppendedMarker(NamedTuple):
    """A marker in its partition's log."""

    partition: Partition
    # After the marker.
    end_offset: int


class MarkerWriter:
    """The writer of markers."""

    __slots__ = ("_clock", "_due", "_groups", "_replicas", "_routes", "_slice_end", "_tasks")

    def __init__(
        self,
        *,
        clock: Clock,
        replicas: ReplicaManager,
        groups: GroupCoordinator,
        sender: MarkerSender | None = None,
    ) -> None:
        self._clock = clock
        self._routes = MarkerRoutes(replicas, sender)
        self._replicas = replicas
        self._groups = groups
        self._tasks: set[asyncio.Task[None]] = set()
        # Decided transactions to begin; one sync or load may decide many.
        self._due: deque[tuple[Engine[TransactionShard], WriteMarkers]] = deque()
        # The end of this turn's slice, if it has begun.
        self._slice_end: float | None = None

    def begin(self, engine: Engine[TransactionShard], effect: WriteMarkers) -> None:
        """Write the markers of a decided transaction, now or later, then complete it."""
        if self._slice_end is None:
            self._slice_end = self._clock.monotonic() + Slices.SECONDS
            asyncio.get_running_loop().call_soon(self._on_turn)
        if self._due or self._clock.monotonic() >= self._slice_end:
            self._due.append((engine, effect))
        else:
            self._begin(engine, effect)

    def _on_turn(self) -> None:
        end = self._slice_end = self._clock.monotonic() + Slices.SECONDS
        try:
            while self._due and self._clock.monotonic() < end:
                self._begin(*self._due.popleft())
        finally:
            if self._due:
                asyncio.get_running_loop().call_soon(self._on_turn)
            else:
                self._slice_end = None

    def _begin(self, engine: Engine[TransactionShard], effect: WriteMarkers) -> None:
        if engine.is_closed:
            return
        waiting: dict[TopicPartition, _AppendedMarker | None] = dict.fromkeys(effect.partitions)
        if len(waiting) <= _FEW:
            self._write_free(effect.marker, waiting)
        if not waiting and (engine.is_closed or _complete(engine, effect)):
            return
        name = f"markers of {effect.transactional_id}"
        task = asyncio.create_task(self._write_all(engine, effect, waiting), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def until_written(self) -> None:
        """Wait until all markers are written."""
        while self._due or self._tasks:
            if self._tasks:
                await asyncio.wait(self._tasks)
            await next_turn()

    async def stop(self) -> None:
        """Stop writing; missing markers are written after the next start."""
        self._due.clear()
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def write(self, marker: Marker, partitions: Sequence[TopicPartition]) -> list[ErrorCode]:
        """Write a marker into partitions here and wait until it is committed (WriteTxnMarkers).

        Partitions that are not online here get UNKNOWN_TOPIC_OR_PARTITION, as in Kafka.
        """
        slices = Slices(self._clock)
        placed: dict[TopicPartition, _AppendedMarker | ErrorCode] = {}
        for partition in partitions:
            if not self._routes.is_held(*partition):
                placed[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif partition not in placed:
                placed[partition] = await self._append_in_turn(*partition, marker)
            await slices.turn()
        errors = await self._settle_all(placed)
        return [errors[partition] for partition in partitions]

    def _write_free(
        self, marker: Marker, waiting: dict[TopicPartition, _AppendedMarker | None]
    ) -> None:
        """Write the markers that need no waiting; remove committed ones from `waiting`."""
        for topic, index in sorted(waiting):  # the same order in every process
            partition = self._routes.local_partition(topic, index)
            if partition is None:
                if self._routes.is_deleted(topic, index):
                    del waiting[topic, index]  # no marker is needed
            elif not partition.is_appending:
                placed = self._append(partition, marker)
                if not isinstance(placed, _AppendedMarker):
                    continue
                if partition.log.high_watermark >= placed.end_offset:
                    del waiting[topic, index]
                else:
                    waiting[topic, index] = placed

    async def _write_all(
        self,
        engine: Engine[TransactionShard],
        effect: WriteMarkers,
        waiting: dict[TopicPartition, _AppendedMarker | None],
    ) -> None:
        refused: frozenset[ErrorCode] = frozenset()
        backoff_s = _FIRST_BACKOFF_S
        while not engine.is_closed:
            try:
                errors = await self._write_round(effect.marker, waiting)
            except Exception:  # it retries: nothing else would end the transaction
                logger.exception(
                    "cannot end the transaction of %s",
                    effect.transactional_id,
                    extra=about_transaction(effect.transactional_id),
                )
            else:
                refused |= _FINAL.intersection(errors.values())
                waiting = {
                    partition: None
                    for partition, error in errors.items()
                    if error != ErrorCode.NONE
                    and error not in _FINAL
                    and not self._routes.is_deleted(*partition)
                }
                if refused and not waiting:
                    _note_end(effect, refused)
                    return
                if not waiting and (engine.is_closed or _complete(engine, effect)):
                    return
            await pause(backoff_s)
            backoff_s = min(2 * backoff_s, _LAST_BACKOFF_S)

    async def _write_round(
        self, marker: Marker, waiting: Mapping[TopicPartition, _AppendedMarker | None]
    ) -> dict[TopicPartition, ErrorCode]:
        """Try each partition once at its current leader: first write all, then wait for all."""
        slices = Slices(self._clock)
        placed: dict[TopicPartition, _AppendedMarker | ErrorCode] = {}
        elsewhere: dict[int, list[TopicPartition]] = {}
        for partition, earlier in sorted(waiting.items(), key=lambda item: item[0]):
            node_id = None if earlier else self._routes.elsewhere(*partition)
            if node_id is None:
                placed[partition] = earlier or await self._append_in_turn(*partition, marker)
            else:
                # A partition missing from the response is retried.
                placed[partition] = ErrorCode.NETWORK_EXCEPTION
                elsewhere.setdefault(node_id, []).append(partition)
            await slices.turn()
        send = self._routes.sender.send
        sending = [send(node_id, marker, partitions) for node_id, partitions in elsewhere.items()]
        errors, answers = await asyncio.gather(self._settle_all(placed), asyncio.gather(*sending))
        for answer in answers:
            for partition, error in answer.items():
                if partition in errors:
                    errors[partition] = error
                await slices.turn()
        return errors

    async def _settle_all(
        self, placed: Mapping[TopicPartition, _AppendedMarker | ErrorCode]
    ) -> dict[TopicPartition, ErrorCode]:
        slices = Slices(self._clock)
        errors: dict[TopicPartition, ErrorCode] = {}
        for partition, placed_or_error in placed.items():
            errors[partition] = await self._settle(placed_or_error)
            await slices.turn()
        return errors

    async def _append_in_turn(
        self, topic: str, index: int, marker: Marker
    ) -> _AppendedMarker | ErrorCode:
        partition = self._routes.local_partition(topic, index)
        if partition is None:
            is_known = not self._routes.is_deleted(topic, index)
            return (
                ErrorCode.NOT_LEADER_OR_FOLLOWER
                if is_known
                else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
        await partition.until_settled()
        return self._append(partition, marker)

    async def _settle(self, placed: _AppendedMarker | ErrorCode) -> ErrorCode:
        """Wait until a marker is committed; return its error."""
        if not isinstance(placed, _AppendedMarker):
            return placed
        try:
            await placed.partition.until_committed(placed.end_offset)
        except KafkaError as error:
            return error.code
        return ErrorCode.NONE

    def _append(self, partition: Partition, marker: Marker) -> _AppendedMarker | ErrorCode:
        try:
            if partition.topic == CONSUMER_OFFSETS:
                end_offset = self._groups.end_transaction(partition.index, marker)
            else:
                now_ms = self._clock.now_ms()
                end_offset = (
                    partition.append_marker(**marker._asdict(), now_ms=now_ms).last_offset + 1
                )
        except KafkaError as error:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER if error.code in _NOT_READY else error.code
        except OSError as error:
            self._replicas.disk_failed(partition, error)
            return ErrorCode.KAFKA_STORAGE_ERROR
        return _AppendedMarker(partition, end_offset)


def _complete(engine: Engine[TransactionShard], effect: WriteMarkers) -> bool:
    """Record that all markers exist; return whether nothing is left to do."""

    def operation(shard: TransactionShard, _token: Token, now: Moment) -> Outcome:
        return transaction_end.complete(shard, effect, now)

    engine.run(operation)
    return not transaction_end.is_due(engine.machine, effect)


def _note_end(effect: WriteMarkers, errors: Iterable[ErrorCode]) -> None:
    logger.info(
        "the transaction of %s can no longer be ended by producer epoch %d: %s",
        effect.transactional_id,
        effect.marker.producer_epoch,
        ", ".join(sorted(error.name for error in errors)),
        extra=about_transaction(effect.transactional_id),
    )
