"""Assigns each followed partition to one of its leader's num.replica.fetchers fetchers.

Source: Kafka's AbstractFetcherManager, ReplicaManager.applyLocalFollowersDelta.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from wirebroker.coordinator.controller.image.cluster_image import NO_LEADER
from wirebroker.replication.fetch_body import FetchSettings
from wirebroker.replication.replica_fetcher import ReplicaFetcher

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.config import Config
    from wirebroker.replica.partition import Partition
    from wirebroker.replication.fetch_body import Follower
    from wirebroker.replication.fetch_session_handler import PartitionKey

    _FetcherId = tuple[int, int]


class ReplicaFetchers:
    """The fetchers of one node, by leader and number."""

    __slots__ = ("_by_partition", "_count", "_fetchers", "_follower", "_settings", "_stopping")

    # Every value of _by_partition is a key of _fetchers; no fetcher is empty.

    def __init__(self, follower: Follower, config: Config) -> None:
        self._follower = follower
        self._settings = FetchSettings.from_config(config)
        self._count = config.int("num.replica.fetchers")
        self._fetchers: dict[_FetcherId, ReplicaFetcher] = {}
        self._by_partition: dict[PartitionKey, _FetcherId] = {}
        self._stopping: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._fetchers)

    def follow(self, partitions: Iterable[Partition]) -> None:
        """Assign partitions according to their changed roles."""
        emptied: set[_FetcherId] = set()
        for partition in partitions:
            key = (partition.topic_id, partition.index)
            old_id = self._by_partition.pop(key, None)
            new_id = self._fetcher_of(partition)
            if old_id is not None and old_id != new_id:
                self._fetchers[old_id].remove(key)
                emptied.add(old_id)
            if new_id is not None:
                self._by_partition[key] = new_id
                if new_id not in self._fetchers:
                    self._fetchers[new_id] = ReplicaFetcher(
                        new_id[0], self._follower, self._settings
                    )
                self._fetchers[new_id].add(partition)
        for fetcher_id in emptied:
            if not len(self._fetchers[fetcher_id]):
                self._let_go(self._fetchers.pop(fetcher_id))

    def use_config(self, config: Config, partitions: Iterable[Partition]) -> None:
        """Redistribute partitions if the number of fetchers has changed."""
        count = config.int("num.replica.fetchers")
        if count != self._count:
            self._count = count
            self.follow(partitions)

    async def stop(self) -> None:
        """Stop all fetchers."""
        fetchers, self._fetchers = self._fetchers, {}
        self._by_partition.clear()
        for fetcher in fetchers.values():
            self._let_go(fetcher)
        await asyncio.gather(*self._stopping)

    def _fetcher_of(self, partition: Partition) -> _FetcherId | None:
        leader = partition.leader
        if (
            partition.leading is not None
            or partition.is_retired
            or not partition.directory.is_online
            or leader in {NO_LEADER, self._follower.node_id}
        ):
            return None
        # Consecutive partitions of a topic use consecutive fetchers.
        return leader, (partition.topic_id[-1] + partition.index) % self._count

    def _let_go(self, fetcher: ReplicaFetcher) -> None:
        task = asyncio.create_task(fetcher.stop(), name="stop a fetcher")
        self._stopping.add(task)
        task.add_done_callback(self._stopping.discard)
