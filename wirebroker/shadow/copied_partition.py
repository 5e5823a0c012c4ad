"""One copied partition: its log, and the audit of its batches.

An empty log starts where the source's does; if that is within a batch, the whole batch is appended
and the log starts within it, as a follower's does.

The last batch is compared with the source's because a source may return to older data and reuse
epochs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.client.records.fetched_batches import fetched_batches
from wirebroker.client.topics.leaders import TopicPartition
from wirebroker.codecs.errors import KafkaError
from wirebroker.codecs.records.batch import read_batch_header
from wirebroker.codecs.records.layout import HEADER_BYTES
from wirebroker.shadow.audit import Audit

if TYPE_CHECKING:
    from wirebroker.base.clock import Clock
    from wirebroker.codecs.records.batch import BatchHeader
    from wirebroker.storage.log.log import Log

FOLLOWED: Final = "followed"
DONE: Final = "done"
# Consecutive refusals of an offset within the leader's bounds, which may just have changed.
_MOST_REFUSALS: Final = 3


class CopiedPartition:
    """A partition that is copied until its end offset (`until`), forever, or until it fails.

    Attributes:
        high_watermark: The source's; -1 if unknown.
        state: FOLLOWED, DONE, or why it ended.
        leader_epoch: The highest one in the copy's metadata.
    """

    __slots__ = (
        "_clock",
        "_copied_bytes",
        "_empty_responses",
        "_first_offset",
        "_is_compared",
        "_refusals",
        "_until",
        "audit",
        "high_watermark",
        "leader_epoch",
        "log",
        "place",
        "state",
        "waits",
    )

    def __init__(self, log: Log, *, clock: Clock, leader_epoch: int, until: int | None) -> None:
        self.place = TopicPartition(log.topic, log.partition)
        self.log = log
        self.leader_epoch = leader_epoch
        self.high_watermark = -1
        self._clock = clock
        self._until = until
        self._copied_bytes = 0
        self._first_offset = log.log_start_offset
        self.audit = Audit(
            log.log_end_offset,
            leader_epoch=log.leader_epochs.latest_recorded_epoch,
            is_compacted="compact" in log.settings.cleanup_policy,
            known=log.producer_state.producers.get,
        )
        self.state = FOLLOWED
        self.waits = Waits()
        self._refusals = 0
        self._empty_responses = 0
        self._is_compared = not log.size_bytes
        self._note_progress()

    @property
    def fetch_offset(self) -> int:
        """The next offset, or that of the last batch if it must be compared."""
        log = self.log
        if self._is_compared or self.audit.next_offset != log.log_end_offset:
            return self.audit.next_offset
        return max(log.log_end_offset - 1, log.log_start_offset)

    def compare_again(self) -> None:
        """Compare the last batch with the source's before the next append."""
        self._is_compared = not self.log.size_bytes
        self._empty_responses = 0

    def is_refused_within(self) -> bool:
        """Count a refusal of an offset that the source has; return whether there were too many."""
        self._refusals += 1
        return self._refusals >= _MOST_REFUSALS

    @property
    def is_followed(self) -> bool:
        """Whether more records may come."""
        return self.state == FOLLOWED

    @property
    def latest_epoch(self) -> int:
        """Leader epoch of the last batch; -1 for none."""
        return self.log.leader_epochs.latest_recorded_epoch

    def latest_epoch_in(self, records: memoryview) -> int:
        """Return the highest leader epoch of whole batches; -1 for none."""
        epoch, position = -1, 0
        while len(records) - position >= HEADER_BYTES:
            header = read_batch_header(records, position)
            position += header.size
            if position <= len(records):
                epoch = max(epoch, header.leader_epoch)
        return epoch

    def begin_at(self, log_start_offset: int) -> None:
        """Use the source's start offset: an empty log starts there, another has a gap before it."""
        log = self.log
        if log_start_offset < log.log_end_offset:
            return
        self._is_compared = True  # the source has no such batch
        if log.size_bytes == 0 and log_start_offset > log.log_end_offset:
            log.truncate_fully(log_start_offset, now_ms=self._clock.now_ms())
            self._first_offset = self.audit.next_offset = log_start_offset
        self.audit.skip_to(log_start_offset)
        self._note_progress()

    def matches_source(self, records: memoryview, *, turns: int) -> bool:
        """Compare the copy's last batch with the source's; end the partition if they differ.

        A batch that the source has compacted or deleted counts as equal. Up to `turns` consecutive
        responses may have no room for this partition.
        """
        offset = self.fetch_offset
        if self._is_compared or offset == self.audit.next_offset:
            self._is_compared = True
            return True
        if len(records) < HEADER_BYTES:
            self._empty_responses += self.high_watermark > offset
            self._is_compared = self._empty_responses > turns
            return True
        self._is_compared = True
        source_header = read_batch_header(records)
        own_header = self._header_at(offset)
        if (
            own_header is None
            or source_header.base_offset > offset
            or _is_same(own_header, source_header)
        ):
            return True
        self.state = (
            f"the source has diverged: its batch at {source_header.base_offset} differs from the"
            f" copy's at {own_header.base_offset}"
        )
        return False

    def _header_at(self, offset: int) -> BatchHeader | None:
        file_slice = self.log.read(
            offset, HEADER_BYTES, up_to_offset=self.log.log_end_offset, min_one=True
        ).slice
        return None if file_slice is None else read_batch_header(file_slice.read())

    def take(self, records: memoryview) -> int:
        """Verify and append batches; return their size. An invalid batch ends the partition."""
        self._refusals = 0
        begin = end = 0
        position = 0
        try:
            for header, batch in fetched_batches(records):
                position += header.size
                if header.last_offset < self.audit.next_offset and self.log.size_bytes:
                    begin = end = position  # already copied: the response began within it
                    continue
                if header.base_offset < self.log.log_end_offset and not self.log.size_bytes:
                    self._begin_within(header.base_offset)
                self.audit.take(header, batch)
                end = position
        except KafkaError as error:
            self.state = f"the batch at {self.audit.next_offset} cannot be copied: {error}"
        if end > begin:
            self._append(records[begin:end])
        self._note_progress()
        return end - begin

    def _begin_within(self, base_offset: int) -> None:
        self.log.truncate_fully(base_offset, now_ms=self._clock.now_ms())
        self.audit.next_offset = base_offset

    def _append(self, batches: memoryview) -> None:
        log = self.log
        log.append_as_follower(batches, now_ms=self._clock.now_ms())
        log.set_high_watermark(log.log_end_offset)
        if log.log_start_offset < self._first_offset <= log.log_end_offset:
            log.increment_log_start_offset(self._first_offset)
        self._copied_bytes += len(batches)

    def _note_progress(self) -> None:
        if not self.is_followed or self._until is None or not self._is_compared:
            return
        if self.audit.next_offset >= self._until:
            self.state = DONE

    def report(self) -> dict[str, Any]:
        """Return the report for JSON."""
        audit, log = self.audit, self.log
        return {
            "topic": self.place.topic,
            "partition": self.place.partition,
            "state": self.state,
            "log_start_offset": log.log_start_offset,
            "log_end_offset": log.log_end_offset,
            "high_watermark": self.high_watermark,
            "copied_records": audit.records,
            "copied_batches": audit.batches,
            "copied_bytes": self._copied_bytes,
            "gap_count": audit.gap_count,
            "gaps": [list(gap) for gap in audit.gaps],
            "fault_count": audit.fault_count,
            "faults": audit.faults,
            "open_transactions": audit.open_transactions,
        }


