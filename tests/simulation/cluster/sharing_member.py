"""A node of a simulated cluster with all parts of share groups.

Group coordinator, share coordinator, persister, share partitions and dead letters are the broker's
own. Transactions need no coordinator: their producers write the markers.
"""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from tests.simulation.cluster.coordinating_member import CoordinatingMember
from wirebroker.base.metrics import Metrics
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordination.share_coordinator import ShareCoordinator
from wirebroker.coordination.transactions.transaction_markers import MarkerWriter
from wirebroker.coordinator.groups.partitions import SHARE_GROUP_STATE, partition_for
from wirebroker.coordinator.share_partitions.share_configs import ShareConfigs
from wirebroker.coordinator.share_state.settings import ShareStateSettings
from wirebroker.share.dead_letter_sender import DeadLetterSender
from wirebroker.share.dead_letters import DeadLetters
from wirebroker.share.default_persister import DefaultPersister
from wirebroker.share.remote_states import RemoteStates
from wirebroker.share.share_partition_manager import SharePartitionManager
from wirebroker.share.state_rpcs import DELETE, INITIALIZE, READ, READ_SUMMARY, WRITE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.simulation.cluster.share_world import ShareWorld
    from tests.simulation.cluster.stormy_cluster import StormyCluster
    from wirebroker.coordinator.controller.image.image_change import ImageChange
    from wirebroker.coordinator.share_state.state import SharePartitionKey
    from wirebroker.coordinator.share_state.stored_state import StoredState

for _module in (
    "groups.share_group_heartbeat",
    "share.share_acknowledge",
    "share.share_fetch",
    "share.share_group_state",
    "transactions.write_txn_markers",
):
    importlib.import_module(f"wirebroker.api.{_module}")


class _NoVerifier:
    """Lets every transactional batch pass: its producer follows the protocol."""

    def ask(self, claim: Any, support: object) -> Mapping[Any, ErrorCode]:
        del support
        return dict.fromkeys(claim.partitions, ErrorCode.NONE)


class SharingMember(CoordinatingMember):
    """One run of such a node.

    Attributes:
        metrics: The metrics of this run.
    """

    cluster: StormyCluster
    metrics: Metrics
    coordinator: ShareCoordinator
    persister: DefaultPersister
    shares: SharePartitionManager

    def begin(self) -> None:
        super().begin()
        cluster, broker, clock = self.cluster, self.broker, self.broker.clock
        metadata: Any = self  # only its image is read
        self.metrics = broker.metrics = Metrics()
        self.coordinator = broker.share_coordinator = ShareCoordinator(
            ShareStateSettings.from_config(cluster.config),
            clock=clock,
            metadata=metadata,
            controller=self._channel,
            replicas=self.replicas,
        )
        self.persister = DefaultPersister(
            self.node_id,
            self.coordinator,
            RemoteStates(self.replication.find_node),
            image=self.heard,
            clock=clock,
            random=cluster.random,
        )
        self.groups.use_persister(lambda: self.persister)
        self.shares = broker.shares = self._new_shares()
        broker.transaction_verifier = _NoVerifier()
        broker.transactions = SimpleNamespace(
            markers=MarkerWriter(clock=clock, replicas=self.replicas, groups=self.groups)
        )
        for rpc in (INITIALIZE, READ, WRITE, DELETE, READ_SUMMARY):
            self.peer.answers[rpc.key] = self._begin
        self.coordinator.start()
        self.shares.start()
        world = cast("ShareWorld", cluster.world)
        world.nodes.append(self)

    def _new_shares(self) -> SharePartitionManager:
        configs = ShareConfigs(self.cluster.config, self.heard)
        clock = self.broker.clock
        dead_letters = DeadLetters(
            configs,
            controller=self._channel,
            sender=DeadLetterSender(self.replicas, self.replication.find_node, clock),
            clock=clock,
            metrics=self.metrics,
            random=self.cluster.random,
        )
        return SharePartitionManager(
            configs,
            clock=clock,
            replicas=self.replicas,
            persister=self.persister,
            dead_letters=dead_letters,
            metrics=self.metrics,
        )

    async def apply(self, change: ImageChange) -> None:
        await super().apply(change)
        await self.coordinator.apply(change, self.heard)
        await self.persister.apply(change, self.heard)
        await self.shares.apply(change, self.heard)

    def leader_epoch(self, index: int) -> int:
        """Return the leader epoch of a data partition as this node knows it, or -1."""
        partition = self.replicas.find("t", b"", by_id=False)[0].get(index)
        return -1 if partition is None else partition.leader_epoch

    def start_offset(self, key: SharePartitionKey) -> int:
        """Return the start offset of a share partition here, or -1."""
        share = self.shares.shares.get(key)
        return -1 if share is None or not share.is_active else share.state.start_offset

    def persisted(self, key: SharePartitionKey) -> StoredState | None:
        """Return the state of a share partition whose state is loaded here, or None."""
        index = partition_for(str(key), len(self.heard.topics[SHARE_GROUP_STATE].partitions))
        try:
            engine = self.coordinator._partitions.at(index)
        except KafkaError:
            return None
        recorded = engine.machine.recorded.get(key)
        return None if recorded is None else recorded.state
