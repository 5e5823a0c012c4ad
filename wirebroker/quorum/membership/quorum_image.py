"""A look at a cluster before it is joined: the newest image, read from its controllers, not kept.

Source: an observer without a node id (KIP-595), as Kafka's own shell of the metadata is one.
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
    from wirebroker.security.login.outgoing import Way


class UnkeptLog:
    """Batches until they are applied, then nothing; see metadata_fetcher.FetchedLog."""

    __slots__ = ("_clock", "_uncommitted", "end_offset", "last_epoch")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._uncommitted: deque[FetchedBatch] = deque()
        self.end_offset = 0
        self.last_epoch = 0

    def append(self, batches: list[FetchedBatch]) -> None:
        """Take batches that come next."""
        for each in batches:
            self._uncommitted.append(each)
            self.end_offset = each.header.last_offset + 1
            self.last_epoch = each.header.leader_epoch

    def take_committed(self, high_watermark: int) -> list[FetchedBatch]:
        """Return the batches that are committed by now and were not returned before."""
        taken: list[FetchedBatch] = []
        while self._uncommitted and self._uncommitted[0].header.last_offset < high_watermark:
            taken.append(self._uncommitted.popleft())
        return taken

    def truncate(self, epoch: int, end_offset: int) -> None:
        """Give up: the quorum has another leader.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER.
        """
        del epoch, end_offset
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the quorum has changed its leader")

    async def install(self, snapshot: SnapshotId, content: bytes) -> ClusterImage:
        """Begin anew with a snapshot; return its image."""
        self._uncommitted.clear()
        self.end_offset, self.last_epoch = snapshot
        contents = await in_thread(Work.UPKEEP, read_snapshot, content)
        return await image_of_snapshot(contents, snapshot, self._clock)

    def condense(self, image: ClusterImage) -> None:
        """Do nothing: nothing is kept."""


async def read_image(
    addresses: Sequence[PeerAddress], *, way: Way, clock: Clock, timeout_s: float
) -> ClusterImage:
    """Return the image of everything that the quorum has committed.

    Args:
        addresses: Of some controllers.
        way: How they are reached.
        clock: For waits, and slices of long work.
        timeout_s: How long the controllers are looked for, and then asked.

    Raises:
        StartError: It cannot be had.
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
        UnkeptLog(clock),
        follower,
        clock=clock,
        cluster_id=cluster_id,
        on_failure=failures.append,
    )
    fetching = asyncio.create_task(fetcher.run(), name="a look at the metadata")
    caught_up = asyncio.create_task(fetcher.caught_up.wait())
    await asyncio.wait(
        {fetching, caught_up}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
    )
    for each in (caught_up, fetching):
        each.cancel()
    await asyncio.wait({fetching})
    if not fetcher.caught_up.is_set():
        why = failures[0] if failures else f"it was not fetched within {timeout_s:g} s"
        raise StartError(f"the cluster's metadata cannot be read: {why}", "try again")
    return follower.image


def lowest_free_id(image: ClusterImage, *, above: int = 0) -> int:
    """Return the lowest node id that no broker and no controller has, and that is above one."""
    node_id = above + 1
    while node_id in image.brokers or node_id in image.controllers:
        node_id += 1
    return node_id
