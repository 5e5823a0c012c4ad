"""The raft machine's view of the metadata log: offsets, epochs and snapshots, without records.

    start_offset <= high_watermark <= end_offset,  synced_offset <= end_offset

`epochs` is the contents of `leader-epoch-checkpoint`: each epoch and its first offset. By log
matching, they suffice to compare two logs.

Source: Kafka's RaftLog and KafkaRaftLog; LeaderEpochFileCache.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from wirebroker.coordinator.raft.model.log_point import FORMATTED_SNAPSHOT, LogPoint

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.coordinator.raft.model.log_point import RaftBatch


class Agreement(Enum):
    """How another log's end relates to this log."""

    VALID = "this log contains it"
    DIVERGING = "the logs differ before it"
    SNAPSHOT = "this log begins after it"


class Comparison(NamedTuple):
    """The result of comparing another log's end: with what it should continue."""

    agreement: Agreement
    point: LogPoint


class LogView:
    """Offsets and epochs of one log.

    If a crash lost records that the newest snapshot contains, the log is replaced by that snapshot
    before it is viewed.

    Attributes:
        synced_offset: The end of the records that are on disk.
        snapshots: The sizes of the stored snapshots by their ends, oldest first.
    """

    __slots__ = ("_epochs", "end_offset", "snapshots", "start_offset", "synced_offset")

    def __init__(
        self,
        *,
        start_offset: int = 0,
        end_offset: int = 0,
        epochs: Iterable[tuple[int, int]] = (),
        snapshots: Iterable[tuple[LogPoint, int]] = (),
    ) -> None:
        self.start_offset = start_offset
        self.end_offset = end_offset
        self.synced_offset = end_offset
        # Both parts increase. An epoch without a record does not count.
        self._epochs = [(epoch, start) for epoch, start in epochs if start < end_offset]
        self.snapshots = dict(sorted(snapshots))
        latest = self.latest_snapshot
        assert latest is None or latest <= self.end, (latest, self.end)

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record or of the snapshot before the first one; 0 if empty."""
        if self._epochs:
            return self._epochs[-1][0]
        latest = self.latest_snapshot
        return 0 if latest is None else latest.epoch

    @property
    def end(self) -> LogPoint:
        """The end of the log."""
        return LogPoint(self.last_epoch, self.end_offset)

    @property
    def latest_snapshot(self) -> LogPoint | None:
        """The newest snapshot."""
        return next(reversed(self.snapshots), None)

    @property
    def earliest_snapshot(self) -> LogPoint | None:
        """The oldest snapshot."""
        return next(iter(self.snapshots), None)

    def append(self, batch: RaftBatch) -> None:
        """Note a batch at the end."""
        assert batch.base_offset == self.end_offset < batch.end_offset, (batch, self.end_offset)
        assert batch.epoch >= self.last_epoch, (batch, self._epochs)
        if not self._epochs or batch.epoch > self._epochs[-1][0]:
            self._epochs.append((batch.epoch, batch.base_offset))
        self.end_offset = batch.end_offset

    def truncate(self, end_offset: int) -> None:
        """Forget the records from an offset on."""
        assert self.start_offset <= end_offset <= self.end_offset, (end_offset, self.end_offset)
        self.end_offset = end_offset
        self.synced_offset = min(self.synced_offset, end_offset)
        while self._epochs and self._epochs[-1][1] >= end_offset:
            self._epochs.pop()

    def end_of_epoch(self, epoch: int) -> LogPoint:
        """Return the end of the last epoch here that is not later than `epoch`."""
        if not self._epochs or epoch >= self._epochs[-1][0]:
            return self.end
        for position in range(len(self._epochs) - 1, 0, -1):
            if self._epochs[position - 1][0] <= epoch:
                return LogPoint(self._epochs[position - 1][0], self._epochs[position][1])
        first_offset = self._epochs[0][1]
        earliest = self.earliest_snapshot
        if earliest is not None and earliest.offset == first_offset:
            return earliest
        return LogPoint(epoch, first_offset)

    def compare(self, other: LogPoint) -> Comparison:
        """Compare the end of a follower's log with this log."""
        if self.start_offset == 0 and other.offset == 0:
            return Comparison(Agreement.VALID, LogPoint(0, 0))
        earliest = self.earliest_snapshot
        if earliest is not None and (
            other.offset < self.start_offset
            or (other.offset == self.start_offset and other.epoch != earliest.epoch)
            or other.epoch < earliest.epoch
        ):
            latest = self.latest_snapshot
            assert latest is not None
            return Comparison(Agreement.SNAPSHOT, latest)
        end = self.end_of_epoch(other.epoch)
        if end.epoch == other.epoch and end.offset >= other.offset:
            return Comparison(Agreement.VALID, other)
        return Comparison(Agreement.DIVERGING, end)

    def common_end(self, leader: LogPoint) -> int:
        """Return the end of what may be equal to the leader's log, which ends an epoch there."""
        if leader.epoch == 0:
            return min(leader.offset, self.end_offset)
        own = self.end_of_epoch(leader.epoch)
        return min(own.offset, leader.offset) if own.epoch == leader.epoch else own.offset

    def is_synced(self, point: LogPoint) -> None:
        """Note that the log is on disk up to a point, unless it was truncated since."""
        epoch, start_offset = self._epochs[-1] if self._epochs else (0, 0)
        is_of_last_epoch = point.epoch == epoch and start_offset < point.offset <= self.end_offset
        if is_of_last_epoch or self.compare(point).agreement is Agreement.VALID:
            self.synced_offset = max(self.synced_offset, point.offset)

    def add_snapshot(self, point: LogPoint, size: int) -> None:
        """Note a complete snapshot."""
        self.snapshots = dict(sorted({**self.snapshots, point: size}.items()))

    def delete_before(self, point: LogPoint) -> None:
        """Begin the log at the end of a snapshot; older snapshots are deleted."""
        assert point in self.snapshots, point
        assert point.offset <= self.end_offset, (point, self.end_offset)
        self.start_offset = max(self.start_offset, point.offset)
        self.snapshots = {kept: size for kept, size in self.snapshots.items() if kept >= point}
        while len(self._epochs) > 1 and self._epochs[1][1] <= self.start_offset:
            self._epochs.pop(0)
        if self.start_offset == self.end_offset:
            self._epochs.clear()
        elif self._epochs and self._epochs[0][1] < self.start_offset:
            self._epochs[0] = (self._epochs[0][0], self.start_offset)

    def restart_at(self, point: LogPoint, size: int) -> None:
        """Replace the whole log by a snapshot."""
        self._epochs.clear()
        self.start_offset = self.end_offset = self.synced_offset = point.offset
        self.snapshots = {point: size}

    def needs_snapshot(self) -> LogPoint | None:
        """Return the snapshot with which a follower without any record must begin."""
        latest = self.latest_snapshot
        return None if latest == FORMATTED_SNAPSHOT else latest

    def check(self) -> None:
        """Assert the invariants."""
        assert self.start_offset <= self.end_offset
        assert self.synced_offset <= self.end_offset
        for (epoch, start), (next_epoch, next_start) in zip(
            self._epochs, self._epochs[1:], strict=False
        ):
            assert epoch < next_epoch, self._epochs
            assert start < next_start < self.end_offset, self._epochs
