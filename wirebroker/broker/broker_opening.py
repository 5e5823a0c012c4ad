"""Construction of a broker from locked directories and a quorum.

    quorum            replay the metadata log into an image
    register          as a broker of Apache Kafka, replacing an incarnation that was killed
    replicas          open every log; recover it unless the last shutdown was clean
    coordinators      of groups, transactions and share groups, still empty
    follow, unfence   follow the metadata, and lead

server.py has the steps before and after.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from wirebroker.api.broker import Broker, dynamic_config
from wirebroker.api.modules import load_handlers
from wirebroker.api.share_parts import LateShareParts, ShareParts
from wirebroker.base.gc_tuning import uncollected
from wirebroker.coordination.auto_creation import AutoCreation
from wirebroker.coordination.group_coordinator import GroupCoordinator
from wirebroker.coordination.share_coordinator import ShareCoordinator
from wirebroker.coordination.transactions.remote_markers import RemoteMarkers
from wirebroker.coordination.transactions.remote_verification import RemoteVerification
from wirebroker.coordination.transactions.transaction_coordinator import TransactionCoordinator
from wirebroker.coordination.transactions.transaction_markers import MarkerWriter
from wirebroker.coordination.transactions.transaction_verifier import TransactionVerifier
from wirebroker.coordinator.groups.partitions import (
    CONSUMER_OFFSETS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
)
from wirebroker.coordinator.groups.settings import GroupSettings
from wirebroker.coordinator.share_state.settings import ShareStateSettings
from wirebroker.coordinator.transactions.settings import TransactionSettings
from wirebroker.quorum.channel.producer_id_supply import ProducerIdSupply
from wirebroker.quorum.image.metadata_cache import MetadataCache
from wirebroker.quotas.client_quotas import ClientQuotas
from wirebroker.replica.replica_manager import ReplicaManager
from wirebroker.replication.replication import Replication
from wirebroker.request.fetch_sessions import FetchSessions

if TYPE_CHECKING:
    from wirebroker.base.clock import Clock
    from wirebroker.base.metrics import Metrics
    from wirebroker.broker.listeners import Listeners
    from wirebroker.client_metrics.client_metrics import ClientMetrics
    from wirebroker.config import Config
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.disks.log_dir_locks import LogDirLocks
    from wirebroker.quorum.membership.quorum import Quorum
    from wirebroker.storage.files import Files

# Time limit for the controller to know the replicas' directories.
_NOTIFY_INTERVAL_S = 5.0


class BrokerOpening:
    """The steps from a start to a broker that leads.

    Attributes:
        is_registered: Whether the controller knows of this start.
        replication: Set once it is built.
    """

    __slots__ = (
        "_clock",
        "_config",
        "_directories",
        "_files",
        "_metrics",
        "_network_clock",
        "_quorum",
        "_reception",
        "is_registered",
        "replication",
    )

    def __init__(
        self,
        config: Config,
        *,
        directories: LogDirLocks,
        files: Files,
        quorum: Quorum,
        reception: Listeners,
        clock: Clock,
        network_clock: Clock,
        metrics: Metrics,
    ) -> None:
        """Store the parts; the listeners are bound, not yet open.

        `config` is without dynamic configs, and `network_clock` measures throttle times.
        """
        self._config = config
        self._directories = directories
        self._files = files
        self._quorum = quorum
        self._reception = reception
        self._clock = clock
        self._network_clock = network_clock
        self._metrics = metrics
        self.is_registered = False
        self.replication: Replication | None = None

    async def open(self) -> Broker:
        """Return the broker, which follows the metadata and leads its partitions.

        Raises:
            StartError: The user can fix the problem.
            KafkaError: The controller refuses the broker.
            OSError: An indispensable disk failed.
        """
        quorum, directories = self._quorum, self._directories
        await quorum.open(
            directories.metadata_home,
            cluster_id=directories.cluster_id,
            directory_id=directories.metadata_directory_id,
        )
        # Refuses data of a newer broker before anything is changed.
        directories.begin_use()
        await self._register()
        # follow_metadata brings later changes.
        loaded = quorum.metadata.image
        config = dynamic_config(self._config, loaded, self._config.node_id)
        quorum.use_config(config)
        replicas = await self._open_replicas(config, loaded)
        replication = self.replication = self._replication_of(config, replicas)
        with uncollected():
            load_handlers()
        broker = self._broker_of(config, replication)
        broker.config_users += (
            replicas.choice.use_cordon,
            quorum.use_config,
            replication.use_config,
            broker.share_parts.use_config,
        )
        await broker.follow_metadata(loaded)
        await self._begin_to_lead(replication)
        broker.groups.start()
        broker.transactions.start()
        broker.share_coordinator.start()
        return broker

    async def _register(self) -> None:
        directories = self._directories.online
        # It is unknown how a failed directory was left.
        epochs = {directory.previous_broker_epoch for directory in self._directories.of_logs}
        await self._quorum.lifecycle.register(
            cluster_id=self._directories.cluster_id,
            endpoints=await self._quorum.endpoints(self._reception.endpoints),
            log_directories=[directory.directory_id for directory in directories],
            rack=self._config.optional_str("broker.rack"),
            # Different epochs mean that the shutdown was not clean.
            previous_broker_epoch=epochs.pop() if len(epochs) == 1 else -1,
        )
        self.is_registered = True

    async def _open_replicas(self, config: Config, image: ClusterImage) -> ReplicaManager:
        replicas = ReplicaManager(
            self._directories.of_logs,
            self._files,
            config=config,
            clock=self._clock,
            node_id=config.node_id,
        )
        self._quorum.on_disk_failure(replicas.file_failed)
        self._quorum.watch_disks(replicas.directories)
        replicas.on_directory_failed = self._quorum.disk_failed
        await replicas.load(image)
        return replicas

    def _replication_of(self, config: Config, replicas: ReplicaManager) -> Replication:
        metadata = self._quorum.metadata
        return Replication(
            config,
            replicas=replicas,
            lifecycle=self._quorum.lifecycle,
            channel=self._quorum.channel,
            image=lambda: metadata.image,
            clock=self._clock,
        )

    def _broker_of(self, config: Config, replication: Replication) -> Broker:
        quorum, replicas = self._quorum, replication.replicas
        groups = GroupCoordinator(
            GroupSettings.from_config(config),
            clock=self._clock,
            metadata=quorum.metadata,
            controller=quorum.channel,
            replicas=replicas,
        )
        producer_ids = ProducerIdSupply(quorum.channel, quorum.lifecycle)
        transactions = self._transactions_of(config, replication, groups, producer_ids)
        share_coordinator = self._share_coordinator_of(config, replicas)
        share_parts = LateShareParts(lambda: _share_parts(broker, replication))
        groups.use_persister(lambda: share_parts.get().persister)
        slots = config.int("max.incremental.fetch.session.cache.slots")
        broker = Broker(
            config=config,
            metrics=self._metrics,
            clock=self._clock,
            node_id=config.node_id,
            cluster_id=self._directories.cluster_id,
            metadata=quorum.metadata,
            controller=quorum.channel,
            replicas=replicas,
            isr_changes=replication.isr_changes,
            replica_moves=replication.moves,
            groups=groups,
            transactions=transactions,
            transaction_verifier=self._verifier_of(config, replication, transactions),
            share_coordinator=share_coordinator,
            share_parts=share_parts,
            producer_ids=producer_ids,
            fetch_sessions=FetchSessions(slots, random.Random()),  # noqa: S311
            metadata_cache=MetadataCache(),
            auto_creation=AutoCreation(
                quorum.channel,
                {
                    CONSUMER_OFFSETS: groups.create_topic,
                    TRANSACTION_STATE: transactions.create_topic,
                    SHARE_GROUP_STATE: share_coordinator.create_topic,
                },
            ),
            quotas=ClientQuotas(config, self._network_clock),
            replication_quotas=replication.quotas,
            auto_listeners=self._reception.auto_listeners,
            client_metrics=self._client_metrics_of(config),
        )
        return broker

    def _client_metrics_of(self, config: Config) -> ClientMetrics | None:
        if not config.bool("wirebroker.client.metrics"):
            return None
        from wirebroker.client_metrics.client_metrics import ClientMetrics  # noqa: PLC0415

        client_metrics = ClientMetrics(config, self._clock)
        client_metrics.load(self._quorum.metadata.image)
        return client_metrics

    def _share_coordinator_of(self, config: Config, replicas: ReplicaManager) -> ShareCoordinator:
        return ShareCoordinator(
            ShareStateSettings.from_config(config),
            clock=self._clock,
            metadata=self._quorum.metadata,
            controller=self._quorum.channel,
            replicas=replicas,
        )

    def _transactions_of(
        self,
        config: Config,
        replication: Replication,
        groups: GroupCoordinator,
        producer_ids: ProducerIdSupply,
    ) -> TransactionCoordinator:
        replicas, clock = replication.replicas, self._clock
        return TransactionCoordinator(
            TransactionSettings.from_config(config),
            clock=clock,
            metadata=self._quorum.metadata,
            controller=self._quorum.channel,
            replicas=replicas,
            producer_ids=producer_ids,
            markers=MarkerWriter(
                clock=clock,
                replicas=replicas,
                groups=groups,
                sender=RemoteMarkers(replication.find_node),
            ),
        )

    def _verifier_of(
        self, config: Config, replication: Replication, transactions: TransactionCoordinator
    ) -> TransactionVerifier:
        metadata = self._quorum.metadata
        remote = RemoteVerification(config.node_id, metadata, replication.find_node)
        return TransactionVerifier(transactions, remote=remote, clock=self._clock, config=config)

    async def _begin_to_lead(self, replication: Replication) -> None:
        replication.start()
        # A replica in a directory that is unknown to the controller may not lead.
        await replication.directories.until_reported(timeout_s=_NOTIFY_INTERVAL_S)
        await self._quorum.lifecycle.unfence()


def _share_parts(broker: Broker, replication: Replication) -> ShareParts:
    from wirebroker.broker.share_opening import open_share_parts  # noqa: PLC0415

    return open_share_parts(broker, replication)
