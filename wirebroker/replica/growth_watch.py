"""Who waits for a partition to grow by how much: an append pays only for those that it wakes.

A heap by the number of bytes at which each is due. Who leaves before stays in the heap as an entry
that counts for nobody; when most do, the heap is made anew, so that it is never much larger than
the number of those who wait.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

# Fewer entries without a use cost nothing worth mentioning.
_MOST_USELESS: Final = 64


class GrowthWatch:
    """Callbacks by when they are due; each is called once."""

    __slots__ = ("_count", "_heap", "_numbers")

    # Every callback in _numbers has an entry with its number in _heap; entries with other numbers
    # count for nobody.

    def __init__(self) -> None:
        # (due, running number, callback)
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._numbers: dict[Callable[[], None], int] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._numbers)

    def add(self, callback: Callable[[], None], *, due: int) -> None:
        """Have a callback taken once `due` is reached; what it was due at before is forgotten."""
        self._count += 1
        self._numbers[callback] = self._count
        heappush(self._heap, (due, self._count, callback))
        self._tidy()

    def discard(self, callback: Callable[[], None]) -> None:
        """Take it no more, if it is still to be taken."""
        if self._numbers.pop(callback, None) is not None:
            self._tidy()

    def take_due(self, reached: int) -> list[Callable[[], None]]:
        """Take those that are due, in the order of what they waited for."""
        heap = self._heap
        taken: list[Callable[[], None]] = []
        while heap and heap[0][0] <= reached:
            _, number, callback = heappop(heap)
            if self._numbers.get(callback) == number:
                del self._numbers[callback]
                taken.append(callback)
        return taken

    def take_all(self) -> list[Callable[[], None]]:
        """Take all."""
        taken = list(self._numbers)
        self._numbers = {}
        self._heap = []
        return taken

    def _tidy(self) -> None:
        if len(self._heap) > 2 * len(self._numbers) + _MOST_USELESS:
            numbers = self._numbers
            self._heap = [each for each in self._heap if numbers.get(each[2]) == each[1]]
            heapify(self._heap)
