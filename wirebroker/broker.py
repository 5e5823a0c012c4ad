"""What a handler is given: this node's parts, built and ordered by server.py.

Handlers read the committed metadata at `metadata.image`, change it through `metadata.submit`, and
reach logs through `replicas`. Nothing else is shared between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wirebroker.coordinator.cluster_image import ResourceType

if TYPE_CHECKING:
    from wirebroker.api.auto_creation import AutoCreation
    from wirebroker.api.fetch_sessions import FetchSessions
    from wirebroker.api.metadata_cache import MetadataCache
    from wirebroker.clock import Clock
    from wirebroker.cluster.group_coordinator import GroupCoordinator
    from wirebroker.cluster.metadata_log import MetadataLog
    from wirebroker.cluster.producer_id_supply import ProducerIdSupply
    from wirebroker.cluster.replica_manager import ReplicaManager
    from wirebroker.cluster.transaction_admission import TransactionAdmission
    from wirebroker.cluster.transaction_coordinator import TransactionCoordinator
    from wirebroker.config import Config
    from wirebroker.coordinator.cluster_image import ClusterImage
    from wirebroker.coordinator.controller import Controller
    from wirebroker.coordinator.image_builder import ImageChange


@dataclass(slots=True)
class Broker:
    """One node, as its handlers see it."""

    config: Config
    clock: Clock
    node_id: int
    cluster_id: str
    metadata: MetadataLog
    controller: Controller
    replicas: ReplicaManager
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    admission: TransactionAdmission
    producer_ids: ProducerIdSupply
    fetch_sessions: FetchSessions
    metadata_cache: MetadataCache
    auto_creation: AutoCreation
    # Listeners whose clients are told the address that they reached us at.
    auto_listeners: frozenset[str]
    # Set when the broker is told to stop: who waits for records is answered with what there is.
    is_stopping: bool = False

    async def follow(self, change: ImageChange, image: ClusterImage) -> None:
        """Have every part follow a change of the metadata; its request is answered afterwards."""
        if any(kind == ResourceType.BROKER for kind, _ in change.configs_changed):
            self.config = self.controller.config = dynamic_config(self.config, image, self.node_id)
            await self.replicas.use_config(self.config, image)
        await self.replicas.apply(change, image)
        self.transactions.follow(change)
        await self.groups.apply(change, image)


def dynamic_config(config: Config, image: ClusterImage, node_id: int) -> Config:
    """Return the configuration under what AlterConfigs has set for the brokers."""
    return config.with_dynamic(
        cluster_wide=image.config(ResourceType.BROKER, ""),
        this_broker=image.config(ResourceType.BROKER, str(node_id)),
    )
