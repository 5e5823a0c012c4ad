"""The role of a leading replica: the ISR, its followers' progress, and what is replicated.

    replicas     a b c d     the assignment
    isr          a b         committed by the metadata; counts for acks=all and min.insync.replicas
    maximal_isr  a b c       also includes replicas that a pending change would add or remove

Records are replicated once the slowest member of the maximal ISR has them, because a change may be
committed before its response arrives. The leader also waits for a follower that is caught up but
not yet in the ISR; otherwise a steady producer would keep it out forever.

Laws:
- `isr` is a subset of `maximal_isr`; without a pending change they are equal.
- This node is in both.
- At most one change is pending, until `accept`, newer metadata (`follow`) or `withdraw`.

Source: Kafka's Partition (maybeIncrementLeaderHW, canAddReplicaToIsr, getOutOfSyncReplicas) and
PartitionState; KIP-497 and KIP-841 for AlterPartition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirebroker.replica.follower_progress import FollowerProgress
from wirebroker.replica.replica_role import Role

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from wirebroker.coordinator.controller.image.cluster_image import PartitionImage

# Shared; never modified.
_NO_FOLLOWERS: dict[int, FollowerProgress] = {}


class IsrChange(NamedTuple):
    """An ISR that the leader requests from the controller (AlterPartition)."""

    isr: tuple[int, ...]
    leader_epoch: int
    # The controller refuses the change unless this is the newest.
    partition_epoch: int
    # By follower; a restarted one may have lost its records.
    broker_epochs: dict[int, int]


class LeaderRole(Role):
    """Leads a partition under one leader epoch.

    Attributes:
        start_offset: The log end offset when the epoch began.
        replicas: The assignment.
        isr: The committed in-sync replicas.
        maximal_isr: All replicas that may be in sync.
        followers: The progress of every other replica.
        change: The pending ISR change.
    """

    __slots__ = ("change", "followers", "isr", "maximal_isr", "replicas", "start_offset")

    def __init__(self, image: PartitionImage, *, start_offset: int, now_ms: int) -> None:
        super().__init__(
            leader=image.leader,
            leader_epoch=image.leader_epoch,
            partition_epoch=image.partition_epoch,
        )
        self.start_offset = start_offset
        self.replicas: tuple[int, ...] = ()
        self.isr: tuple[int, ...] = ()
        self.maximal_isr: tuple[int, ...] = ()
        self.followers = _NO_FOLLOWERS
        self.change: IsrChange | None = None
        self._take_over(image, now_ms=now_ms)

    @property
    def is_alone(self) -> bool:
        """Whether the partition has no other replica."""
        return not self.followers

    def follow(self, image: PartitionImage, *, now_ms: int) -> bool:
        """Apply a metadata change within this epoch; return whether it was new."""
        assert image.leader_epoch == self.leader_epoch, image
        assert image.leader == self.leader, image
        if image.partition_epoch <= self.partition_epoch:
            return False
        self.partition_epoch = image.partition_epoch
        self._take_over(image, now_ms=now_ms)
        return True

    def _take_over(self, image: PartitionImage, *, now_ms: int) -> None:
        assert image.leader in image.isr, image
        self.replicas = image.replicas
        self.isr = self.maximal_isr = image.isr
        self.change = None
        if len(image.replicas) > 1 or self.followers:
            follower_ids = [
                replica_id for replica_id in image.replicas if replica_id != self.leader
            ]
            previous = self.followers
            self.followers = {
                replica_id: previous.get(replica_id)
                or FollowerProgress(is_in_sync=replica_id in image.isr, now_ms=now_ms)
                for replica_id in follower_ids
            }
            self.check()

    def check(self) -> None:
        """Assert the laws above."""
        assert self.leader in self.isr
        assert set(self.isr) <= set(self.maximal_isr)
        assert self.change is not None or self.maximal_isr == self.isr
        assert self.leader not in self.followers
        assert not _NO_FOLLOWERS, "shared, so never filled"

    # -- replicated offsets -------------------------------------------------------------------

    def least_in_sync(self, min_insync_replicas: int) -> int:
        """Return how many in-sync replicas acks=all needs."""
        return min(min_insync_replicas, len(self.replicas))

    def is_held_back(self, high_watermark: int) -> bool:
        """Return whether an in-sync replica has no more than that, so an append commits nothing."""
        maximal_isr = self.maximal_isr
        for replica, follower in self.followers.items():
            if follower.log_end_offset <= high_watermark and replica in maximal_isr:
                return True
        return False

    def replicated_offset(
        self,
        log_end_offset: int,
        *,
        now_ms: int,
        most_lag_ms: int,
        may_join: Callable[[int, int], bool],
    ) -> int:
        """Return the offset that all replicas that count have reached, or UNKNOWN_OFFSET.

        Args:
            log_end_offset: The leader's.
            now_ms: Monotonic.
            most_lag_ms: Followers that were caught up this recently count
                (replica.lag.time.max.ms).
            may_join: Whether a node id with a broker epoch may be in an ISR.
        """
        offset = log_end_offset
        for replica, follower in self.followers.items():
            if follower.log_end_offset < offset and (
                replica in self.maximal_isr
                or (
                    follower.is_caught_up(log_end_offset, now_ms=now_ms, most_lag_ms=most_lag_ms)
                    and may_join(replica, follower.broker_epoch)
                )
            ):
                offset = follower.log_end_offset
        return offset

    def low_watermark(self, log_start_offset: int, *, is_alive: Callable[[int], bool]) -> int:
        """Return the lowest start offset among live replicas; UNKNOWN_OFFSET if one is unknown."""
        starts = [
            follower.log_start_offset
            for replica_id, follower in self.followers.items()
            if is_alive(replica_id)
        ]
        return min(log_start_offset, *starts) if starts else log_start_offset

    def is_ready_to_join(self, replica: int, high_watermark: int) -> bool:
        """Return whether a follower may be added to the ISR.

        It needs all committed records and all from before this epoch, where its log may diverge.
        """
        reached = self.followers[replica].log_end_offset
        return (
            self.change is None
            and replica not in self.isr
            and reached >= high_watermark
            and reached >= self.start_offset
        )

    def lagging(self, log_end_offset: int, *, now_ms: int, most_lag_ms: int) -> list[int]:
        """Return the ISR members that lag; none while a change is pending."""
        if self.change is not None:
            return []
        return [
            replica
            for replica, follower in self.followers.items()
            if replica in self.isr
            and not follower.is_caught_up(log_end_offset, now_ms=now_ms, most_lag_ms=most_lag_ms)
        ]

    # -- ISR changes ---------------------------------------------------------------------------

    def begin_isr_change(self, isr: Collection[int]) -> IsrChange:
        """Begin an ISR change, which the controller decides."""
        assert self.change is None, "an ISR change is pending"
        assert self.leader in isr, isr
        # In the order of the assignment, as in Kafka.
        ordered_isr = tuple(replica_id for replica_id in self.replicas if replica_id in isr)
        assert len(ordered_isr) == len(isr), f"{isr} of {self.replicas}"
        broker_epochs = {
            replica_id: follower.broker_epoch for replica_id, follower in self.followers.items()
        }
        self.change = IsrChange(ordered_isr, self.leader_epoch, self.partition_epoch, broker_epochs)
        self.maximal_isr = tuple(
            replica_id for replica_id in self.replicas if replica_id in {*self.isr, *ordered_isr}
        )
        self.check()
        return self.change

    def accept(self, isr: Collection[int], *, partition_epoch: int) -> bool:
        """Apply the controller's response; return whether it was new.

        A response with the current partition epoch means that nothing had to change.
        """
        is_new = partition_epoch > self.partition_epoch
        if not is_new and (partition_epoch < self.partition_epoch or self.change is None):
            return False  # the metadata arrived first
        self.isr = self.maximal_isr = tuple(
            replica_id for replica_id in self.replicas if replica_id in isr
        )
        self.partition_epoch = partition_epoch
        self.change = None
        self.check()
        return True

    def withdraw(self, change: IsrChange) -> bool:
        """Drop a change that certainly was not made; return whether it was still pending."""
        if self.change is not change:
            return False
        self.change = None
        self.maximal_isr = self.isr
        self.check()
        return True
