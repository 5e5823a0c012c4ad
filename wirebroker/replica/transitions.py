"""Role changes of replicas at start, failover, deletion and stop.

In the turn of the loop in which the roles changed, `tell` notifies the subscribers of leaderships
(leadership.py), then the waiters: a waiting Produce or Fetch fails, for example with
NOT_LEADER_OR_FOLLOWER.

Source: Kafka's ReplicaManager.applyDelta, completeDelayedOperationsWhenNotPartitionLeader.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.replica.leadership import Leadership, LeadershipChange

if TYPE_CHECKING:
    from wirebroker.coordinator.controller.image.cluster_image import PartitionImage
    from wirebroker.replica.leadership import Leaderships
    from wirebroker.replica.partition import Partition


# More changes are notified in several groups, so that the resulting work is sliced as well.
_MAX_UNREPORTED = 128


class Transitions:
    """The role changes that are not notified yet."""

    __slots__ = ("_changed", "_elected", "_leaderships", "_resigned")

    # _elected and _resigned are disjoint; _changed contains both.

    def __init__(self, leaderships: Leaderships) -> None:
        self._leaderships = leaderships
        # With the leader epochs that began or ended.
        self._elected: dict[Partition, int] = {}
        self._resigned: dict[Partition, int] = {}
        self._changed: dict[Partition, None] = {}

    async def enter_in_turn(self, partition: Partition, image: PartitionImage) -> None:
        """Enter a role after the thread that appends under the previous one has finished.

        The partition is not served meanwhile.
        """
        if image.leader_epoch > partition.leader_epoch:
            self.tell()
            partition.suspend()
            await partition.until_settled()
        self.enter(partition, image)

    def enter(self, partition: Partition, image: PartitionImage) -> None:
        """Enter the role that the metadata gives; no thread may be working on the log."""
        if len(self._changed) >= _MAX_UNREPORTED:
            self.tell()
        if not partition.enter(image):
            return
        if not partition.is_leader:
            self._note_left(partition)
            return
        if partition in self._resigned:
            self.tell()
        self._changed[partition] = None
        self._elected[partition] = image.leader_epoch

    def retire(self, partition: Partition) -> None:
        """End the role: the partition was deleted, or is no longer placed on this node."""
        if len(self._changed) >= _MAX_UNREPORTED:
            self.tell()
        partition.retire()
        self._note_left(partition)

    def resign(self, partition: Partition) -> None:
        """End the role: the disk has failed, or the node stops."""
        partition.resign()
        self._note_left(partition)

    def _note_left(self, partition: Partition) -> None:
        assert not partition.is_leader
        self._changed[partition] = None
        self._elected.pop(partition, None)  # began and ended unnoticed
        leader_epoch = self._leaderships.led.get(partition)
        if leader_epoch is not None:
            self._resigned[partition] = leader_epoch

    def tell(self) -> None:
        """Notify subscribers and waiters, before any other code runs."""
        if not self._changed:
            return
        moved, self._changed = self._changed, {}
        elected, self._elected = self._elected, {}
        resigned, self._resigned = self._resigned, {}
        self._leaderships.tell(
            LeadershipChange(
                elected=[Leadership(*item) for item in elected.items()],
                resigned=[Leadership(*item) for item in resigned.items()],
            )
        )
        self._leaderships.notify_role_changes(moved)
        for partition in moved:
            partition.wake_watchers()
