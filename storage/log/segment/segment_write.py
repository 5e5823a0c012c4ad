"""A write to a segment that is not visible yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wirebroker.codecs.records.batch import BatchHeader
    from wirebroker.storage.log.index.index_tail import IndexTail


class SegmentWrite:
    """The result of `Segment.write`, which `Segment.commit` makes visible."""

    __slots__ = (
        "aborted_count",
        "end_position",
        "first_batch",
        "offset_entry_count",
        "position",
        "tail",
        "time_entry_count",
    )

    def __init__(  # noqa: PLR0917 - one per append
        self,
        position: int,
        end_position: int,
        first_batch: BatchHeader,
        tail: IndexTail,
        offset_entry_count: int,
        time_entry_count: int,
        aborted_count: int,
    ) -> None:
        self.position = position
        self.end_position = end_position
        self.first_batch = first_batch
        self.tail = tail
        self.offset_entry_count = offset_entry_count
        self.time_entry_count = time_entry_count
        self.aborted_count = aborted_count
