"""Every change of what replicas are: the same code at start, failover, deletion and the stop.

    enter    the metadata says who leads, and under which epoch
    retire   the partition is deleted, or is no longer placed on this node
    resign   its disk has failed, or the node stops

Then, in the same turn of the loop (`tell`): who lives on leaderships hears of those that ended and
began (leadership.py), and after that all who wait for such a partition look again, and find out why
they wait in vain: a Produce is answered NOT_LEADER_OR_FOLLOWER (or that the partition has gone), a
Fetch that waits for more likewise at once.

Source: Kafka's ReplicaManager.applyDelta, completeDelayedOperationsWhenNotPartitionLeader.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.replica.leadership import Leadership, LeadershipChange

if TYPE_CHECKING:
    from wirebroker.coordinator.controller.image.cluster_image import PartitionImage
    from wirebroker.replica.leadership import Leaderships
    from wirebroker.replica.partition import Partition


# So many are told at once: what they set in motion is part of the slice of the loop's time in which
# they changed, when thousands do.
_MOST_UNTOLD = 128


class Transitions:
    """The changes of one turn of the loop, until they are told."""

    __slots__ = ("_elected", "_leaderships", "_moved", "_resigned")

    # No partition is in both of _elected and _resigned; all of both are in _moved.

    def __init__(self, leaderships: Leaderships) -> None:
        self._leaderships = leaderships
        # With the leader epochs that began and ended.
        self._elected: dict[Partition, int] = {}
        self._resigned: dict[Partition, int] = {}
        self._moved: dict[Partition, None] = {}

    async def enter_in_turn(self, partition: Partition, image: PartitionImage) -> None:
        """Give a partition its role when the thread is through that writes under the one before.

        As Kafka's lock does; nothing is served meanwhile, and what was changed before is told.
        """
        if image.leader_epoch > partition.leader_epoch:
            self.tell()
            partition.suspend()
            await partition.until_settled()
        self.enter(partition, image)

    def enter(self, partition: Partition, image: PartitionImage) -> None:
        """Give a partition the role that the metadata says; nobody is at work on its log."""
        if len(self._moved) >= _MOST_UNTOLD:
            self.tell()
        if not partition.enter(image):
            return
        if not partition.is_leader:
            self._note_left(partition)
            return
        if partition in self._resigned:
            self.tell()
        self._moved[partition] = None
        self._elected[partition] = image.leader_epoch

    def retire(self, partition: Partition) -> None:
        """Take the role from a partition that is here no more."""
        if len(self._moved) >= _MOST_UNTOLD:
            self.tell()
        partition.retire()
        self._note_left(partition)

    def resign(self, partition: Partition) -> None:
        """Take the role from a partition that can be served no more."""
        partition.resign()
        self._note_left(partition)

    def _note_left(self, partition: Partition) -> None:
        assert not partition.is_leader
        self._moved[partition] = None
        self._elected.pop(partition, None)  # it began and ended untold
        leader_epoch = self._leaderships.led.get(partition)
        if leader_epoch is not None:
            self._resigned[partition] = leader_epoch

    def tell(self) -> None:
        """Tell whom it concerns; to be called before anybody else runs."""
        if not self._moved:
            return
        moved, self._moved = self._moved, {}
        elected, self._elected = self._elected, {}
        resigned, self._resigned = self._resigned, {}
        self._leaderships.tell(
            LeadershipChange(
                elected=[Leadership(*each) for each in elected.items()],
                resigned=[Leadership(*each) for each in resigned.items()],
            )
        )
        self._leaderships.tell_moved(moved)
        for partition in moved:
            partition.wake_watchers()
