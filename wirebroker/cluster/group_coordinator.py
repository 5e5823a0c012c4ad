"""The group coordinator of this node: which partition a group is in, and that it is loaded.

    submit(group id, operation)    -> the partition of `__consumer_offsets` -> CoordinatorPartition

A partition is loaded when this node leads it: at start, when the topic appears, or when the first
request for it comes. Meanwhile its requests get COORDINATOR_LOAD_IN_PROGRESS; the other partitions
do not notice. The topic is created when somebody first looks for a coordinator.

Source: Kafka's GroupCoordinatorService and DefaultAutoTopicCreationManager.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from wirebroker.clock import Slices, pause
from wirebroker.cluster.coordinator_loading import load
from wirebroker.cluster.coordinator_partition import CoordinatorPartition, Waiter
from wirebroker.cluster.data_directory import is_disk_failure
from wirebroker.codecs.compression import Codec
from wirebroker.codecs.errors import ErrorCode, KafkaError, MalformedFrameError
from wirebroker.coordinator.group_expiry import sweep_deleted_topics, sweep_expired
from wirebroker.coordinator.group_partitions import CONSUMER_OFFSETS, partition_for
from wirebroker.coordinator.groups import GroupShard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from wirebroker.clock import Clock
    from wirebroker.cluster.metadata_log import MetadataLog
    from wirebroker.cluster.partition import Partition
    from wirebroker.cluster.replica_manager import ReplicaManager
    from wirebroker.coordinator.cluster_image import ClusterImage
    from wirebroker.coordinator.controller import Controller
    from wirebroker.coordinator.group_settings import GroupSettings
    from wirebroker.coordinator.image_builder import ImageChange
    from wirebroker.coordinator.runtime import Moment, Outcome, Token

    Response = Mapping[str, Any]
    # What a request does to its shard.
    GroupOperation = Callable[[GroupShard, Token, Moment], Outcome]

logger = logging.getLogger(__name__)

LOADING, ACTIVE, FAILED = "loading", "active", "failed"


class _Held:
    """A partition that this node leads."""

    __slots__ = ("partition", "runner", "shard", "status", "task")

    def __init__(self, partition: Partition, shard: GroupShard) -> None:
        self.partition = partition
        self.shard = shard
        self.status = LOADING
        # Set once it is active.
        self.runner: CoordinatorPartition | None = None
        self.task: asyncio.Task[None] | None = None


class GroupCoordinator:
    """All groups whose partitions this node leads."""

    __slots__ = (
        "_clock",
        "_controller",
        "_creation",
        "_expiry",
        "_held",
        "_is_stopped",
        "_metadata",
        "_new_uuid",
        "_replicas",
        "settings",
    )

    def __init__(
        self,
        settings: GroupSettings,
        *,
        clock: Clock,
        metadata: MetadataLog,
        controller: Controller,
        replicas: ReplicaManager,
        new_uuid: Callable[[], str] = lambda: str(uuid.uuid4()),
    ) -> None:
        self.settings = settings
        self._clock = clock
        self._metadata = metadata
        self._controller = controller
        self._replicas = replicas
        self._new_uuid = new_uuid
        self._held: dict[int, _Held] = {}
        self._creation: asyncio.Task[None] | None = None
        self._expiry: asyncio.Task[None] | None = None
        self._is_stopped = False

    # -- start and stop ----------------------------------------------------------------------

    def start(self) -> None:
        """Begin to load what is there; requests are answered meanwhile."""
        partitions, _ = self._replicas.find(CONSUMER_OFFSETS, b"", by_id=False)
        for index, partition in partitions.items():
            if partition.is_leader:
                self._elect(index, partition)
        self._expiry = asyncio.create_task(self._expire_repeatedly(), name="group expiry")

    async def stop(self) -> None:
        """Answer all who wait, and take no more requests. Call it before connections close."""
        self._is_stopped = True
        tasks = [self._creation, self._expiry, *(held.task for held in self._held.values())]
        for held in self._held.values():
            if held.runner is not None:
                held.runner.close()
        running = [task for task in tasks if task is not None and not task.done()]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        self._held.clear()

    async def apply(self, change: ImageChange, image: ClusterImage) -> None:
        """Follow a change after the replicas have: the offsets of deleted topics go."""
        del image
        deleted = {topic.name: topic.topic_id for topic in change.deleted}
        if CONSUMER_OFFSETS in deleted:
            for index in list(self._held):
                self._resign(index)
        partitions, _ = self._replicas.find(CONSUMER_OFFSETS, b"", by_id=False)
        if CONSUMER_OFFSETS in change.created | change.changed:
            for index, partition in partitions.items():
                if partition.is_leader and index not in self._held:
                    self._elect(index, partition)
        if deleted:
            for held in self._active():
                await self._sweep(held, sweep_deleted_topics(held.shard, deleted))

    # -- requests ----------------------------------------------------------------------------

    def submit(
        self,
        group_id: str,
        operation: GroupOperation,
        *,
        on_error: Callable[[ErrorCode], Response],
        finish: Callable[[dict[str, Any]], Response] | None = None,
    ) -> Response | asyncio.Future[Response]:
        """Run an operation on the shard of a group.

        Args:
            group_id: Whose shard.
            operation: Answers its token, now or later.
            on_error: Makes the response for an error.
            finish: Makes the response of what the operation answers; None if that is it.

        Returns:
            The response, or a future of it.
        """
        index = self.partition_for(group_id)
        return self.submit_to(index, operation, on_error=on_error, finish=finish)

    def submit_to(
        self,
        index: int,
        operation: GroupOperation,
        *,
        on_error: Callable[[ErrorCode], Response],
        finish: Callable[[dict[str, Any]], Response] | None = None,
    ) -> Response | asyncio.Future[Response]:
        """Run an operation on the shard of a partition, as `submit` does."""
        waiter = Waiter(on_error, finish)
        try:
            held = self._active_at(index)
            assert held.runner is not None, "an active partition has one"
            held.runner.run(lambda moment: operation(held.shard, waiter, moment))
            held.shard.rebalances.settle(held.runner.now())
        except KafkaError as error:
            waiter.fail(error.code)
        return waiter.result()

    def partition_for(self, group_id: str) -> int:
        """Return the partition of `__consumer_offsets` that a group is kept in."""
        return partition_for(group_id, self.partition_count)

    @property
    def partition_count(self) -> int:
        """How many partitions `__consumer_offsets` has, or will have."""
        topic = self._metadata.image.topics.get(CONSUMER_OFFSETS)
        return (
            self.settings.offsets_topic_partition_count if topic is None else len(topic.partitions)
        )

    def partitions(self) -> list[int]:
        """Return the partitions of which this node is the coordinator, loading ones included."""
        found, _ = self._replicas.find(CONSUMER_OFFSETS, b"", by_id=False)
        return sorted(index for index, partition in found.items() if partition.is_leader)

    def shards(self) -> Iterator[GroupShard]:
        """Yield what is loaded, for metrics."""
        return (held.shard for held in self._active())

    def lags(self) -> Iterator[tuple[str, str, int, int]]:
        """Yield (group, topic, partition, lag in records) of every committed offset, for metrics.

        The lag is counted to the high watermark, now; offsets of partitions that this node doesn't
        lead are left out.
        """
        for shard in self.shards():
            for group_id in tuple(shard.offsets.by_group):
                for topic, index, committed in shard.offsets.of_group(group_id):
                    partitions, _ = self._replicas.find(topic, b"", by_id=False)
                    partition = partitions.get(index)
                    if partition is not None and partition.is_leader:
                        lag = max(0, partition.log.high_watermark - committed.offset)
                        yield group_id, topic, index, lag

    # -- the topic ---------------------------------------------------------------------------

    def create_topic(self) -> None:
        """Begin to create `__consumer_offsets`, unless that is under way."""
        if self._creation is None or self._creation.done():
            self._creation = asyncio.create_task(self._create_topic(), name="consumer offsets")

    async def _create_topic(self) -> None:
        settings = self.settings
        configs = {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(settings.offsets_topic_segment_bytes),
        }
        topic = SimpleNamespace(
            name=CONSUMER_OFFSETS,
            num_partitions=settings.offsets_topic_partition_count,
            replication_factor=settings.offsets_topic_replication_factor,
            assignments=[],
            configs=[SimpleNamespace(name=name, value=value) for name, value in configs.items()],
        )
        request = SimpleNamespace(topics=[topic], validate_only=False)
        try:
            results = await self._metadata.submit(self._controller.create_topics(request))
        except KafkaError as error:
            logger.warning("%s could not be created: %s", CONSUMER_OFFSETS, error)
            return
        for result in results:
            code = ErrorCode(result.get("error_code", 0))
            if code not in {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}:
                logger.warning(
                    "%s could not be created: %s: %s",
                    CONSUMER_OFFSETS,
                    code.name,
                    result.get("error_message"),
                )

    # -- partitions --------------------------------------------------------------------------

    def _active_at(self, index: int) -> _Held:
        if self._is_stopped:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        partitions, _ = self._replicas.find(CONSUMER_OFFSETS, b"", by_id=False)
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

    def _active(self) -> list[_Held]:
        return [held for held in self._held.values() if held.status is ACTIVE]

    def _elect(self, index: int, partition: Partition) -> _Held:
        """Take a partition over: at once if it is empty, else when it is loaded."""
        held = _Held(partition, GroupShard(self.settings, new_uuid=self._new_uuid))
        self._held[index] = held
        if partition.log.log_start_offset == partition.log.log_end_offset:
            self._activate(held)
        else:
            held.task = asyncio.create_task(self._load(held), name=f"load groups {index}")
        return held

    async def _load(self, held: _Held) -> None:
        partition = held.partition
        begun = self._clock.monotonic()
        try:
            count = await load(partition.log, held.shard, self._clock)
        except (KafkaError, MalformedFrameError, OSError):
            held.status = FAILED
            logger.exception("%s-%d cannot be loaded", partition.topic, partition.index)
            return
        self._activate(held)
        logger.info(
            "loaded %d groups and %d offsets from %d records of %s-%d in %d ms",
            len(held.shard.groups),
            held.shard.offsets.count,
            count,
            partition.topic,
            partition.index,
            (self._clock.monotonic() - begun) * 1000,
        )

    def _activate(self, held: _Held) -> None:
        runner = CoordinatorPartition(
            held.partition,
            held.shard,
            self._clock,
            codec=Codec(self.settings.offsets_topic_compression_codec),
            commit_timeout_ms=self.settings.offsets_commit_timeout_ms,
            on_disk_failure=self._on_disk_failure,
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

    # -- expiry ------------------------------------------------------------------------------

    async def _expire_repeatedly(self) -> None:
        while True:
            await pause(self.settings.offsets_retention_check_interval_ms / 1000)
            try:
                await self.expire()
            except Exception:
                # A task's root: what one record brings about must not end all expiry.
                logger.exception("expired offsets could not be looked for; it is tried again")

    async def expire(self) -> None:
        """Delete the offsets and groups that nobody needs any more."""
        for held in self._active():
            await self._sweep(held, sweep_expired(held.shard, self._clock.now_ms()))

    async def _sweep(self, held: _Held, outcomes: Iterator[Outcome]) -> None:
        slices = Slices(self._clock)
        for outcome in outcomes:
            if held.status is not ACTIVE or held.runner is None or self._is_stopped:
                return
            held.runner.carry_out(outcome, held.runner.now())
            await slices.turn()
