"""Reads the newest image of a cluster from its controllers, without storing it.

Source: an observer without a node id (KIP-595), like Kafka's metadata shell.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from wirebroker.base.threads import Work, in_thread
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.config.rows.row import StartError
from wirebroker.quorum.image.metadata_follower import MetadataFollower
from wirebroker.quorum.log.metadata_snapshot import read_snapshot
from wirebroker.quorum.log.observed_log import FetchedBatch, image_of_snapshot
from wirebroker.quorum.membership.joined_quorum import controllers_at, find_cluster
from wirebroker.quorum.membership.metadata_fetcher import MetadataFetcher

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.base.clock import Clock
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.net.client.settings import PeerAddress
    from wirebroker.quorum.log.metadata_snapshot import SnapshotId
    from wirebroker.security.login.outgoing import ConnectionMethod


class MemoryLog:
    """A log that drops batches once they are applied; it ignores kraft.version."""

    kraft_version = 0

    __slots__ = ("_clock", "_uncommitted", "end_offset", "last_epoch")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._uncommitted: deque[FetchedBatch] = deque()
        self.end_offset = 0
        self.last_epoch = 0

    def append(self, batches: list[FetchedBatch]) -> None:
        """Append the next batches."""
        for fetched in batches:
            self._uncommitted.append(fetched)
            self.end_offset = fetched.header.last_offset + 1
            self.last_epoch = fetched.header.leader_epoch

    def take_committed(self, high_watermark: int) -> list[FetchedBatch]:
        """Return the newly committed batches."""
        committed: list[FetchedBatch] = []
        while self._uncommitted and self._uncommitted[0].header.last_offset < high_watermark:
            committed.append(self._uncommitted.popleft())
        return committed

    def truncate(self, epoch: int, end_offset: int) -> None:
        """Fail: the quorum has another leader.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER.
        """
        del epoch, end_offset
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the quorum leader has changed")

    async def install(self, snapshot: SnapshotId, content: bytes) -> ClusterImage:
        """Replace the log by a snapshot; return its image."""
        self._uncommitted.clear()
        self.end_offset, self.last_epoch = snapshot
        contents = await in_thread(Work.UPKEEP, read_snapshot, content)
        return await image_of_snapshot(contents, snapshot, self._clock)

    def condense(self, image: ClusterImage) -> None:
        """Do nothing."""


async def read_image(
    addresses: Sequence[PeerAddress], *, way: ConnectionMethod, clock: Clock, timeout_s: float
) -> ClusterImage:
    """Return the committed image of a quorum.

    `timeout_s` is for finding the controllers, and again for their responses.

    Raises:
        StartError: The image is unavailable.
    """
    controllers = controllers_at(addresses, clock, way=way)
    failures: list[str] = []
    try:
        cluster_id, _ = await find_cluster(controllers, clock=clock, timeout_s=timeout_s)
    except StartError:
        await controllers.close()
        raise
    follower = MetadataFollower(clock)
    fetcher = MetadataFetcher(
        controllers,
        MemoryLog(clock),
        follower,
        clock=clock,
        cluster_id=cluster_id,
        on_failure=failures.append,
    )
    fetching = asyncio.create_task(fetcher.run(), name="fetch the metadata image")
    caught_up = asyncio.create_task(fetcher.caught_up.wait())
    await asyncio.wait(
        {fetching, caught_up}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
    )
    for task in (caught_up, fetching):
        task.cancel()
    await asyncio.wait({fetching})
    if not fetcher.caught_up.is_set():
        reason = failures[0] if failures else f"it was not fetched within {timeout_s:g} s"
        raise StartError(f"the cluster's metadata cannot be read: {reason}", "try again")
    return follower.image


def lowest_free_id(image: ClusterImage, *, above: int = 0) -> int:
    """Return the lowest node id greater than `above` that no broker or controller has."""
    node_id = above + 1
    while node_id in image.brokers or node_id in image.controllers:
        node_id += 1
    return node_id
