"""One partition of the copy: its log, and the audit of what comes into it.

What comes is appended as it is. A log that is empty begins where the source's does, which may be
within a batch: then the batch is taken whole, and the log starts within it, as a follower's would.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.client.fetched_batches import fetched_batches
from wirebroker.client.leaders import TopicPartition
from wirebroker.codecs.errors import KafkaError
from wirebroker.codecs.records.batch import read_batch_header
from wirebroker.codecs.records.layout import HEADER_BYTES
from wirebroker.shadow.audit import Audit

if TYPE_CHECKING:
    from wirebroker.clock import Clock
    from wirebroker.storage.log.log import Log

FOLLOWED: Final = "followed"
DONE: Final = "done"


class CopiedPartition:
    """A partition that is followed until it is done, or cannot go on.

    Args:
        log: Open.
        clock: The time of appends.
        until: Where it is done; None: never.

    Attributes:
        place: Which it is.
        log: Where its records are kept.
        audit: What was found out about it.
        high_watermark: The source's, as far as it was told; -1 before.
        state: FOLLOWED, DONE, or a sentence about why it has ended before.
        leader_epoch: The highest that the metadata of the copy knows.
    """

    __slots__ = (
        "_clock",
        "_copied_bytes",
        "_first_offset",
        "_until",
        "audit",
        "high_watermark",
        "leader_epoch",
        "log",
        "place",
        "state",
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
        self._note_progress()

    @property
    def is_followed(self) -> bool:
        """Whether there is more to come."""
        return self.state == FOLLOWED

    @property
    def latest_epoch(self) -> int:
        """The leader epoch of the last batch; -1 if there is none."""
        return self.log.leader_epochs.latest_recorded_epoch

    def latest_epoch_in(self, records: memoryview) -> int:
        """Return the highest leader epoch of batches that were sent; -1 if none is whole."""
        epoch, position = -1, 0
        while len(records) - position >= HEADER_BYTES:
            header = read_batch_header(records, position)
            position += header.size
            if position <= len(records):
                epoch = max(epoch, header.leader_epoch)
        return epoch

    def begin_at(self, log_start_offset: int) -> None:
        """Note where the source begins: an empty log begins there, another has a gap before it."""
        log = self.log
        if log_start_offset <= log.log_end_offset:
            return
        if log.size_bytes == 0:
            log.truncate_fully(log_start_offset, now_ms=self._clock.now_ms())
            self._first_offset = self.audit.next_offset = log_start_offset
        self.audit.skip_to(log_start_offset)
        self._note_progress()

    def take(self, records: memoryview) -> int:
        """Verify and append what a leader has sent, and return how many bytes that were.

        A batch that cannot be trusted ends the partition.
        """
        begin = end = 0
        position = 0
        try:
            for header, batch in fetched_batches(records):
                position += header.size
                if header.last_offset < self.audit.next_offset and self.log.size_bytes:
                    begin = end = position  # it is there already: the answer began within it
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
        if self.is_followed and self._until is not None and self.audit.next_offset >= self._until:
            self.state = DONE

    def report(self) -> dict[str, Any]:
        """Return what there is to say, by names for JSON."""
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
            "gaps": [list(each) for each in audit.gaps],
            "fault_count": audit.fault_count,
            "faults": audit.faults,
            "open_transactions": audit.open_transactions,
        }
