"""The leader epochs in a log's batches, to compare its checkpoint file with.

The batches are authoritative, because `leader-epoch-checkpoint` may be missing, damaged or old. Its
additional entries are kept, because an epoch begins at its first record, which compaction may have
removed.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from wirebroker.codecs.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirebroker.storage.log.segment.segment import Segment
    from wirebroker.storage.log.segment.segments import Segments

_log = logging.getLogger(__name__)

_NONE = -1


class StoredEpochs:
    """The leader epochs in a log's batches; `name` is for warnings."""

    __slots__ = ("_name", "_segments", "end_offset", "start_offset")

    def __init__(
        self, segments: Segments, *, start_offset: int, end_offset: int, name: str
    ) -> None:
        self._segments = segments
        self._name = name
        self.start_offset = start_offset
        self.end_offset = end_offset

    def latest(self) -> int:
        """Return the epoch of the last readable batch before the end, or -1."""
        for segment in reversed(list(self._segments)):
            if segment.base_offset >= self.end_offset or not segment.size:
                continue
            epoch = _NONE
            try:
                for _, header in segment.iterate_headers(self._near_end(segment)):
                    if header.base_offset >= self.end_offset:
                        break
                    epoch = header.leader_epoch
            except KafkaError as error:
                if epoch == _NONE:
                    _log.warning("%s: its last batch cannot be read: %s", self._name, error)
            return epoch
        return _NONE

    def _near_end(self, segment: Segment) -> int:
        return segment.offset_index.lookup(self.end_offset - 1).position

    def since(self, offset: int) -> Iterator[tuple[int, int]]:
        """Yield (epoch, base offset) of the batches from an offset on, up to a damaged one."""
        try:
            for segment in self._segments.since(offset):
                for _, header in segment.iterate_headers():
                    if header.base_offset >= offset:
                        yield header.leader_epoch, header.base_offset
        except KafkaError as error:
            _log.warning("%s: could read only some of its leader epochs: %s", self._name, error)
