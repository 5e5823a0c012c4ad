"""Every node finds the end offsets of partitions that other nodes lead."""

from __future__ import annotations

import asyncio
import importlib
from typing import TYPE_CHECKING, Any

from tests.support.replicas.broker_cluster import Cluster, Member
from tests.support.tools.waiting import PATIENCE_S, until
from wirebroker.base.clock import next_turn
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.share.latest_offsets import LatestOffsets

if TYPE_CHECKING:
    from pathlib import Path

importlib.import_module("wirebroker.api.data.list_offsets")


class _ListingMember(Member):
    """A node that returns end offsets to others."""

    offsets: LatestOffsets

    def begin(self) -> None:
        metadata: Any = self  # only its image is read
        self.offsets = LatestOffsets(
            self.node_id,
            metadata=metadata,
            replicas=self.replicas,
            find_node=self.replication.find_node,
            clock=self.broker.clock,
        )
        self.peer.answers[ApiKey.LIST_OFFSETS] = self._begin


class _ListingCluster(Cluster):
    member_kind = _ListingMember


async def test_all_nodes_know_the_end_offsets_of_all_partitions(tmp_path: Path) -> None:
    async with _ListingCluster(tmp_path) as cluster:
        cluster.create_topic((1,), (2,), (3,))
        image = cluster.image
        await until(lambda: all(member.heard is image for member in cluster.members.values()))
        (name,) = image.topics
        partitions = [(name, index) for index in range(3)]
        expected = dict.fromkeys(partitions, 0)
        for member in cluster.members.values():
            assert isinstance(member, _ListingMember)
            offsets = await member.offsets.of(partitions)
            async with asyncio.timeout(PATIENCE_S):
                # Until the leaders have opened their replicas.
                while offsets != expected:
                    await next_turn()
                    offsets = await member.offsets.of(partitions)
