"""The transactions of a partition that read_committed consumers must not see yet.

A transaction is undecided until its marker is below the high watermark.

Source: Kafka's ProducerStateManager (ongoingTxns, unreplicatedTxns).
"""

from __future__ import annotations

from typing import NamedTuple

from wirebroker.storage.log.index.transaction_index import AbortedTransaction


class CompletedTransaction(NamedTuple):
    """A transaction that a marker has ended."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class UndecidedTransactions:
    """The open transactions of a partition, and the ended ones whose markers are not committed.

    Attributes:
        ongoing: First offset -> producer id of each open transaction.
    """

    __slots__ = ("_completed", "ongoing")

    def __init__(self) -> None:
        self.ongoing: dict[int, int] = {}
        # First offset -> marker's offset, until the high watermark has passed it.
        self._completed: dict[int, int] = {}

    def end(self, first_offset: int, marker_offset: int) -> None:
        """Apply the marker of the transaction that began at `first_offset`."""
        self.ongoing.pop(first_offset, None)
        self._completed[first_offset] = marker_offset

    def aborted_entry(self, completed: CompletedTransaction) -> AbortedTransaction:
        """Return the transaction index entry."""
        stable = min(self.ongoing, default=completed.last_offset + 1)
        return AbortedTransaction(
            completed.producer_id, completed.first_offset, completed.last_offset, stable
        )

    def first_offset(self, high_watermark: int) -> int | None:
        """Return the first offset of an undecided transaction, or None."""
        if self._completed:
            self.forget_decided(high_watermark)
        elif not self.ongoing:
            return None
        return min((*self.ongoing, *self._completed), default=None)

    def forget_decided(self, high_watermark: int) -> None:
        """Forget transactions whose markers are below the high watermark."""
        if self._completed:
            self._completed = {
                first: last for first, last in self._completed.items() if last >= high_watermark
            }

    def clear(self) -> None:
        """Forget all transactions."""
        self.ongoing.clear()
        self._completed.clear()
