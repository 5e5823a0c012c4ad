"""The batches of the metadata log that are not applied yet, in order, with bounded memory.

    resident       in memory, up to MAX_RESIDENT_BYTES
    stored range   only offsets; read again from the log's files when they are to be applied

A replica that applies slowly continues to fetch, because a voter's fetches commit changes. So
batches beyond the bound are dropped from memory, and read from the files later.

Source: Kafka's KafkaRaftClient.updateListenersProgress, which reads each listener's next batch from
the log.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from wirebroker.coordinator.controller.controller_machine import ClusterChange
    from wirebroker.quorum.log.metadata_batches import FetchedBatch

# Kafka's controller.quorum.fetch.max.bytes: one fetch stays in memory.
MAX_RESIDENT_BYTES: Final = 8 << 20
# Memory of a batch besides its records.
_BATCH_BYTES: Final = 1_000


class WaitingBatch(NamedTuple):
    """A batch that is not applied yet.

    Attributes:
        change: The change of this node's controller that this batch and the parts before it encode;
            a batch without a change is decoded to apply it.
        is_part: Whether a change follows that contains this batch.
    """

    end_offset: int
    epoch: int
    fetched: FetchedBatch
    change: ClusterChange | None = None
    is_part: bool = False

    @property
    def size(self) -> int:
        """The memory that it takes."""
        return self.fetched.header.size + _BATCH_BYTES


class StoredRange(NamedTuple):
    """Consecutive batches that are only in the files."""

    start_offset: int
    end_offset: int


class UnappliedBatches:
    """The batches after the last one that was taken.

    Attributes:
        resident_bytes: The memory of the batches in memory.
    """

    __slots__ = ("_entries", "resident_bytes")

    def __init__(self) -> None:
        self._entries: deque[WaitingBatch | StoredRange] = deque()
        self.resident_bytes = 0

    def add(self, batch: WaitingBatch) -> None:
        """Add the batch after the last one."""
        last = self._entries[-1] if self._entries else None
        # A change of this node's controller has its image, which the files do not have.
        is_replaceable = batch.change is None and not batch.is_part
        if is_replaceable and isinstance(last, StoredRange):
            self._entries[-1] = last._replace(end_offset=batch.end_offset)
        elif is_replaceable and self.resident_bytes + batch.size > MAX_RESIDENT_BYTES:
            base_offset = batch.fetched.header.base_offset
            self._entries.append(StoredRange(base_offset, batch.end_offset))
        else:
            self._entries.append(batch)
            self.resident_bytes += batch.size

    def truncate(self, end_offset: int) -> None:
        """Forget the batches from an offset on."""
        while self._entries and self._entries[-1].end_offset > end_offset:
            last = self._entries.pop()
            if isinstance(last, WaitingBatch):
                self.resident_bytes -= last.size
            elif last.start_offset < end_offset:
                self._entries.append(last._replace(end_offset=end_offset))

    def clear(self) -> None:
        """Forget all batches."""
        self._entries.clear()
        self.resident_bytes = 0

    def take(self, high_watermark: int) -> list[WaitingBatch]:
        """Remove and return the next batches in memory that end at or before an offset."""
        taken: list[WaitingBatch] = []
        while self._entries:
            first = self._entries[0]
            if isinstance(first, StoredRange) or first.end_offset > high_watermark:
                break
            self._entries.popleft()
            self.resident_bytes -= first.size
            taken.append(first)
        return taken

    def next_stored(self, high_watermark: int) -> StoredRange | None:
        """Return the stored range up to an offset, if it precedes all batches in memory."""
        first = self._entries[0] if self._entries else None
        if not isinstance(first, StoredRange) or first.start_offset >= high_watermark:
            return None
        return first._replace(end_offset=min(first.end_offset, high_watermark))

    def took_stored(self, end_offset: int) -> None:
        """Forget the first range up to an offset: its batches were read and taken."""
        first = self._entries.popleft()
        assert isinstance(first, StoredRange), first
        assert first.start_offset < end_offset <= first.end_offset, (first, end_offset)
        if end_offset < first.end_offset:
            self._entries.appendleft(first._replace(start_offset=end_offset))
