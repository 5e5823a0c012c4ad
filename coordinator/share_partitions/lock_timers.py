"""The ends of the acquisition locks of a share partition, as data.

A lock that is released early leaves its entry; the entry then finds no expired state. When entries
are many, they are made again from the states.

Source: Kafka's AcquisitionLockTimerTask.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.coordinator.share_partitions.record_state import NO_DEADLINE

if TYPE_CHECKING:
    from wirebroker.coordinator.share_partitions.in_flight_records import InFlightRecords

_FEW: Final = 1024


class LockTimer(NamedTuple):
    """Locks on offsets of a range end at a time of the monotonic clock."""

    deadline_ms: float
    first_offset: int
    last_offset: int


class LockTimers:
    """Timers by deadline; every lock has one."""

    __slots__ = ("_heap", "_most")

    def __init__(self) -> None:
        self._heap: list[LockTimer] = []
        self._most = _FEW

    @property
    def next_ms(self) -> float | None:
        """The earliest deadline, or None."""
        return self._heap[0].deadline_ms if self._heap else None

    def add(self, timer: LockTimer, records: InFlightRecords) -> None:
        """Add a timer of locks that are in `records`."""
        heappush(self._heap, timer)
        if len(self._heap) > self._most:
            self._heap = [
                LockTimer(state.deadline_ms, state.first_offset, state.last_offset)
                for batch in records
                for state in batch.states
                if state.deadline_ms != NO_DEADLINE
            ]
            heapify(self._heap)
            self._most = max(_FEW, 2 * len(self._heap))

    def take_due(self, now_ms: float) -> LockTimer | None:
        """Remove and return a timer whose deadline is reached."""
        if self._heap and self._heap[0].deadline_ms <= now_ms:
            return heappop(self._heap)
        return None
