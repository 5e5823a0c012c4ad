"""The role of a leading replica: the ISR, its followers' progress, and what is replicated.

    replicas     a b c d     the assignment
    isr          a b         committed by the metadata; counts for acks=all and min.insync.replicas
    maximal_isr  a b c       also includes replicas that a pending change would add or remove

Records are replicated once the slowest member of the maximal ISR has them, because a change may be
committed before its response arrives. The leader also waits for a follower that is caught up but
not yet in the ISR; otherwise a steady producer would keep it out forever.

Invariants:
- Without a pending change `isr` and `maximal_isr` are equal. This node is in both.
- A change is pending until `accept`, newer metadata (`follow`) or `withdraw`.

Source: Kafka's Partition (maybeIncrementLeaderHW, canAddReplicaToIsr, getOutOfSyncReplicas),
PartitionState, Replica; KIP-497, KIP-841.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.replica.replica_role import Role

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from wirebroker.coordinator.controller.image.cluster_image import PartitionImage

UNKNOWN_OFFSET: Final = -1
UNKNOWN_BROKER_EPOCH: Final = -1
# For a follower that has never caught up.
_NEVER: Final = -(1 << 62)


class FollowerProgress:
    """The progress of a follower, from its Fetch requests; times are monotonic milliseconds.

    A follower that fetches from the log's end is caught up. If it fetches from what was the end at
    its previous fetch, it was caught up then; otherwise a steady producer would keep every follower
    out.

    Attributes:
        log_end_offset: Its last fetch offset; UNKNOWN_OFFSET before its first fetch in this epoch.
        caught_up_ms: When it last had all records; never falls within a leader epoch.
    """

    __slots__ = (
        "_fetched_end_offset",
        "_fetched_ms",
        "broker_epoch",
        "caught_up_ms",
        "log_end_offset",
        "log_start_offset",
    )

    def __init__(self, *, is_in_sync: bool, now_ms: int) -> None:
        """Begin a leader epoch; members of the ISR count as caught up now."""
        self.log_end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self.broker_epoch = UNKNOWN_BROKER_EPOCH
        self.caught_up_ms = now_ms if is_in_sync else _NEVER
        self._fetched_end_offset = UNKNOWN_OFFSET
        self._fetched_ms = _NEVER

    def fetched(
        self,
        fetch_offset: int,
        *,
        log_start_offset: int,
        leader_end_offset: int,
        now_ms: int,
        broker_epoch: int,
    ) -> None:
        """Record a fetch, with the leader's log end offset at that time."""
        assert 0 <= fetch_offset <= leader_end_offset, (fetch_offset, leader_end_offset)
        if fetch_offset >= leader_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
        elif fetch_offset >= self._fetched_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, self._fetched_ms)
        self.log_end_offset = fetch_offset
        self.log_start_offset = log_start_offset
        self.broker_epoch = broker_epoch
        self._fetched_end_offset = leader_end_offset
        self._fetched_ms = now_ms

    def is_caught_up(self, leader_end_offset: int, *, now_ms: int, most_lag_ms: int) -> bool:
        """Return whether it has all records, or had them at most `most_lag_ms` ago."""
        return self.log_end_offset == leader_end_offset or now_ms - self.caught_up_ms <= most_lag_ms


_NO_FOLLOWERS: dict[int, FollowerProgress] = {}


class IsrChange(NamedTuple):
    """An ISR that the leader requests from the controller (AlterPartition)."""

    isr: tuple[int, ...]
    leader_epoch: int
    # The controller accepts only the newest.
    partition_epoch: int
    # By follower; a restarted one may have lost its records.
    broker_epochs: dict[int, int]


class LeaderRole(Role):
    """Leads a partition under one leader epoch, which began at `start_offset`."""

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
        """Assert the invariants above."""
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

        Besides the maximal ISR, followers count that were caught up within `most_lag_ms` and
        `may_join` an ISR, by node id and broker epoch.
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
        """Drop a change that certainly was not made; return whether it was pending."""
        if self.change is not change:
            return False
        self.change = None
        self.maximal_isr = self.isr
        self.check()
        return True
