"""One partition as a follower's fetcher sees it: what to ask for, what to make of an answer.

    answer                               what is done
    records                              appended as they are; the high watermark is taken over
    diverging epoch (KIP-595)            cut where this log leaves the leader's, then asked again
    OFFSET_OUT_OF_RANGE                  the leader is asked where its log begins and ends; within
                                         them it counts as any other error
    any other error                      asked again after a pause, which doubles
    a disk that failed, a fenced epoch   nothing until there is another role

What to ask for is read from the log each time, so there is no second place for it. An answer to
what was asked under another leader epoch counts for nothing.

Source: Kafka's AbstractFetcherThread and ReplicaFetcherThread; KIP-101, KIP-279, KIP-320.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.replication.follower_session import FollowedOffsets, PartitionKey

if TYPE_CHECKING:
    from wirebroker.replica.partition import Partition

_UNKNOWN: Final = -1
_NEVER: Final = float("inf")
# The first pause is so much shorter than the longest; none is shorter than a hundredth of a second.
_FIRST_PART: Final = 20
_LEAST_S: Final = 0.01


class FollowedPartition:
    """A partition that follows under one leader epoch.

    Attributes:
        partition: The replica here.
        leader_epoch: Of the role that it is followed in.
        failures: Answers in a row that were no use.
        not_before: When it may be asked for again, in monotonic seconds.
        is_behind: Whether the log ends below the leader's high watermark, as far as is known.
    """

    __slots__ = ("failures", "is_behind", "leader_epoch", "not_before", "partition")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.failures = 0
        self.not_before = 0.0
        self.is_behind = True

    @property
    def key(self) -> PartitionKey:
        """Topic id and index."""
        return self.partition.topic_id, self.partition.index

    @property
    def is_halted(self) -> bool:
        """Whether only another role brings it on."""
        return self.not_before == _NEVER

    def offsets(self) -> FollowedOffsets:
        """Return what is to be asked for now."""
        log = self.partition.log
        return FollowedOffsets(
            self.leader_epoch,
            log.log_end_offset,
            log.leader_epochs.latest_epoch,
            log.log_start_offset,
        )

    def succeeded(self) -> None:
        """Go on at once."""
        self.failures = 0

    def delay(self, *, now: float, most_s: float) -> None:
        """Ask again after a pause, which is longer each time."""
        pause_s = most_s / _FIRST_PART * (1 << min(self.failures, 30))
        self.failures += 1
        self.not_before = now + max(_LEAST_S, min(pause_s, most_s))

    def throttle(self, *, now: float, pause_s: float) -> None:
        """Check the quota again after a pause, which is never zero; this is no failure."""
        self.not_before = now + max(_LEAST_S, pause_s)

    def halt(self) -> None:
        """Ask no more in this role."""
        self.not_before = _NEVER

    def divergence(self, epoch: int, end_offset: int) -> int:
        """Return where the log has to be cut when the leader names (epoch, end offset).

        The leader's largest epoch that is not above our last one ends there. If this log has that
        epoch, the two are the same up to where it ends first; if not, up to where our epoch before
        it ends, and the next Fetch finds out the rest.

        Source: AbstractFetcherThread.getOffsetTruncationState.
        """
        log = self.partition.log
        end = log.log_end_offset
        if end_offset == _UNKNOWN:
            return min(log.high_watermark, end)
        if epoch == _UNKNOWN:
            return min(end_offset, end)
        own_epoch, own_end = log.end_offset_for_epoch(epoch)
        if own_end == _UNKNOWN:
            return min(end_offset, end)
        if own_epoch != epoch:
            return min(own_end, end)
        return min(own_end, end_offset, end)
