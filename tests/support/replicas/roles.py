"""Roles for a partition under test, as metadata would assign them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from wirebroker.api.data.delayed_produce import Appended, DelayedProduce
from wirebroker.codecs.hot.produce_response import PartitionResult
from wirebroker.coordinator.controller.image.cluster_image import PartitionImage
from wirebroker.replica.replica_state import ACKS_ALL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirebroker.disks.data_directory import DataDirectory
    from wirebroker.replica.partition import Partition


def partition_image(
    *,
    leader: int = 1,
    leader_epoch: int = 0,
    partition_epoch: int = 0,
    replicas: tuple[int, ...] = (1,),
    isr: tuple[int, ...] | None = None,
    index: int = 0,
) -> PartitionImage:
    """Return a partition's image; by default all replicas are in sync."""
    return PartitionImage(
        index=index,
        replicas=replicas,
        isr=replicas if isr is None else isr,
        leader=leader,
        leader_epoch=leader_epoch,
        partition_epoch=partition_epoch,
        directories=(bytes(16),) * len(replicas),
    )


def lead(
    partition: Partition,
    *,
    replicas: tuple[int, ...] = (1,),
    isr: tuple[int, ...] | None = None,
    leader: int = 1,
    leader_epoch: int | None = None,
) -> None:
    """Make a node, by default node 1 alone, the leader in the next epoch."""
    role = partition.role
    partition.enter(
        partition_image(
            index=partition.index,
            leader=leader,
            leader_epoch=role.leader_epoch + 1 if leader_epoch is None else leader_epoch,
            partition_epoch=role.partition_epoch + 1,
            replicas=replicas,
            isr=isr,
        )
    )


@contextmanager
def offline(directory: DataDirectory) -> Iterator[None]:
    """Take a directory offline and back, which no real one can do."""
    directory.is_online = False
    partitions = cast("set[Partition]", directory.partitions)
    for partition in partitions:
        partition.resign()
    yield
    directory.is_online = True
    for partition in partitions:
        lead(partition)


class WaitingProduce:
    """A Produce that waits in a partition's queue until its records are committed.

    Attributes:
        result: Its result.
        has_left: Whether it has left the queue.
    """

    def __init__(
        self, partition: Partition, end_offset: int, timeout_ms: int = 1_000_000_000
    ) -> None:
        self.result = PartitionResult(partition.index, base_offset=end_offset - 1)
        self.has_left = False
        DelayedProduce(
            [Appended(partition, self.result, end_offset, is_acknowledged=False)],
            acks=ACKS_ALL,
            timeout_ms=timeout_ms,
            on_done=self._note_end,
        )

    def _note_end(self) -> None:
        self.has_left = True
