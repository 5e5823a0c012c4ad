"""The offsets of a log: its start, end, high watermark and recovery point.

The log's owner decides when the high watermark advances (wirebroker/replica).

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
    """The parts and the offsets of a log.

    Attributes:
        log_start_offset: The first offset that may be read.
        log_end_offset: The next offset to assign.
        high_watermark: The end of what consumers see.
        recovery_point: Everything below it is on disk.
        is_directory_dirty: Whether names changed since the last flush.
        cuts: The number of truncations, after which an earlier sync no longer counts.
    """

    __slots__ = (
        "_is_touched",
        "cuts",
        "directory",
        "files",
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
        self.files = files
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
        self._is_touched = False  # files may differ from those of a clean stop

    @property
    def size_bytes(self) -> int:
        """Bytes of batches in all segments."""
        return self.segments.size_bytes

    @property
    def last_stable_offset(self) -> int:
        """The start of the first undecided transaction, the end for read_committed."""
        first_unstable = self.producer_state.first_unstable_offset(self.high_watermark)
        if first_unstable is None or first_unstable >= self.high_watermark:
            return self.high_watermark
        return max(first_unstable, self.log_start_offset)

    @property
    def unflushed_count(self) -> int:
        """The number of records above the recovery point."""
        return self.log_end_offset - self.recovery_point

    def earliest(self) -> tuple[int, int | None]:
        """Return (log_start_offset, its leader epoch or None), for ListOffsets -2."""
        earliest = self.leader_epochs.earliest
        is_known = earliest is not None and earliest[1] <= self.log_start_offset
        return self.log_start_offset, earliest[0] if earliest and is_known else None

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """See LeaderEpochs.end_offset_for."""
        return self.leader_epochs.end_offset_for(leader_epoch, self.log_end_offset)

    def set_high_watermark(self, offset: int) -> None:
        """Set the high watermark, within log_start_offset and log_end_offset."""
        if not self.log_start_offset <= offset <= self.log_end_offset:
            offset = min(max(offset, self.log_start_offset), self.log_end_offset)
        self.high_watermark = offset
        self.producer_state.transactions.forget_decided(offset)

    def increment_log_start_offset(self, offset: int) -> bool:
        """Hide the records below `offset`; return whether it was higher than before.

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
        """Advance the recovery point after a sync.

        Nothing changes if the log was truncated since, according to the FlushTarget's `cuts`.
        """
        if cuts is None or cuts == self.cuts:
            self.recovery_point = max(self.recovery_point, min(offset, self.log_end_offset))

    def expose(self, offset: int) -> bool:
        """Lower the recovery point to `offset`; return whether it was higher."""
        self.cuts += 1  # invalidates a running sync
        if offset >= self.recovery_point:
            return False
        self.recovery_point = offset
        return True

    def open_at(self, *, log_start_offset: int, log_end_offset: int, recovery_point: int) -> None:
        """Set the offsets of a log that was loaded."""
        self.log_start_offset = self.high_watermark = log_start_offset
        self.log_end_offset = log_end_offset
        self.recovery_point = recovery_point

    def _end_at(self, offset: int) -> None:
        self.cuts += 1
        self.log_end_offset = offset
        self.log_start_offset = min(self.log_start_offset, offset)
        self.recovery_point = min(self.recovery_point, offset)
        self.set_high_watermark(self.high_watermark)

    def _begin_at(self, offset: int) -> None:
        self.cuts += 1
        self.log_start_offset = self.log_end_offset = self.high_watermark = offset
        self.recovery_point = min(self.recovery_point, offset)

    def check(self) -> None:
        """Assert the invariants."""
        assert self.log_start_offset <= self.high_watermark <= self.log_end_offset, self
        assert self.log_start_offset <= self.last_stable_offset <= self.high_watermark
        assert 0 <= self.recovery_point <= self.log_end_offset
        assert self.segments.active.base_offset <= self.log_end_offset
        assert self.producer_state.end_offset == self.log_end_offset
        self.producer_state.check()
        self.leader_epochs.check()
