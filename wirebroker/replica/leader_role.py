"""A replica that leads: who is in sync, how far each follower is, what they all have.

    replicas     a b c d     the assignment
    isr          a b         committed: what the metadata says; acks=all and min.insync.replicas
    maximal_isr  a b c       and whoever a change that is under way would add or remove

What is replicated reaches as far as the slowest of the maximal ISR has the log: a change may have
been made though its answer is still on the way, and from then on it has to hold. A follower that is
caught up and only waits to be let in is waited for, too; else a producer who never rests would keep
it out for ever.

Laws:
- `isr` is a part of `maximal_isr`; without a change under way they are the same.
- This node is in each of the two.
- One change is under way at a time; it ends by what the controller says (`accept`), by newer
  metadata (`follow`), or by `withdraw`.

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

# Shared by all partitions with one replica: never written to.
_NO_FOLLOWERS: dict[int, FollowerProgress] = {}


class IsrChange(NamedTuple):
    """An ISR that the leader asks the controller for (AlterPartition)."""

    isr: tuple[int, ...]
    leader_epoch: int
    # The change is refused unless this is still the newest.
    partition_epoch: int
    # Whose lives are meant, by followers' node ids: one that comes back may have lost everything.
    broker_epochs: dict[int, int]


class LeaderRole(Role):
    """Leads a partition under one leader epoch.

    Attributes:
        start_offset: Where the log ended when the epoch began.
        replicas: The assignment, this node included.
        isr: The committed in-sync replicas.
        maximal_isr: All that may be in sync.
        followers: The progress of every replica but this one.
        change: What was asked of the controller and is not decided.
    """

    __slots__ = ("change", "followers", "isr", "maximal_isr", "replicas", "start_offset")

    def __init__(self, image: PartitionImage, *, start_offset: int, now_ms: int) -> None:
        """Begin to lead as `image` says; `now_ms` is monotonic."""
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
        """Whether there is nobody to wait for, nor anybody who could come."""
        return not self.followers

    def follow(self, image: PartitionImage, *, now_ms: int) -> bool:
        """Take over what the metadata says within this epoch; return whether it was news."""
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
            others = [each for each in image.replicas if each != self.leader]
            known = self.followers
            self.followers = {
                each: known.get(each)
                or FollowerProgress(is_in_sync=each in image.isr, now_ms=now_ms)
                for each in others
            }
            self.check()

    def check(self) -> None:
        """Assert the laws above."""
        assert self.leader in self.isr
        assert set(self.isr) <= set(self.maximal_isr)
        assert self.change is not None or self.maximal_isr == self.isr
        assert self.leader not in self.followers
        assert not _NO_FOLLOWERS, "it is shared"

    # -- what counts -------------------------------------------------------------------------

    def least_in_sync(self, min_insync_replicas: int) -> int:
        """Return how many must be in sync for acks=all: no more than there are replicas."""
        return min(min_insync_replicas, len(self.replicas))

    def is_held_back(self, high_watermark: int) -> bool:
        """Tell whether somebody in sync has no more than that: an append commits nothing then."""
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
        """Return up to where all that count have the log; UNKNOWN_OFFSET if one never asked.

        Args:
            log_end_offset: Of the leader's log.
            now_ms: Monotonic.
            most_lag_ms: Who was caught up so lately is waited for (replica.lag.time.max.ms).
            may_join: Whether a node id of a broker epoch is one that may be in an ISR.
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
        """Return from where on any replica that is alive still has records.

        UNKNOWN_OFFSET if one has not said it in this epoch.
        """
        starts = [each.log_start_offset for id_, each in self.followers.items() if is_alive(id_)]
        return min(log_start_offset, *starts) if starts else log_start_offset

    def is_ready_to_join(self, replica: int, high_watermark: int) -> bool:
        """Tell whether a follower has what it takes to be added to the ISR.

        It has all that is committed, and all from before this epoch: an older one might end
        elsewhere.
        """
        reached = self.followers[replica].log_end_offset
        return (
            self.change is None
            and replica not in self.isr
            and reached >= high_watermark
            and reached >= self.start_offset
        )

    def lagging(self, log_end_offset: int, *, now_ms: int, most_lag_ms: int) -> list[int]:
        """Return the members of the ISR that have not kept up; none while a change is under way."""
        if self.change is not None:
            return []
        return [
            replica
            for replica, follower in self.followers.items()
            if replica in self.isr
            and not follower.is_caught_up(log_end_offset, now_ms=now_ms, most_lag_ms=most_lag_ms)
        ]

    # -- the controller is asked ---------------------------------------------------------------

    def ask_for(self, isr: Collection[int]) -> IsrChange:
        """Begin a change of the ISR; the controller decides it."""
        assert self.change is None, "one change at a time"
        assert self.leader in isr, isr
        # In the order of the assignment, as Kafka's leaders name them.
        wanted = tuple(each for each in self.replicas if each in isr)
        assert len(wanted) == len(isr), f"{isr} of {self.replicas}"
        meant = {each: follower.broker_epoch for each, follower in self.followers.items()}
        self.change = IsrChange(wanted, self.leader_epoch, self.partition_epoch, meant)
        self.maximal_isr = tuple(each for each in self.replicas if each in {*self.isr, *wanted})
        self.check()
        return self.change

    def accept(self, isr: Collection[int], *, partition_epoch: int) -> bool:
        """Take over what the controller has answered; return whether it was news.

        An answer of the present epoch says that nothing had to change: that decides it as well.
        """
        is_new = partition_epoch > self.partition_epoch
        if not is_new and (partition_epoch < self.partition_epoch or self.change is None):
            return False  # the metadata was quicker
        self.isr = self.maximal_isr = tuple(each for each in self.replicas if each in isr)
        self.partition_epoch = partition_epoch
        self.change = None
        self.check()
        return True

    def withdraw(self, change: IsrChange) -> bool:
        """Let go of a change that was refused; return whether it was still under way.

        Only if it is known that it was not made: what may have been made goes on being waited for.
        """
        if self.change is not change:
            return False
        self.change = None
        self.maximal_isr = self.isr
        self.check()
        return True
