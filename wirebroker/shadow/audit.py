"""Verification of one partition's batches, without I/O.

Batches: checksum (client/records/fetched_batches.py), consecutive offsets, leader epochs that never
decrease, decodable records with increasing offsets.
Producers: sequences without holes, epochs that never decrease, sequence 0 at the start of an epoch.
Transactions: no other batches of a producer while one is open; markers whose producer and
coordinator epochs never decrease.

Batches may lack records, since the topic may once have been compacted. Gaps in offsets are no
faults.

Source: KIP-98, KIP-360, KIP-890; Kafka's ProducerAppendInfo.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.base.text import counted
from wirebroker.codecs.errors import KafkaError, MalformedFrameError
from wirebroker.codecs.records.batch import NO_PRODUCER_ID, NO_SEQUENCE, iterate_records
from wirebroker.codecs.records.control import EndTransactionMarker, decode_control_record

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.codecs.records.batch import BatchHeader
    from wirebroker.storage.log.producers.producer_entry import ProducerEntry

# Gaps and faults kept in a report; all are counted.
MOST_KEPT: Final = 20
# Producers kept here; the log knows the others.
_MOST_PRODUCERS: Final = 100_000
# A broker may then have expired a producer, and accepts any sequence (the default of
# producer.id.expiration.ms).
_FORGOTTEN_MS: Final = 86_400_000
_SEQUENCES: Final = 1 << 31


def _no_producer(_producer_id: int) -> None:
    return None


class Producer(NamedTuple):
    """The last batch of a producer, and whether its transaction is open."""

    epoch: int
    last_sequence: int  # NO_SEQUENCE for none in this epoch
    timestamp_ms: int
    coordinator_epoch: int
    is_in_transaction: bool


class Audit:
    """The audit of one partition; `known` returns the log's earlier entry of a producer.

    Attributes:
        next_offset: First offset not verified yet.
        gaps: The first gaps in offsets, as [first, end).
        faults: The first faults, as sentences.
    """

    __slots__ = (
        "_is_compacted",
        "_known_producer",
        "_leader_epoch",
        "_producers",
        "batches",
        "fault_count",
        "faults",
        "gap_count",
        "gaps",
        "next_offset",
        "records",
    )

    def __init__(
        self,
        next_offset: int,
        *,
        leader_epoch: int = -1,
        is_compacted: bool,
        known: Callable[[int], ProducerEntry | None],
    ) -> None:
        self.next_offset = next_offset
        self.records = 0
        self.batches = 0
        self.gaps: list[tuple[int, int]] = []
        self.gap_count = 0
        self.faults: list[str] = []
        self.fault_count = 0
        self._leader_epoch = leader_epoch
        self._is_compacted = is_compacted
        self._known_producer = known
        self._producers: dict[int, Producer] = {}

    @property
    def open_transactions(self) -> int:
        """Number of producers with an open transaction."""
        return sum(producer.is_in_transaction for producer in self._producers.values())

    def take(self, header: BatchHeader, batch: memoryview) -> None:
        """Verify the next batch."""
        if header.base_offset > self.next_offset:
            self._note_gap(self.next_offset, header.base_offset)
        if header.leader_epoch < self._leader_epoch:
            self._fault(
                header, f"its leader epoch {header.leader_epoch} is below {self._leader_epoch}"
            )
        self._leader_epoch = max(self._leader_epoch, header.leader_epoch)
        try:
            marker = self._read(header, batch)
        except (KafkaError, MalformedFrameError) as error:
            self._fault(header, f"its records cannot be read: {error}")
            marker = None
        if header.producer_id != NO_PRODUCER_ID:
            self._take_producer(header, marker)
        self.batches += 1
        self.records += header.record_count
        self.next_offset = header.last_offset + 1

    def skip_to(self, offset: int) -> None:
        """Note that no earlier offset is available."""
        if offset > self.next_offset:
            self._note_gap(self.next_offset, offset)
            self.next_offset = offset

    def _note_gap(self, first: int, end: int) -> None:
        # The gap may have contained batches of any producer.
        self._producers.clear()
        self._known_producer = _no_producer
        self._count_gap(first, end)

    def _count_gap(self, first: int, end: int) -> None:
        self.gap_count += 1
        if len(self.gaps) < MOST_KEPT:
            self.gaps.append((first, end))

    def _fault(self, header: BatchHeader, description: str) -> None:
        self.fault_count += 1
        if len(self.faults) < MOST_KEPT:
            self.faults.append(f"the batch at {header.base_offset}: {description}")

    def _read(self, header: BatchHeader, batch: memoryview) -> EndTransactionMarker | None:
        """Decode every record; return a transaction marker."""
        marker = None
        last, count = header.base_offset - 1, 0
        for record in iterate_records(batch, header):
            if not last < record.offset <= header.last_offset:
                self._fault(header, f"a record has offset {record.offset} after {last}")
            last = record.offset
            count += 1
            if header.is_control:
                control = decode_control_record(record.key, record.value)
                marker = control if isinstance(control, EndTransactionMarker) else marker
        self._check_count(header, count)
        return marker

    def _check_count(self, header: BatchHeader, count: int) -> None:
        offsets = header.last_offset_delta + 1
        if count > offsets:
            self._fault(
                header, f"it has {counted(count, 'record')} for {counted(offsets, 'offset')}"
            )
        elif count < offsets and not self._is_compacted:
            self._count_gap(header.base_offset, header.last_offset + 1)

    # -- producers -------------------------------------------------------------------------

    def _take_producer(self, header: BatchHeader, marker: EndTransactionMarker | None) -> None:
        before = self._producers.pop(header.producer_id, None) or self._from_log(header)
        if before is not None and header.producer_epoch < before.epoch:
            self._fault(
                header,
                f"producer {header.producer_id} writes in epoch {header.producer_epoch} after"
                f" {before.epoch}",
            )
        if marker is not None:
            after = self._after_marker(header, marker, before)
        else:
            after = self._after_data(header, before)
        self._producers[header.producer_id] = after
        if len(self._producers) > _MOST_PRODUCERS:
            del self._producers[next(iter(self._producers))]

    def _after_marker(
        self, header: BatchHeader, marker: EndTransactionMarker, before: Producer | None
    ) -> Producer:
        known_epoch = -1 if before is None else before.coordinator_epoch
        if marker.coordinator_epoch < known_epoch:
            self._fault(
                header,
                f"the marker of producer {header.producer_id} has coordinator epoch"
                f" {marker.coordinator_epoch} after {known_epoch}",
            )
        is_same = before is not None and before.epoch == header.producer_epoch
        return Producer(
            header.producer_epoch,
            before.last_sequence if before is not None and is_same else NO_SEQUENCE,
            header.max_timestamp,
            max(known_epoch, marker.coordinator_epoch),
            is_in_transaction=False,
        )

    def _after_data(self, header: BatchHeader, before: Producer | None) -> Producer:
        if before is not None and header.base_sequence != NO_SEQUENCE:
            self._check_sequence(header, before)
        if before is not None and before.is_in_transaction and not header.is_transactional:
            self._fault(
                header, f"producer {header.producer_id} writes outside its open transaction"
            )
        return Producer(
            header.producer_epoch,
            header.last_sequence,
            header.max_timestamp,
            -1 if before is None else before.coordinator_epoch,
            header.is_transactional,
        )

    def _check_sequence(self, header: BatchHeader, before: Producer) -> None:
        if header.max_timestamp - before.timestamp_ms >= _FORGOTTEN_MS:
            return
        is_first = header.producer_epoch != before.epoch or before.last_sequence == NO_SEQUENCE
        expected = 0 if is_first else (before.last_sequence + 1) % _SEQUENCES
        if header.base_sequence == expected or (self._is_compacted and header.base_sequence > 0):
            return
        self._fault(
            header,
            f"producer {header.producer_id} continues with sequence {header.base_sequence} instead"
            f" of {expected}",
        )

    def _from_log(self, header: BatchHeader) -> Producer | None:
        entry = self._known_producer(header.producer_id)
        if entry is None:
            return None
        return Producer(
            entry.producer_epoch,
            entry.last_sequence,
            entry.last_timestamp_ms,
            entry.coordinator_epoch,
            entry.current_txn_first_offset >= 0,
        )
