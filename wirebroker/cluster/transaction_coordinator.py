"""The transaction coordinator of this node: where a transactional id is kept, and regular duties.

    submit(transactional id, operation) -> the partition of `__transaction_state` -> its shard
    effects of the shard                -> transaction_markers.py

How partitions are loaded and served: coordinator_partitions.py. The topic is created when somebody
first looks for a coordinator.

Source: Kafka's TransactionCoordinator and TransactionStateManager.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from wirebroker.clock import Slices, pause
from wirebroker.cluster.coordinator_partitions import CoordinatorPartitions
from wirebroker.cluster.internal_topic import InternalTopic
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.record_batch import NO_SEQUENCE
from wirebroker.coordinator import transaction_expiry
from wirebroker.coordinator.feature_control import TRANSACTION_VERSION
from wirebroker.coordinator.group_partitions import TRANSACTION_STATE, partition_for
from wirebroker.coordinator.transactions import TransactionShard
from wirebroker.storage.wall_clocks import WallClocks

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from wirebroker.clock import Clock
    from wirebroker.cluster.coordinator_partitions import Held
    from wirebroker.cluster.metadata_log import MetadataLog
    from wirebroker.cluster.partition import Partition
    from wirebroker.cluster.producer_id_supply import ProducerIdSupply
    from wirebroker.cluster.replica_manager import ReplicaManager
    from wirebroker.cluster.transaction_markers import MarkerWriter
    from wirebroker.coordinator.controller import Controller
    from wirebroker.coordinator.image_builder import ImageChange
    from wirebroker.coordinator.runtime import Moment, Outcome, Token
    from wirebroker.coordinator.transaction_settings import TransactionSettings
    from wirebroker.storage.wall_clocks import Moment as Clocks

    Response = Mapping[str, Any]
    # What a request does to its shard.
    TransactionOperation = Callable[[TransactionShard, Token, Moment], Outcome]

logger = logging.getLogger(__name__)


class TransactionCoordinator:
    """All transactional ids whose partitions this node leads.

    Attributes:
        settings: The configs in force.
        markers: Writes the ends of transactions.
    """

    __slots__ = (
        "_clock",
        "_clocks",
        "_duties",
        "_metadata",
        "_partitions",
        "_producer_ids",
        "_topic",
        "markers",
        "settings",
    )

    def __init__(
        self,
        settings: TransactionSettings,
        *,
        clock: Clock,
        metadata: MetadataLog,
        controller: Controller,
        replicas: ReplicaManager,
        producer_ids: ProducerIdSupply,
        markers: MarkerWriter,
    ) -> None:
        self.settings = settings
        self.markers = markers
        self._clock = clock
        self._clocks = WallClocks(clock.now_ms(), clock.monotonic())
        self._metadata = metadata
        self._producer_ids = producer_ids
        self._topic = InternalTopic(
            TRANSACTION_STATE,
            partition_count=settings.topic_partition_count,
            replication_factor=settings.topic_replication_factor,
            configs={
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": str(settings.topic_min_isr),
                "segment.bytes": str(settings.topic_segment_bytes),
                "unclean.leader.election.enable": "false",
            },
            metadata=metadata,
            controller=controller,
        )
        self._partitions = CoordinatorPartitions(
            TRANSACTION_STATE,
            base_sequence=NO_SEQUENCE,
            new_shard=self._new_shard,
            clock=clock,
            replicas=replicas,
            on_effect=markers.begin,
        )
        self._duties: list[asyncio.Task[None]] = []

    # -- start and stop ----------------------------------------------------------------------

    def start(self) -> None:
        """Begin to load what is there; requests are answered meanwhile."""
        self._partitions.start()
        settings = self.settings
        for name, interval_ms, duty in (
            ("transaction timeouts", settings.abort_interval_ms, self.abort_timed_out),
            ("transactional id expiry", settings.id_expiration_interval_ms, self.expire),
        ):
            task = asyncio.create_task(_repeat(name, interval_ms, duty), name=name)
            self._duties.append(task)

    async def stop(self) -> None:
        """Take no more requests, write no more markers. Call it before connections close."""
        for task in self._duties:
            task.cancel()
        await asyncio.gather(*self._duties, return_exceptions=True)
        await self.markers.stop()
        await self._partitions.stop()
        await self._topic.stop()

    def follow(self, change: ImageChange) -> None:
        """Follow a change of the metadata, after the replicas have."""
        self._partitions.follow(change)

    # -- requests ----------------------------------------------------------------------------

    def submit(
        self,
        transactional_id: str,
        operation: TransactionOperation,
        *,
        on_error: Callable[[ErrorCode], Response],
        finish: Callable[[dict[str, Any]], Response] | None = None,
    ) -> Response | asyncio.Future[Response]:
        """Run an operation on the shard of a transactional id.

        Args:
            transactional_id: Whose shard.
            operation: Answers its token, now or later.
            on_error: Makes the response for an error.
            finish: Makes the response of what the operation answers; None if that is it.

        Returns:
            The response, or a future of it.
        """
        if not transactional_id:
            return on_error(ErrorCode.INVALID_REQUEST)
        return self._partitions.submit(
            self.partition_for(transactional_id), operation, on_error=on_error, finish=finish
        )

    def shard_of(self, transactional_id: str) -> TransactionShard:
        """Return the shard of a transactional id, to be read.

        Raises:
            KafkaError: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE;
                INVALID_REQUEST for an empty id.
        """
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        return self._partitions.at(self.partition_for(transactional_id)).shard

    def shards(self) -> list[TransactionShard]:
        """Return all shards, to be read.

        Raises:
            KafkaError: COORDINATOR_LOAD_IN_PROGRESS while one is not loaded.
        """
        if self._partitions.is_loading:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return [held.shard for held in self._partitions.active()]

    def partition_for(self, transactional_id: str) -> int:
        """Return the partition of `__transaction_state` that a transactional id is kept in."""
        return partition_for(transactional_id, self._topic.partition_count)

    def create_topic(self) -> None:
        """Begin to create `__transaction_state`, unless that is under way."""
        self._topic.create()

    # -- duties ------------------------------------------------------------------------------

    async def abort_timed_out(self) -> None:
        """Abort the transactions that take too long."""
        slices = Slices(self._clock)
        for held in self._partitions.active():
            for transactional_id in transaction_expiry.timed_out(held.shard, self._clocks_now()):
                await self._abort(held, transactional_id)
                await slices.turn()

    async def _abort(self, held: Held[TransactionShard], transactional_id: str) -> None:
        runner = held.runner
        assert runner is not None, "an active partition has one"
        with contextlib.suppress(KafkaError):  # hardly any transaction needs one
            await self._producer_ids.until_ready()
        if runner.is_closed:
            return
        abort = transaction_expiry.abort_timed_out
        operation = partial(abort, held.shard, transactional_id, self._clocks_now())
        try:
            runner.run(operation)
        except KafkaError as error:
            logger.info("%s is not aborted yet: %s", transactional_id, error.code.name)
        else:
            logger.info("the transaction of %s has taken too long: aborted", transactional_id)

    async def expire(self) -> None:
        """Delete the transactional ids that nobody uses any more, by all clocks."""
        now_ms = self._clocks_now().earliest_ms(kept_ms=self.settings.id_expiration_ms)
        for held in self._partitions.active():
            outcomes = transaction_expiry.sweep_expired(held.shard, now_ms)
            await self._partitions.sweep(held, outcomes)

    def _clocks_now(self) -> Clocks:
        return self._clocks.moment(self._clock.now_ms(), self._clock.monotonic())

    def _new_shard(self, partition: Partition) -> TransactionShard:
        return TransactionShard(
            self.settings,
            coordinator_epoch=partition.leader_epoch,
            take_producer_id=self._producer_ids.take,
            transaction_version=lambda: self._metadata.image.features.get(TRANSACTION_VERSION, 0),
        )


async def _repeat(name: str, interval_ms: int, duty: Callable[[], Awaitable[None]]) -> None:
    while True:
        await pause(interval_ms / 1000)
        try:
            await duty()
        except Exception:
            # A task's root: what one record brings about must not end it for good.
            logger.exception("%s: something failed; it is tried again", name)
