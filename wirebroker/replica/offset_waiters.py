"""Callbacks that wait until a partition has grown to a given size or offset.

An append costs only the callbacks that it wakes. A discarded callback leaves a stale entry in the
heap; when most entries are stale, the heap is rebuilt.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_MAX_STALE_ENTRIES: Final = 64


class OffsetWaiters:
    """Callbacks by due value; each is called once."""

    __slots__ = ("_count", "_heap", "_numbers")

    # Every callback in _numbers has an entry with its number in _heap; other entries are stale.

    def __init__(self) -> None:
        # (due, running number, callback)
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._numbers: dict[Callable[[], None], int] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._numbers)

    def add(self, callback: Callable[[], None], *, due: int) -> None:
        """Add a callback that `take_due` returns once `due` is reached, or change its due value."""
        self._count += 1
        self._numbers[callback] = self._count
        heappush(self._heap, (due, self._count, callback))
        self._tidy()

    def discard(self, callback: Callable[[], None]) -> None:
        """Remove a callback."""
        if self._numbers.pop(callback, None) is not None:
            self._tidy()

    def take_due(self, reached: int) -> list[Callable[[], None]]:
        """Remove and return the callbacks that are due, by due value."""
        heap = self._heap
        callbacks: list[Callable[[], None]] = []
        while heap and heap[0][0] <= reached:
            _, number, callback = heappop(heap)
            if self._numbers.get(callback) == number:
                del self._numbers[callback]
                callbacks.append(callback)
        return callbacks

    def take_all(self) -> list[Callable[[], None]]:
        """Remove and return all callbacks."""
        callbacks = list(self._numbers)
        self._numbers = {}
        self._heap = []
        return callbacks

    def _tidy(self) -> None:
        if len(self._heap) > 2 * len(self._numbers) + _MAX_STALE_ENTRIES:
            numbers = self._numbers
            self._heap = [entry for entry in self._heap if numbers.get(entry[2]) == entry[1]]
            heapify(self._heap)
