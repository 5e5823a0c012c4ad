"""The partitions of an internal topic whose coordinator this node is: loaded, served, given up.

    submit(index, operation)    -> that partition's shard, in its CoordinatorPartition

A partition is loaded when this node leads it: at start, when the topic appears, or when the first
request for it comes. Meanwhile its requests get COORDINATOR_LOAD_IN_PROGRESS; the other partitions
do not notice.

Source: Kafka's CoordinatorRuntime, GroupCoordinatorService, TransactionStateManager.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from wirebroker.clock import Slices
from wirebroker.cluster.coordinator_loading import load
from wirebroker.cluster.coordinator_partition import CoordinatorPartition, Shard, Waiter
from wirebroker.cluster.data_directory import is_disk_failure
from wirebroker.codecs.compression import Codec
from wirebroker.codecs.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from wirebroker.clock import Clock
    from wirebroker.cluster.partition import Partition
    from wirebroker.cluster.replica_manager import ReplicaManager
    from wirebroker.coordinator.image_builder import ImageChange
    from wirebroker.coordinator.runtime import Moment, Outcome, Token
    from wirebroker.storage.verification import VerificationGuard

    Response = Mapping[str, Any]
    Result = Response | asyncio.Future[Response]

logger = logging.getLogger(__name__)

LOADING, ACTIVE, FAILED = "loading", "active", "failed"


class LoadedShard(Shard, Protocol):
    """A shard as it is loaded and begins to serve."""

    def on_loaded(self, moment: Moment) -> Outcome:
        """Begin to serve what was replayed."""
        ...

    def describe(self) -> str:
        """Say in a few words what it holds, for the log."""
        ...


ShardT = TypeVar("ShardT", bound=LoadedShard)


class Held(Generic[ShardT]):
    """A partition that this node leads."""

    __slots__ = ("partition", "runner", "shard", "status", "task")

    def __init__(self, partition: Partition, shard: ShardT) -> None:
        self.partition = partition
        self.shard = shard
        self.status = LOADING
        # Set once it is active.
        self.runner: CoordinatorPartition | None = None
        self.task: asyncio.Task[None] | None = None


class CoordinatorPartitions(Generic[ShardT]):
    """All partitions of one internal topic that this node leads."""

    __slots__ = (
        "_base_sequence",
        "_clock",
        "_codec",
        "_commit_timeout_ms",
        "_held",
        "_is_stopped",
        "_new_shard",
        "_on_effect",
        "_on_run",
        "_replicas",
        "_topic",
    )

    def __init__(
        self,
        topic: str,
        *,
        new_shard: Callable[[Partition], ShardT],
        clock: Clock,
        replicas: ReplicaManager,
        codec: Codec = Codec.NONE,
        base_sequence: int = 0,
        commit_timeout_ms: int = 5_000,
        on_effect: Callable[[CoordinatorPartition, Any], None] | None = None,
        on_run: Callable[[ShardT, Moment], None] | None = None,
    ) -> None:
        self._topic = topic
        self._new_shard = new_shard
        self._clock = clock
        self._replicas = replicas
        self._codec = codec
        # Kafka's group coordinator has 0 in its batches, its transaction coordinator none.
        self._base_sequence = base_sequence
        self._commit_timeout_ms = commit_timeout_ms
        self._on_effect = on_effect
        # Told after each request what has become of its shard.
        self._on_run = on_run
        self._held: dict[int, Held[ShardT]] = {}
        self._is_stopped = False

    # -- start and stop ----------------------------------------------------------------------

    def start(self) -> None:
        """Begin to load what is there; requests are answered meanwhile."""
        for index, partition in self._led().items():
            self._elect(index, partition)

    async def stop(self) -> None:
        """Answer all who wait, and take no more requests. Call it before connections close."""
        self._is_stopped = True
        for held in self._held.values():
            if held.runner is not None:
                held.runner.close()
        loading = [held.task for held in self._held.values() if held.task is not None]
        for task in loading:
            task.cancel()
        await asyncio.gather(*loading, return_exceptions=True)
        self._held.clear()

    def follow(self, change: ImageChange) -> None:
        """Follow a change of the metadata, after the replicas have."""
        if any(topic.name == self._topic for topic in change.deleted):
            for index in list(self._held):
                self._resign(index)
        if self._topic in change.created | change.changed:
            for index, partition in self._led().items():
                if index not in self._held:
                    self._elect(index, partition)

    # -- requests ----------------------------------------------------------------------------

    def submit(
        self,
        index: int,
        operation: Callable[[ShardT, Token, Moment], Outcome],
        *,
        on_error: Callable[[ErrorCode], Response],
        finish: Callable[[dict[str, Any]], Response] | None = None,
        guard: VerificationGuard | None = None,
    ) -> Result:
        """Run an operation on the shard of a partition.

        Args:
            index: Which partition.
            operation: Answers its token, now or later.
            on_error: Makes the response for an error.
            finish: Makes the response of what the operation answers; None if that is it.
            guard: If its records may begin a producer's transaction in the partition.

        Returns:
            The response, or a future of it.
        """
        waiter = Waiter(on_error, finish)
        try:
            held = self.at(index)
            assert held.runner is not None, "an active partition has one"
            held.runner.run(lambda moment: operation(held.shard, waiter, moment), guard=guard)
            if self._on_run is not None:
                self._on_run(held.shard, held.runner.now())
        except KafkaError as error:
            waiter.fail(error.code)
        return waiter.result()

    def at(self, index: int) -> Held[ShardT]:
        """Return a partition that can be served now.

        Raises:
            KafkaError: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE.
        """
        if self._is_stopped:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        partitions, _ = self._replicas.find(self._topic, b"", by_id=False)
        partition = partitions.get(index)
        held = self._held.get(index)
        if held is not None and held.partition is not partition:
            self._resign(index)
            held = None
        if partition is None or not partition.is_leader:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        if held is None:
            held = self._elect(index, partition)
        if held.status is LOADING:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        if held.status is FAILED:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return held

    def indexes(self) -> list[int]:
        """Return the partitions of which this node is the coordinator, loading ones included."""
        return sorted(self._led())

    def active(self) -> list[Held[ShardT]]:
        """Return those that can be served."""
        return [held for held in self._held.values() if held.status is ACTIVE]

    @property
    def is_loading(self) -> bool:
        """Whether one of them is not loaded yet."""
        return any(held.status is LOADING for held in self._held.values())

    async def sweep(self, held: Held[ShardT], outcomes: Iterator[Outcome]) -> None:
        """Carry out what a sweep yields, with turns for everybody else in between."""
        slices = Slices(self._clock)
        for outcome in outcomes:
            if held.status is not ACTIVE or held.runner is None or self._is_stopped:
                return
            held.runner.carry_out(outcome, held.runner.now())
            await slices.turn()

    # -- partitions --------------------------------------------------------------------------

    def _led(self) -> dict[int, Partition]:
        partitions, _ = self._replicas.find(self._topic, b"", by_id=False)
        return {index: each for index, each in partitions.items() if each.is_leader}

    def _elect(self, index: int, partition: Partition) -> Held[ShardT]:
        """Take a partition over: at once if it is empty, else when it is loaded."""
        held = Held(partition, self._new_shard(partition))
        self._held[index] = held
        if partition.log.log_start_offset == partition.log.log_end_offset:
            self._activate(held)
        else:
            name = f"load {self._topic}-{index}"
            held.task = asyncio.create_task(self._load(held), name=name)
        return held

    async def _load(self, held: Held[ShardT]) -> None:
        partition = held.partition
        begun = self._clock.monotonic()
        try:
            count = await load(partition.log, held.shard, self._clock)
        except Exception:
            # A task's root: what is not loaded for good must not seem to be loading for ever.
            held.status = FAILED
            logger.exception("%s-%d cannot be loaded", partition.topic, partition.index)
            return
        self._activate(held)
        logger.info(
            "loaded %s from %d records of %s-%d in %d ms",
            held.shard.describe(),
            count,
            partition.topic,
            partition.index,
            (self._clock.monotonic() - begun) * 1000,
        )

    def _activate(self, held: Held[ShardT]) -> None:
        runner = CoordinatorPartition(
            held.partition,
            held.shard,
            self._clock,
            codec=self._codec,
            base_sequence=self._base_sequence,
            commit_timeout_ms=self._commit_timeout_ms,
            on_disk_failure=self._on_disk_failure,
            on_effect=self._on_effect,
        )
        held.runner = runner
        held.status = ACTIVE
        runner.run(held.shard.on_loaded)

    def _resign(self, index: int) -> None:
        held = self._held.pop(index)
        if held.task is not None:
            held.task.cancel()
        if held.runner is not None:
            held.runner.close()

    def _on_disk_failure(self, runner: CoordinatorPartition, error: OSError) -> None:
        """Serve a partition no more whose disk has failed: what it holds is not known."""
        self._replicas.disk_failed(runner.partition, error)
        if not is_disk_failure(error):
            return  # a shortage that passes: the log is as before
        for held in self._held.values():
            if held.runner is runner:
                held.status = FAILED
        runner.close()