def _is_same(own_header: BatchHeader, source_header: BatchHeader) -> bool:
    """Return whether two batches are equal, except for records that compaction removed.

    A compacted batch, or one with a delete horizon for tombstones, has another checksum.
    """
    compared_fields = (
        "base_offset",
        "last_offset_delta",
        "leader_epoch",
        "producer_id",
        "producer_epoch",
    )
    if any(getattr(own_header, name) != getattr(source_header, name) for name in compared_fields):
        return False
    is_compacted = (
        own_header.record_count != source_header.record_count
        or own_header.attributes != source_header.attributes
    )
    return is_compacted or own_header.crc == source_header.crc


class Waits:
    """The wait for one partition; `reason` is a sentence, "" without a wait."""

    __slots__ = ("_has_logged", "_since", "reason")

    def __init__(self) -> None:
        self.reason = ""
        self._since: float | None = None
        self._has_logged = False

    def begin(self, reason: str, now: float) -> None:
        """Note missing progress, timed from the first note."""
        self.reason = reason
        if self._since is None:
            self._since = now

    def end(self) -> None:
        """Note progress."""
        self.reason = ""
        self._since = None
        self._has_logged = False

    def have_lasted_since(self, monotonic_s: float) -> bool:
        """Return whether there was no progress since a moment."""
        return self._since is not None and self._since <= monotonic_s

    def should_log(self) -> bool:
        """Return True once for each wait."""
        is_new = not self._has_logged
        self._has_logged = True
        return is_new
