"""The transactional batches and markers that compaction may drop.

    data of an aborted transaction      immediately
    an ABORT or COMMIT marker           when no data of its transaction remains, and not before its
                                        delete horizon (filter.py)

One object reads the whole log, because transactions may span groups of segments.

Source: Kafka's CleanedTransactionMetadata.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

from wirebroker.codecs.records.batch import iterate_records
from wirebroker.codecs.records.control import (
    MAX_CONTROL_BYTES,
    EndTransactionMarker,
    decode_control_record,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.codecs.primitives import Buffer
    from wirebroker.codecs.records.batch import BatchHeader
    from wirebroker.storage.log.index.transaction_index import AbortedTransaction


class CleanedTransactions:
    """The state of all transactions at one point of the log."""

    __slots__ = ("_aborted", "_committed_met", "_ongoing_aborted", "_upcoming", "retained_aborts")

    def __init__(self) -> None:
        self._upcoming: list[tuple[int, AbortedTransaction]] = []  # by first offset
        # By producer id.
        self._ongoing_aborted: dict[int, AbortedTransaction] = {}
        # Those of _ongoing_aborted with a data batch.
        self._aborted: set[int] = set()
        # Producers with data that was not aborted.
        self._committed_met: set[int] = set()
        # For the new segment's transaction index.
        self.retained_aborts: list[AbortedTransaction] = []

    def add_aborted(self, transactions: Iterable[AbortedTransaction]) -> None:
        """Add aborted transactions before their batches; duplicates do no harm."""
        for transaction in transactions:
            heappush(self._upcoming, (transaction.first_offset, transaction))

    def add_data_batch(self, header: BatchHeader) -> bool:
        """Record a data batch and return whether it was aborted."""
        self._begin_up_to(header.last_offset)
        if not header.is_transactional:
            return False
        if header.producer_id in self._ongoing_aborted:
            self._aborted.add(header.producer_id)
            return True
        self._committed_met.add(header.producer_id)
        return False

    def add_control_batch(self, header: BatchHeader, batch: Buffer) -> bool:
        """Record a control batch and return whether it is no longer needed.

        Raises:
            KafkaError: INVALID_RECORD or CORRUPT_MESSAGE: the batch cannot be read.
        """
        self._begin_up_to(header.last_offset)
        producer_id = header.producer_id
        record = next(iterate_records(batch, header, max_bytes=MAX_CONTROL_BYTES), None)
        if record is None:
            return True  # emptied by an earlier compaction
        marker = decode_control_record(record.key, record.value)
        if not isinstance(marker, EndTransactionMarker):
            return False
        if marker.is_commit:
            has_data = producer_id in self._committed_met
            self._committed_met.discard(producer_id)
            return not has_data
        transaction = self._ongoing_aborted.pop(producer_id, None)
        if transaction is not None and producer_id in self._aborted:
            self._aborted.discard(producer_id)
            self.retained_aborts.append(transaction)
            return False
        return True

    def _begin_up_to(self, offset: int) -> None:
        while self._upcoming and self._upcoming[0][0] <= offset:
            _, transaction = heappop(self._upcoming)
            self._ongoing_aborted.setdefault(transaction.producer_id, transaction)
