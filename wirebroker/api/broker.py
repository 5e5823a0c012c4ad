"""The broker as its handlers see it; broker/broker_opening.py builds it."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wirebroker.base.metrics import Metrics
from wirebroker.config.sources.dynamic import with_usable
from wirebroker.coordinator.controller.image.cluster_image import ResourceType
from wirebroker.coordinator.controller.image.image_change import change_between

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from wirebroker.api.share_parts import LateShareParts
    from wirebroker.authorization.access import Authorization
    from wirebroker.base.clock import Clock
    from wirebroker.client_metrics.client_metrics import ClientMetrics
    from wirebroker.config import Config
    from wirebroker.coordination.auto_creation import AutoCreation
    from wirebroker.coordination.group_coordinator import GroupCoordinator
    from wirebroker.coordination.share_coordinator import ShareCoordinator
    from wirebroker.coordination.transactions.transaction_coordinator import TransactionCoordinator
    from wirebroker.coordination.transactions.transaction_verifier import TransactionVerifier
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.controller.image.image_change import ImageChange
    from wirebroker.coordinator.quotas.quota_entity import ClientQuotas as ClientQuotasByEntity
    from wirebroker.quorum.channel.controller_channel import ControllerChannel
    from wirebroker.quorum.channel.producer_id_supply import ProducerIdSupply
    from wirebroker.quorum.image.metadata_cache import MetadataCache
    from wirebroker.quorum.image.metadata_follower import MetadataFollower
    from wirebroker.quotas.client_quotas import ClientQuotas
    from wirebroker.quotas.replication_quotas import ReplicationQuotas
    from wirebroker.replica.replica_manager import ReplicaManager
    from wirebroker.replication.isr_changes import IsrChanges
    from wirebroker.replication.replica_moves import ReplicaMoves
    from wirebroker.request.fetch_sessions import FetchSessions
    from wirebroker.share.default_persister import DefaultPersister
    from wirebroker.share.latest_offsets import LatestOffsets
    from wirebroker.share.share_partition_manager import SharePartitionManager

logger = logging.getLogger("wirebroker")


@dataclass(slots=True)
class Broker:
    """The parts of one node.

    Handlers read the committed metadata at `metadata.image`, change it through `controller`, and
    reach logs through `replicas`.
    """

    config: Config
    clock: Clock
    node_id: int
    cluster_id: str
    metadata: MetadataFollower
    controller: ControllerChannel
    replicas: ReplicaManager
    isr_changes: IsrChanges
    replica_moves: ReplicaMoves
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    transaction_verifier: TransactionVerifier
    share_coordinator: ShareCoordinator
    share_parts: LateShareParts
    producer_ids: ProducerIdSupply
    fetch_sessions: FetchSessions
    metadata_cache: MetadataCache
    auto_creation: AutoCreation
    quotas: ClientQuotas
    replication_quotas: ReplicationQuotas
    # Listeners that advertise the address to which the client connected.
    auto_listeners: frozenset[str]
    metrics: Metrics = field(default_factory=Metrics)
    # None unless wirebroker.client.metrics is set.
    client_metrics: ClientMetrics | None = None
    # None allows everything.
    authorization: Authorization | None = None
    # Waiting Fetch requests then return what there is.
    is_stopping: bool = False
    quota_users: list[Callable[[ClientQuotasByEntity], None]] = field(
        default_factory=list["Callable[[ClientQuotasByEntity], None]"]
    )
    # Called first with each new configuration: the controller's rules, if in this process.
    config_users: list[Callable[[Config], None]] = field(
        default_factory=list["Callable[[Config], None]"]
    )
    # Called to validate a new configuration before it is stored.
    config_trials: list[Callable[[Config], Awaitable[None]]] = field(
        default_factory=list["Callable[[Config], Awaitable[None]]"]
    )
    # Called last: objects that are built around the broker.
    config_followers: list[Callable[[Config], Awaitable[None]]] = field(
        default_factory=list["Callable[[Config], Awaitable[None]]"]
    )

    @property
    def persister(self) -> DefaultPersister:
        """Stores the state of share groups with the cluster's share coordinators."""
        return self.share_parts.get().persister

    @property
    def latest_offsets(self) -> LatestOffsets:
        """The ends of partitions, also of other nodes, for the lag of share groups."""
        return self.share_parts.get().latest_offsets

    @property
    def shares(self) -> SharePartitionManager:
        """The share partitions and share sessions of this node."""
        return self.share_parts.get().partitions

    async def follow_metadata(self, image: ClusterImage) -> None:
        """Apply metadata changes since `image` to all parts, in this order, and subscribe them.

        Later parts use the configuration; coordinators need the replicas of their partitions.
        """
        followers = {
            "the configuration": self._follow_configs,
            "the replicas": self.replicas.apply,
            "the groups": self.groups.apply,
            "the share coordinator": self.share_coordinator.apply,
            "the share groups": self.share_parts.apply,
            "the metadata cache": self._follow_topics,
            "the quotas": self._follow_quotas,
        }
        if self.client_metrics is not None:
            followers["the client metrics"] = self.client_metrics.apply
        while image is not self.metadata.image:  # repeat for changes meanwhile
            before, image = image, self.metadata.image
            change = change_between(before, image)
            for follow in followers.values():
                await follow(change, image)
        for name, follow in followers.items():
            self.metadata.subscribe(name, follow)

    async def _follow_configs(self, change: ImageChange, image: ClusterImage) -> None:
        own_resources = {(ResourceType.BROKER, ""), (ResourceType.BROKER, str(self.node_id))}
        if own_resources.isdisjoint(change.configs):
            return
        self.config = dynamic_config(self.config, image, self.node_id)
        for use_config in self.config_users:
            use_config(self.config)
        self.transaction_verifier.use_config(self.config)
        self.groups.use_config(self.config)
        await self.replicas.use_config(self.config, image)
        for follow in self.config_followers:
            await follow(self.config)

    async def _follow_quotas(self, change: ImageChange, image: ClusterImage) -> None:
        if change.quotas:
            self.use_quotas(image.client_quotas)

    def use_quotas(self, quotas: ClientQuotasByEntity) -> None:
        """Apply client quotas."""
        self.quotas.follow(quotas)
        for use in self.quota_users:
            use(quotas)

    async def _follow_topics(self, change: ImageChange, image: ClusterImage) -> None:
        del image
        self.metadata_cache.follow(change)


def dynamic_config(config: Config, image: ClusterImage, node_id: int) -> Config:
    """Return the configuration with the dynamic broker configs."""
    usable, problems = with_usable(
        config,
        cluster_wide=image.config(ResourceType.BROKER, ""),
        this_broker=image.config(ResourceType.BROKER, str(node_id)),
    )
    for problem in problems:
        logger.error("ignoring a dynamic config: %s", problem)
    return usable
