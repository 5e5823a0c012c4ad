"""A node of a simulated cluster that coordinates the groups whose partitions it leads.

Coordinator, loading and handlers are the broker's own; the replicas notify the coordinator of
elections and resignations and replicate its records.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tests.support.replicas.broker_cluster import Member
from wirebroker.codecs.errors import KafkaError
from wirebroker.coordination.group_coordinator import GroupCoordinator
from wirebroker.coordinator.groups.partitions import CONSUMER_OFFSETS
from wirebroker.coordinator.groups.settings import GroupSettings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.coordinator.controller.image.image_change import ImageChange

for _module in (
    "groups.consumer_group_heartbeat",
    "groups.find_coordinator",
    "groups.offset_commit",
    "groups.offset_fetch",
    "groups.streams_group_heartbeat",
):
    importlib.import_module(f"wirebroker.api.{_module}")


class CoordinatingMember(Member):
    """One run of such a node."""

    groups: GroupCoordinator

    def begin(self) -> None:
        metadata: Any = self  # only its image is read
        self.groups = self.broker.groups = GroupCoordinator(
            GroupSettings.from_config(self.cluster.config),
            clock=self.broker.clock,
            metadata=metadata,
            controller=self._channel,
            replicas=self.replicas,
            new_uuid=lambda: str(UUID(bytes=self.cluster.new_uuid())),
        )
        self.groups.start()

    async def apply(self, change: ImageChange) -> None:
        await super().apply(change)
        await self.groups.apply(change, self.heard)

    def epoch_for(self, group: str) -> int | None:
        """Return the leader epoch in which it coordinates a group, or None."""
        index = self.groups.partition_for(group)
        partition = self.replicas.find(CONSUMER_OFFSETS, b"", by_id=False)[0].get(index)
        return None if partition is None else self.replicas.leaderships.led.get(partition)

    def held(self, groups: Iterable[str]) -> dict[str, int]:
        """Return the committed offset for t-0 of each group loaded here, or -1."""
        offsets: dict[str, int] = {}
        for group in groups:
            try:
                engine = self.groups._partitions.at(self.groups.partition_for(group))
            except KafkaError:
                continue  # not coordinated here, or still loading
            commit = engine.machine.offsets.find(group, "t", 0)
            offsets[group] = -1 if commit is None else commit.offset
        return offsets
