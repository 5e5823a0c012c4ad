"""Where a log begins and ends, what of it is committed, and what the disk has of it.

    log_start_offset <= last_stable_offset <= high_watermark <= log_end_offset
    recovery_point <= log_end_offset          what is below it has been fdatasynced

These offsets are moved by the methods here, and by the commit of an append (appendable.py), which
is flat; by nobody else. When the high watermark moves is for the log's owner to say
(cluster/partition).

Source: Kafka's UnifiedLog, LocalLog.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.storage.log.leader_epochs import LeaderEpochs
from wirebroker.storage.log.producers.producer_state import ProducerState
from wirebroker.storage.log.segment.segments import Segments

if TYPE_CHECKING:
    from wirebroker.storage.files import Files


class LogBounds:
    """A log's parts and its offsets.

    Attributes:
        directory: Where its files lie.
        segments: At least one; the last is active.
        producer_state: Idempotent and transactional producers.
        leader_epochs: Which epoch began where.
        log_start_offset: The first offset that may be read.
        log_end_offset: The next offset to be assigned.
        high_watermark: Consumers see what is below it.
        recovery_point: Everything below it is on the disk.
        is_directory_dirty: Names in the directory changed since the last flush.
        cuts: Rises whenever records go from the end: what was synced before says nothing of what
            comes in their place.
    """

    __slots__ = (
        "_files",
        "_is_touched",
        "cuts",
        "directory",
        "high_watermark",
        "is_directory_dirty",
        "leader_epochs",
        "log_end_offset",
        "log_start_offset",
        "producer_state",
        "recovery_point",
        "segments",
    )

    def __init__(self, directory: str, files: Files, *, producer_id_expiration_ms: int) -> None:
        self.directory = directory
        self._files = files
        self.segments = Segments()
        self.producer_state = ProducerState(
            files, directory, expiration_ms=producer_id_expiration_ms
        )
        self.leader_epochs = LeaderEpochs(files, directory)
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.high_watermark = 0
        self.recovery_point = 0
        self.cuts: int = 0
        self.is_directory_dirty = False
        self._is_touched = False  # files may differ from what a clean stop left

    @property
    def size_bytes(self) -> int:
        """Bytes of batches in all segments."""
        return self.segments.size_bytes

    @property
    def last_stable_offset(self) -> int:
        """Where read_committed ends: before the first transaction that is not decided."""
        first_unstable = self.producer_state.first_unstable_offset(self.high_watermark)
        if first_unstable is None or first_unstable >= self.high_watermark:
            return self.high_watermark
        return max(first_unstable, self.log_start_offset)

    @property
    def unflushed_count(self) -> int:
        """Records above the recovery point (flush.messages goes by it)."""
        return self.log_end_offset - self.recovery_point

    def earliest(self) -> tuple[int, int | None]:
        """Return (log_start_offset, its leader epoch if known): ListOffsets -2."""
        earliest = self.leader_epochs.earliest
        is_known = earliest is not None and earliest[1] <= self.log_start_offset
        return self.log_start_offset, earliest[0] if earliest and is_known else None

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """Return (epoch, end offset) for OffsetForLeaderEpoch; (-1, -1) if nothing is known."""
        return self.leader_epochs.end_offset_for(leader_epoch, self.log_end_offset)

    def set_high_watermark(self, offset: int) -> None:
        """Move the high watermark, kept between log_start_offset and log_end_offset."""
        if not self.log_start_offset <= offset <= self.log_end_offset:
            offset = min(max(offset, self.log_start_offset), self.log_end_offset)
        self.high_watermark = offset
        self.producer_state.forget_decided(offset)

    def increment_log_start_offset(self, offset: int) -> bool:
        """Hide the records below `offset` (DeleteRecords, a leader's answer).

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE above the high watermark.
        """
        if offset > self.high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{offset} is above the high watermark {self.high_watermark}",
            )
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        self.leader_epochs.truncate_from_start(offset)
        return True

    def mark_flushed(self, offset: int, *, cuts: int | None = None) -> None:
        """Note that everything below `offset` is on the disk.

        Args:
            offset: Behind the last record that is.
            cuts: Of the FlushTarget whose sync went on beside other work: if something was cut off
                since, other records may stand below `offset` by now, and nothing is noted.
        """
        if cuts is None or cuts == self.cuts:
            self.recovery_point = max(self.recovery_point, min(offset, self.log_end_offset))

    def expose(self, offset: int) -> bool:
        """Note that nothing at `offset` or behind it is known to be on the disk any more.

        Returns:
            Whether more was known before.
        """
        self.cuts += 1  # a sync that is under way would say otherwise
        if offset >= self.recovery_point:
            return False
        self.recovery_point = offset
        return True

    def _open_at(self, *, log_start_offset: int, log_end_offset: int, recovery_point: int) -> None:
        """Note what was found in the directory; nothing is known to be committed yet."""
        self.log_start_offset = self.high_watermark = log_start_offset
        self.log_end_offset = log_end_offset
        self.recovery_point = recovery_point

    def _end_at(self, offset: int) -> None:
        """Note that what was at `offset` or behind it is gone."""
        self.cuts += 1
        self.log_end_offset = offset
        self.log_start_offset = min(self.log_start_offset, offset)
        self.recovery_point = min(self.recovery_point, offset)
        self.set_high_watermark(self.high_watermark)

    def _begin_at(self, offset: int) -> None:
        """Note that the log is empty, and goes on at `offset`."""
        self.cuts += 1
        self.log_start_offset = self.log_end_offset = self.high_watermark = offset
        self.recovery_point = min(self.recovery_point, offset)

    def check(self) -> None:
        """Assert the laws that stand at the top of this file."""
        assert self.log_start_offset <= self.high_watermark <= self.log_end_offset, self
        assert self.log_start_offset <= self.last_stable_offset <= self.high_watermark
        assert 0 <= self.recovery_point <= self.log_end_offset
        assert self.segments.active.base_offset <= self.log_end_offset
        assert self.producer_state.end_offset == self.log_end_offset
        self.producer_state.check()
        self.leader_epochs.check()
