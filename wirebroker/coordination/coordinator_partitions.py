"""The partitions of an internal topic that this node leads: loading, serving, unloading.

Source: Kafka's CoordinatorRuntime.scheduleLoadOperation, scheduleUnloadOperation.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from wirebroker.base.clock import Slices
from wirebroker.base.text import few_of
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.codec import Codec
from wirebroker.coordination.coordinator_loading import Replayer, load
from wirebroker.coordination.partition_log import PartitionLog
from wirebroker.coordinator.machine import Machine
from wirebroker.coordinator.outcome import Moment
from wirebroker.engine.engine import Engine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from wirebroker.base.clock import Clock, Steps
    from wirebroker.coordinator.outcome import Marker, Outcome
    from wirebroker.replica.leadership import LeadershipChange
    from wirebroker.replica.partition import Partition

logger = logging.getLogger(__name__)

# Partitions in a log line; a stop resigns from all.
_MOST_SHOWN = 5


class Shard(Machine, Replayer, Protocol):
    """The state machine of one partition, loaded from its records."""

    def describe(self) -> str:
        """Describe the content for the log."""
        ...


ShardT = TypeVar("ShardT", bound=Shard)


class _Term(Generic[ShardT]):
    """The leadership of one partition in one leader epoch."""

    __slots__ = ("engine", "error", "loading", "log", "shard")

    # engine is None <=> error is not None

    def __init__(self, shard: ShardT, log: PartitionLog) -> None:
        self.shard = shard
        self.log = log
        self.engine: Engine[ShardT] | None = None
        # The error for requests while loading, or after loading has failed.
        self.error: ErrorCode | None = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        self.loading: asyncio.Task[None] | None = None


class CoordinatorPartitions(Generic[ShardT]):
    """The partitions of one internal topic that this node leads."""

    __slots__ = (
        "_base_sequence",
        "_clock",
        "_codec",
        "_commit_timeout_ms",
        "_decode",
        "_is_stopped",
        "_new_shard",
        "_on_disk_failure",
        "_on_effect",
        "_start_timers",
        "_terms",
        "_topic",
    )

    # _is_stopped => not _terms

    def __init__(
        self,
        topic: str,
        *,
        new_shard: Callable[[PartitionLog], ShardT],
        clock: Clock,
        codec: Codec = Codec.NONE,
        base_sequence: int = 0,
        commit_timeout_ms: int = 5_000,
        on_disk_failure: Callable[[Partition, OSError], None],
        on_effect: Callable[[Engine[ShardT], Any], None] | None = None,
        decode: Callable[[bytes, bytes], Any] | None = None,
        start_timers: Callable[[ShardT, Moment], Steps[None]] | None = None,
    ) -> None:
        """Begin without partitions.

        Args:
            topic: The internal topic.
            new_shard: Makes the shard of a partition's log.
            clock: The clock.
            codec: Compression of its records.
            base_sequence: See PartitionLog.
            commit_timeout_ms: Limits how long a response waits for the commit of its records.
            on_disk_failure: Called if a log cannot be written.
            on_effect: Carries out the effects of operations.
            decode: Decodes long values during a load; see `load`.
            start_timers: Starts the timers of a loaded shard in steps.
        """
        self._topic = topic
        self._new_shard = new_shard
        self._clock = clock
        self._codec = codec
        self._base_sequence = base_sequence
        self._commit_timeout_ms = commit_timeout_ms
        self._on_disk_failure = on_disk_failure
        self._on_effect = on_effect
        self._decode = decode
        self._start_timers = start_timers
        self._terms: dict[int, _Term[ShardT]] = {}
        self._is_stopped = False

    def follow(self, change: LeadershipChange) -> None:
        """Begin and end terms; other topics are ignored."""
        assert not self._is_stopped, "stopped coordinators get no changes"
        resigned = [
            resignation
            for resignation in change.resigned
            if resignation.partition.topic == self._topic
        ]
        for partition, leader_epoch in resigned:
            self._resign(partition, leader_epoch)
        if resigned:
            indexes = few_of(
                [str(resignation.partition.index) for resignation in resigned], _MOST_SHOWN
            )
            logger.info("this node no longer coordinates %s: %s", self._topic, indexes)
        for partition, leader_epoch in change.elected:
            if partition.topic == self._topic:
                self._elect(partition, leader_epoch)

    async def stop(self) -> None:
        """Resign from all partitions and accept no more requests."""
        self._is_stopped = True
        terms = [self._terms.pop(index) for index in tuple(self._terms)]
        for term in terms:
            _end(term)
        loading = [term.loading for term in terms if term.loading is not None]
        await asyncio.gather(*loading, return_exceptions=True)

    def _elect(self, partition: Partition, leader_epoch: int) -> None:
        index = partition.index
        former = self._terms.pop(index, None)
        if former is not None:
            assert former.log.leader_epoch < leader_epoch, "leader epochs increase"
            _end(former)
        log = PartitionLog(
            partition,
            leader_epoch,
            codec=self._codec,
            base_sequence=self._base_sequence,
            on_disk_failure=self._on_disk_failure,
        )
        term = self._terms[index] = _Term(self._new_shard(log), log)
        if partition.log.log_start_offset == partition.log.log_end_offset:
            self._activate(term)
        else:
            term.loading = asyncio.create_task(self._load(term), name=f"load {log.name}")

    def _resign(self, partition: Partition, leader_epoch: int) -> None:
        term = self._terms.pop(partition.index)
        assert term.log.leader_epoch == leader_epoch, "resigned from another epoch"
        _end(term)

    async def _load(self, term: _Term[ShardT]) -> None:
        log = term.log
        started_s = self._clock.monotonic()
        try:
            count = await load(
                log.partition.log, term.shard, self._clock, log.replay_by, self._decode
            )
            await self._begin_timers(term.shard)
        except Exception:  # a permanent failure must not look like loading
            term.error = ErrorCode.NOT_COORDINATOR
            logger.exception("cannot load %s", log.name)
            return
        self._activate(term)
        logger.info(
            "loaded %s from %d records of %s in %d ms",
            term.shard.describe(),
            count,
            log.name,
            (self._clock.monotonic() - started_s) * 1000,
        )

    async def _begin_timers(self, shard: ShardT) -> None:
        if self._start_timers is not None:
            clock = self._clock
            now = Moment(clock.now_ms(), int(clock.monotonic() * 1000))
            # In shorter slices, because several partitions load at once.
            slices = Slices(clock, Slices.BESIDE_OTHERS_SECONDS)
            await slices.run(self._start_timers(shard, now))

    def _activate(self, term: _Term[ShardT]) -> None:
        assert self._terms[term.log.partition.index] is term, "the term has ended"
        term.engine = Engine(
            term.shard,
            term.log,
            self._clock,
            commit_timeout_ms=self._commit_timeout_ms,
            on_effect=self._on_effect,
        )
        term.error = None
        term.log.replay_by(None)
        term.engine.begin()

    def at(self, index: int) -> Engine[ShardT]:
        """Return the engine that serves a partition.

        Raises:
            KafkaError: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE.
        """
        term = self._terms.get(index)
        if term is None:
            stopped, elsewhere = ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR
            raise KafkaError(stopped if self._is_stopped else elsewhere)
        if term.engine is None:
            assert term.error is not None
            raise KafkaError(term.error)
        return term.engine

    def end_transaction(self, index: int, marker: Marker) -> int:
        """Append and replay the end of a transaction; return the log's new end offset.

        Raises:
            KafkaError: From `at` or PartitionLog.append_marker.
            OSError: The disk failed; this was already handled.
        """
        engine = self.at(index)
        log = self._terms[index].log
        try:
            log.append_marker(marker, self._clock.now_ms())
        except OSError as error:
            log.disk_failed(error)
            raise
        engine.machine.replay_end(marker.producer_id, marker.is_commit)
        return log.end_offset

    def delete_prefix(self, index: int, offset: int) -> None:
        """Delete a partition's records below an offset.

        Raises:
            KafkaError: From `at` or PartitionLog.delete_prefix.
        """
        self.at(index)
        self._terms[index].log.delete_prefix(offset)

    def indexes(self) -> list[int]:
        """Return the partitions, including loading ones."""
        return sorted(self._terms)

    def shards(self) -> list[ShardT]:
        """Return the shards of all partitions, including loading ones."""
        return [term.shard for term in self._terms.values()]

    def active(self) -> list[Engine[ShardT]]:
        """Return the engines of the loaded partitions."""
        return [term.engine for term in self._terms.values() if term.engine is not None]

    @property
    def is_loading(self) -> bool:
        """Whether a partition is loading."""
        loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return any(term.error is loading for term in self._terms.values())

    async def sweep(self, engine: Engine[ShardT], outcomes: Iterator[Outcome]) -> None:
        """Carry out a sweep in slices."""
        slices = Slices(self._clock)
        for outcome in outcomes:
            if engine.is_closed:
                return
            engine.carry_out(outcome, engine.now())
            await slices.turn()


def _end(term: _Term[Any]) -> None:
    if term.engine is not None:
        term.engine.close()
    elif term.loading is not None:
        term.loading.cancel()
