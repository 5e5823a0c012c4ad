"""Checks the segments of the metadata log at a start, and decides which of them continue the log.

    snapshot           |-----------------------|
    segments    [0, 40) .... [100, 160) .... [200, 230)
                       gap below            gap above the snapshot's end, at 100

The snapshot contains all records below its end, so the segments before a gap below its end are
deleted. A gap above its end means that records are missing. A voter has synced its records, so its
disk is damaged, and it refuses to start. An observer does not sync, so a power failure may lose any
of its writes. It truncates the log at the gap and fetches the later records again.

Source: Kafka's LogLoader.recoverLog and KafkaRaftLog.truncateToLatestSnapshot.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.config.rows.row import StartError
from wirebroker.storage.log.segment.batch_scan import scan_headers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.codecs.records.batch import BatchHeader
    from wirebroker.storage.log.segment.segment import Segment

LOGGER = logging.getLogger(__name__)

INDEX_INTERVAL_BYTES: Final = 4096

Batch = tuple["BatchHeader", bytes]


class RecoveredLog:
    """The segments of a log without a gap.

    Attributes:
        segments: Oldest first.
        batches: The batches after the snapshot.
        epochs: Each epoch and its first offset, oldest first; also those before the snapshot.
        end_offset: The end of the log; None if it has no segments.
        has_deleted: Whether files were deleted. The directory must be synced then; otherwise a
            power failure may bring them back after later records.
    """

    __slots__ = (
        "_directory",
        "_may_refetch",
        "_start",
        "batches",
        "end_offset",
        "epochs",
        "has_deleted",
        "segments",
    )

    def __init__(self, directory: str, *, start: int, may_refetch: bool) -> None:
        """Begin without segments.

        Args:
            directory: The log's directory, for messages.
            start: The end of the newest snapshot, or 0.
            may_refetch: Whether missing records can be fetched again, because this replica is an
                observer, whose copy of the log does not count.
        """
        self._directory = directory
        self._start = start
        self._may_refetch = may_refetch
        self.segments: list[Segment] = []
        self.batches: list[Batch] = []
        self.epochs: list[tuple[int, int]] = []
        self.end_offset: int | None = None
        self.has_deleted = False

    @property
    def last_epoch(self) -> int:
        """The highest epoch of a record, or 0."""
        return max((epoch for epoch, _ in self.epochs), default=0)

    def recover(self, segments: Sequence[Segment]) -> None:
        """Check all segments of the directory and delete those that do not continue the log.

        Raises:
            StartError: Records are missing that cannot be fetched again.
        """
        for position, segment in enumerate(segments):
            base_offset = segment.base_offset
            if self.end_offset not in (None, base_offset):
                assert self.end_offset is not None
                if self.end_offset < base_offset <= self._start:
                    LOGGER.warning(
                        "%s: deleting the records before offset %d, which a snapshot contains: "
                        "records from offset %d on are missing",
                        self._directory,
                        base_offset,
                        self.end_offset,
                    )
                    self.delete()
                else:
                    self._note_gap(self.end_offset, base_offset)
                    for later in segments[position:]:
                        later.delete()
                    self.has_deleted = True
                    return
            self._add(segment)

    def check_start(self) -> bool:
        """Return whether the log begins at or before the snapshot's end.

        Raises:
            StartError: It begins later, and the records cannot be fetched again.
        """
        if not self.segments or self.segments[0].base_offset <= self._start:
            return True
        self._note_gap(self._start, self.segments[0].base_offset)
        return False

    def delete(self) -> None:
        """Delete all segments."""
        self.has_deleted = self.has_deleted or bool(self.segments)
        for segment in self.segments:
            segment.delete()
        self.segments.clear()
        self.batches.clear()
        self.epochs.clear()
        self.end_offset = None

    def _add(self, segment: Segment) -> None:
        """Check a segment, and add it and its batches."""
        counts = len(self.batches), len(self.epochs)
        try:
            self._check(segment)
        except KafkaError as error:
            if error.code is not ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT:
                raise
            # No metadata log has batches of formats 0 and 1: these are bytes of a torn write.
            del self.batches[counts[0] :], self.epochs[counts[1] :]
            _cut_false_old_format(segment)
            self._check(segment)
        self.segments.append(segment)

    def _check(self, segment: Segment) -> None:
        """Add a segment's batches.

        Raises:
            KafkaError: UNSUPPORTED_FOR_MESSAGE_FORMAT: there seem to be batches of format 0 or 1.
            StartError: Records are missing that cannot be fetched again.
        """
        expected = segment.base_offset
        gap_end: int | None = None

        def keep(header: BatchHeader, batch: memoryview) -> None:
            nonlocal expected, gap_end
            if gap_end is not None or header.base_offset != expected:
                gap_end = gap_end or header.base_offset
                return
            expected = header.last_offset + 1
            if not self.epochs or header.leader_epoch != self.epochs[-1][0]:
                self.epochs.append((header.leader_epoch, header.base_offset))
            if header.last_offset >= self._start:
                self.batches.append((header, bytes(batch)))

        recovery = segment.recover(keep, index_interval_bytes=INDEX_INTERVAL_BYTES)
        if recovery.cut_bytes:
            LOGGER.warning(
                "%s: removed %d bytes of an incomplete write from its end (%s)",
                segment.log.path,
                recovery.cut_bytes,
                recovery.reason,
            )
            # Otherwise some of these bytes may reappear after later batches, after another crash.
            segment.log.sync()
        if gap_end is not None:
            self._note_gap(expected, gap_end)
            segment.truncate_to(expected)
            segment.log.sync()
        self.end_offset = expected

    def _note_gap(self, expected: int, actual: int) -> None:
        """Log that records are missing.

        Raises:
            StartError: They cannot be fetched again.
        """
        if not self._may_refetch:
            raise StartError(
                f"{self._directory} lacks the records from offset {expected} to {actual - 1}",
                "restore the directory from a backup; delete it instead if this node was never a"
                " voter: it fetches the log again",
            )
        LOGGER.warning(
            "%s: truncating the log to offset %d: the records up to offset %d are missing, as "
            "after a power failure; they will be fetched again",
            self._directory,
            expected,
            actual,
        )


def _cut_false_old_format(segment: Segment) -> None:
    """Truncate a segment before the first bytes that look like a batch of format 0 or 1."""
    position = 0
    try:
        for start, header in scan_headers(segment.log, 0, segment.log.size()):
            position = start + header.size
    except KafkaError as error:
        LOGGER.warning(
            "%s: removed an incomplete write from position %d (%s)",
            segment.log.path,
            position,
            error,
        )
    segment.log.truncate(position)
    segment.log.sync()
