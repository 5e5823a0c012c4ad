"""A filter of aborted transactions for read_committed consumers.

Source: Kafka's CompletedFetch (KIP-98).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.codecs.records.batch import iterate_records
from wirebroker.codecs.records.control import ControlType, control_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.codecs.records.batch import BatchHeader


class AbortedFilter:
    """A filter for one partition, whose batches must come in order."""

    __slots__ = ("_aborting", "_waiting")

    def __init__(self) -> None:
        # Producers in an aborted transaction, up to its marker.
        self._aborting: set[int] = set()
        self._waiting: list[Any] = []

    def begin(self, aborted: Sequence[Any]) -> None:
        """Use a response's aborted transactions (`producer_id`, `first_offset`)."""
        self._waiting = sorted(aborted, key=lambda transaction: transaction.first_offset)

    def lets_through(self, header: BatchHeader, batch: memoryview) -> bool:
        """Return whether a batch has committed records; call it for each batch in order."""
        while self._waiting and self._waiting[0].first_offset <= header.last_offset:
            self._aborting.add(self._waiting.pop(0).producer_id)
        if header.is_control:
            for record in iterate_records(batch, header):
                if control_type(record.key) is ControlType.ABORT:
                    self._aborting.discard(header.producer_id)
            return False
        return not (header.is_transactional and header.producer_id in self._aborting)
