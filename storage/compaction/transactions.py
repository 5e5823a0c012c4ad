"""Which transactional batches and markers a compaction may drop, met in the order of the log.

    data of an aborted transaction      at once
    an ABORT or COMMIT marker           when none of its transaction's data was met any more, and
                                        then not before its delete horizon (filter.py)

A marker that stays keeps its entry in the new segment's transaction index. One object goes through
the whole log: a transaction may begin in one group of segments and end in another.

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
    """What is known of transactions at one place of the log.

    Attributes:
        kept_aborts: Entries for the transaction index of the segment that is being written.
    """

    __slots__ = ("_aborted", "_committed_met", "_ongoing_aborted", "_upcoming", "kept_aborts")

    def __init__(self) -> None:
        # By first offset: those whose first batch has not been reached.
        self._upcoming: list[tuple[int, AbortedTransaction]] = []
        # Producer id -> the aborted transaction that it is in.
        self._ongoing_aborted: dict[int, AbortedTransaction] = {}
        # Of those, the producers of which a batch of data was met.
        self._aborted: set[int] = set()
        # Producers of which data was met that is not aborted.
        self._committed_met: set[int] = set()
        self.kept_aborts: list[AbortedTransaction] = []

    def add_aborted(self, transactions: Iterable[AbortedTransaction]) -> None:
        """Learn of aborted transactions before their batches are met; twice does no harm."""
        for transaction in transactions:
            heappush(self._upcoming, (transaction.first_offset, transaction))

    def meet_data(self, header: BatchHeader) -> bool:
        """Meet a batch of data; return whether it was aborted."""
        self._begin_up_to(header.last_offset)
        if not header.is_transactional:
            return False
        if header.producer_id in self._ongoing_aborted:
            self._aborted.add(header.producer_id)
            return True
        self._committed_met.add(header.producer_id)
        return False

    def meet_control(self, header: BatchHeader, batch: Buffer) -> bool:
        """Meet a control batch; return whether nothing needs it any more.

        Raises:
            KafkaError: INVALID_RECORD or CORRUPT_MESSAGE: it cannot be read.
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
            self.kept_aborts.append(transaction)
            return False
        return True

    def _begin_up_to(self, offset: int) -> None:
        while self._upcoming and self._upcoming[0][0] <= offset:
            _, transaction = heappop(self._upcoming)
            self._ongoing_aborted.setdefault(transaction.producer_id, transaction)
