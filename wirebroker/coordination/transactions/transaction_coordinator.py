"""The transaction coordinator of this node.

Source: Kafka's TransactionCoordinator and TransactionStateManager.
"""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING

from wirebroker.base.clock import Slices
from wirebroker.base.log_bound import about_transaction
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import NO_SEQUENCE
from wirebroker.coordination.coordinator_partitions import CoordinatorPartitions
from wirebroker.coordination.coordinator_service import CoordinatorService
from wirebroker.coordination.internal_topic import InternalTopic
from wirebroker.coordinator.controller.features.feature_control import TRANSACTION_VERSION
from wirebroker.coordinator.groups.partitions import TRANSACTION_STATE
from wirebroker.coordinator.transactions import expiry as transaction_expiry
from wirebroker.coordinator.transactions.shard import TransactionShard

if TYPE_CHECKING:
    from wirebroker.base.clock import Clock
    from wirebroker.coordination.partition_log import PartitionLog
    from wirebroker.coordination.transactions.transaction_markers import MarkerWriter
    from wirebroker.coordinator.outcome import Moment, Outcome, Token
    from wirebroker.coordinator.transactions.settings import TransactionSettings
    from wirebroker.engine.engine import Engine
    from wirebroker.quorum.channel.controller_channel import ControllerChannel
    from wirebroker.quorum.channel.producer_id_supply import ProducerIdSupply
    from wirebroker.quorum.image.metadata_follower import MetadataFollower
    from wirebroker.replica.replica_manager import ReplicaManager

logger = logging.getLogger(__name__)


class TransactionCoordinator(CoordinatorService[TransactionShard]):
    """All transactional ids whose partitions this node leads."""

    __slots__ = ("_metadata", "_producer_ids", "markers", "settings")

    def __init__(
        self,
        settings: TransactionSettings,
        *,
        clock: Clock,
        metadata: MetadataFollower,
        controller: ControllerChannel,
        replicas: ReplicaManager,
        producer_ids: ProducerIdSupply,
        markers: MarkerWriter,
    ) -> None:
        self.settings = settings
        self.markers = markers
        self._metadata = metadata
        self._producer_ids = producer_ids
        topic = InternalTopic(
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
        partitions = CoordinatorPartitions(
            TRANSACTION_STATE,
            new_shard=self._new_shard,
            clock=clock,
            base_sequence=NO_SEQUENCE,
            on_disk_failure=replicas.disk_failed,
            on_effect=markers.begin,
        )
        super().__init__(topic, partitions, replicas.leaderships, clock)

    def start(self) -> None:
        """Start to load partitions, abort timed-out transactions and expire ids."""
        super().start()
        settings = self.settings
        self.repeat("transaction timeouts", settings.abort_interval_ms, self.abort_timed_out)
        self.repeat("transactional id expiry", settings.id_expiration_interval_ms, self.expire)

    async def catch_up(self) -> None:
        """Run everything that is due, and wait for the markers."""
        await super().catch_up()
        await self.markers.until_written()

    async def stop(self) -> None:
        """Stop accepting requests and writing markers. Call it before connections close."""
        await super().stop()
        # Decisions committed meanwhile may have started some.
        await self.markers.stop()

    def _engine_of(self, target: str | int) -> Engine[TransactionShard]:
        """Return the engine of a partition or of a transactional id, which must not be empty."""
        if target == "":
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        return super()._engine_of(target)

    def shard_of(self, transactional_id: str) -> TransactionShard:
        """Return the shard of a transactional id, for reading.

        Raises:
            KafkaError: As CoordinatorPartitions.at; INVALID_REQUEST for an empty id.
        """
        return self._engine_of(transactional_id).machine

    def shards(self) -> list[TransactionShard]:
        """Return all shards, for reading.

        Raises:
            KafkaError: COORDINATOR_LOAD_IN_PROGRESS while one is loading.
        """
        if self._partitions.is_loading:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return [engine.machine for engine in self._partitions.active()]

    async def abort_timed_out(self) -> None:
        """Abort timed-out transactions."""
        slices = Slices(self._clock)
        for engine in self._partitions.active():
            for transactional_id in transaction_expiry.timed_out(
                engine.machine, self._clocks_now()
            ):
                await self._abort(engine, transactional_id)
                await slices.turn()

    async def _abort(self, engine: Engine[TransactionShard], transactional_id: str) -> None:
        with contextlib.suppress(KafkaError):  # few transactions need one
            await self._producer_ids.until_ready()
        if engine.is_closed:
            return
        clocks = self._clocks_now()

        def operation(shard: TransactionShard, _token: Token, now: Moment) -> Outcome:
            return transaction_expiry.abort_timed_out(shard, transactional_id, clocks, now)

        try:
            engine.run(operation)
        except KafkaError as error:
            logger.info(
                "cannot abort the transaction of %s yet: %s",
                transactional_id,
                error.code.name,
                extra=about_transaction(transactional_id),
            )
        else:
            logger.info(
                "aborted the transaction of %s: it timed out",
                transactional_id,
                extra=about_transaction(transactional_id),
            )

    async def expire(self) -> None:
        """Delete transactional ids that are unused for transactional.id.expiration.ms.

        The earliest of the current and the recent wall clocks applies.
        """
        now_ms = self._clocks_now().earliest_ms(kept_ms=self.settings.id_expiration_ms)
        for engine in self._partitions.active():
            outcomes = transaction_expiry.sweep_expired(engine.machine, now_ms)
            await self._partitions.sweep(engine, outcomes)

    def _new_shard(self, log: PartitionLog) -> TransactionShard:
        return TransactionShard(
            self.settings,
            coordinator_epoch=log.leader_epoch,
            take_producer_id=self._producer_ids.take,
            transaction_version=lambda: self._metadata.image.features.get(TRANSACTION_VERSION, 0),
        )
