"""Segments that were removed from a log, until file.delete.delay.ms is over.

Their files, renamed to `*.deleted`, stay readable for responses that are being sent. The next start
removes files that a stop left.

Source: Kafka's LocalLog.deleteSegmentFiles.
"""

from __future__ import annotations

import logging
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from wirebroker.base.threads import Work, in_thread

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.base.clock import Clock
    from wirebroker.storage.log.segment.segment import Segment

logger = logging.getLogger(__name__)

# A file of 1 GiB takes a thread about 50 ms.
_BATCH = 50


class DeletedSegments:
    """The deleted segments of all logs."""

    __slots__ = ("_clock", "_count", "_deletions")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # A heap; the time is in monotonic seconds.
        self._deletions: list[tuple[float, int, Segment]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._deletions)

    def add(self, segments: Iterable[Segment], *, delay_ms: int) -> None:
        """Add renamed segments, to be removed after `delay_ms`."""
        due_s = self._clock.monotonic() + delay_ms / 1000
        for segment in segments:
            self._count += 1
            heappush(self._deletions, (due_s, self._count, segment))

    async def remove_due(self) -> None:
        """Remove the files that are due."""
        now = self._clock.monotonic()
        while self._deletions and self._deletions[0][0] <= now:
            segments: list[Segment] = []
            while self._deletions and self._deletions[0][0] <= now and len(segments) < _BATCH:
                segments.append(heappop(self._deletions)[2])
            await in_thread(Work.UPKEEP, _remove, segments)


def _remove(segments: list[Segment]) -> None:
    for segment in segments:
        try:
            segment.remove()
        except OSError as error:
            logger.warning("cannot remove %s: %s", segment.log.path, error)
