"""A node of a cluster without sockets that stores the state of share groups."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final, Self

from tests.support.replicas.broker_cluster import Cluster, Member
from wirebroker.codecs.metadata_records import RecordType, metadata_record
from wirebroker.coordination.share_coordinator import ShareCoordinator
from wirebroker.coordinator.groups.partitions import SHARE_GROUP_STATE
from wirebroker.coordinator.share_state.settings import ShareStateSettings
from wirebroker.share.default_persister import DefaultPersister
from wirebroker.share.remote_states import RemoteStates
from wirebroker.share.state_rpcs import DELETE, INITIALIZE, READ, READ_SUMMARY, WRITE

if TYPE_CHECKING:
    from pathlib import Path

    from wirebroker.coordinator.controller.image.image_change import ImageChange

importlib.import_module("wirebroker.api.share.share_group_state")

STATE_TOPIC_ID: Final = b"s" * 16


class ShareMember(Member):
    """One run of such a node."""

    coordinator: ShareCoordinator
    persister: DefaultPersister

    def begin(self) -> None:
        cluster = self.cluster
        metadata: Any = self  # only its image is read
        self.coordinator = self.broker.share_coordinator = ShareCoordinator(
            ShareStateSettings.from_config(cluster.config),
            clock=self.broker.clock,
            metadata=metadata,
            controller=self._channel,
            replicas=self.replicas,
        )
        self.persister = DefaultPersister(
            self.node_id,
            self.coordinator,
            RemoteStates(self.replication.find_node),
            image=self.heard,
            clock=self.broker.clock,
            random=cluster.random,
        )
        for rpc in (INITIALIZE, READ, WRITE, DELETE, READ_SUMMARY):
            self.peer.answers[rpc.key] = self._begin
        self.coordinator.start()

    async def apply(self, change: ImageChange) -> None:
        await super().apply(change)
        await self.coordinator.apply(change, self.heard)
        await self.persister.apply(change, self.heard)

    async def bury(self) -> None:
        await self.persister.stop()
        await self.coordinator.stop()
        await super().bury()


class ShareCluster(Cluster):
    """Nodes that store the state of share groups; share groups are enabled."""

    member_kind = ShareMember

    def __init__(self, path: Path | None, **options: Any) -> None:
        super().__init__(path, **options)
        self.write(metadata_record(RecordType.FEATURE_LEVEL, name="share.version", feature_level=1))

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        return self

    def __getitem__(self, node_id: int) -> ShareMember:
        member = self.members[node_id]
        assert isinstance(member, ShareMember)
        return member

    def create_state_topic(self, *assignments: tuple[int, ...]) -> None:
        self.create_topic(*assignments, name=SHARE_GROUP_STATE, topic_id=STATE_TOPIC_ID)
