"""What of a partition's batches a reader of committed records is given.

Source: Kafka's CompletedFetch, isolation level read_committed (KIP-98).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.codecs.records.batch import iterate_records
from wirebroker.codecs.records.control import ControlType, control_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.codecs.records.batch import BatchHeader


class AbortedFilter:
    """Tells the batches of aborted transactions in one partition, which is read in order."""

    __slots__ = ("_aborting", "_waiting")

    def __init__(self) -> None:
        # Producers whose transaction is one that was aborted, from here to its marker.
        self._aborting: set[int] = set()
        self._waiting: list[Any] = []

    def begin(self, aborted: Sequence[Any]) -> None:
        """Take the aborted transactions of an answer (`producer_id`, `first_offset`)."""
        self._waiting = sorted(aborted, key=lambda each: each.first_offset)

    def lets_through(self, header: BatchHeader, batch: memoryview) -> bool:
        """Tell whether a batch has records that were committed; ask for each, in order."""
        while self._waiting and self._waiting[0].first_offset <= header.last_offset:
            self._aborting.add(self._waiting.pop(0).producer_id)
        if header.is_control:
            for record in iterate_records(batch, header):
                if control_type(record.key) is ControlType.ABORT:
                    self._aborting.discard(header.producer_id)
            return False
        return not (header.is_transactional and header.producer_id in self._aborting)
