"""A follower's state of one partition: what to fetch, and how to handle the result.

    records                          append them, adopt the high watermark
    diverging epoch (KIP-595)        truncate where this log diverges and fetch again
    OFFSET_OUT_OF_RANGE              list the leader's offsets and move into their range
    any other error                  retry with exponential backoff
    a failed disk, a fenced epoch    stop until there is a new role

Source: Kafka's AbstractFetcherThread and ReplicaFetcherThread; KIP-101, KIP-279, KIP-320.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.replication.fetch_session_handler import FollowedOffsets, PartitionKey

if TYPE_CHECKING:
    from wirebroker.replica.partition import Partition

_UNKNOWN: Final = -1
_NEVER: Final = float("inf")
# The first pause is this fraction of the longest.
_FIRST_PART: Final = 20
_LEAST_S: Final = 0.01


class FollowedPartition:
    """A partition that follows under one leader epoch.

    Attributes:
        not_before: The earliest next fetch, in monotonic seconds.
        is_behind: Whether the log ends below the leader's high watermark, as far as known.
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
        """Whether only a new role can resume fetching."""
        return self.not_before == _NEVER

    def offsets(self) -> FollowedOffsets:
        """Return what to fetch now."""
        log = self.partition.log
        return FollowedOffsets(
            self.leader_epoch,
            log.log_end_offset,
            log.leader_epochs.latest_epoch,
            log.log_start_offset,
        )

    def succeeded(self) -> None:
        """Reset the backoff."""
        self.failures = 0

    def delay(self, *, now: float, most_s: float) -> None:
        """Retry after a pause that doubles each time."""
        pause_s = most_s / _FIRST_PART * (1 << min(self.failures, 30))
        self.failures += 1
        self.not_before = now + max(_LEAST_S, min(pause_s, most_s))

    def throttle(self, *, now: float, pause_s: float) -> None:
        """Check the quota again after a pause, which is no failure."""
        self.not_before = now + max(_LEAST_S, pause_s)

    def halt(self) -> None:
        """Stop fetching in this role."""
        self.not_before = _NEVER

    def divergence(self, epoch: int, end_offset: int) -> int:
        """Return the offset to truncate to when the leader returns (epoch, end offset).

        `end_offset` is the end of the leader's largest epoch that is not above this log's last one.
        If this log has that epoch, the logs agree up to the smaller end. Otherwise truncate to the
        end of the previous epoch here; the next Fetch finds the rest.

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
