"""The earliest due time of each queue of an index, in memory.

The service needs these times in each turn, for all queues of all partitions. A queue is read from
the database only after its earliest entry was removed or got a later time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class EarliestTimes:
    """The earliest due time of each queue that has entries."""

    __slots__ = ("_read", "_times", "_unread")

    def __init__(self, queue_count: int, read: Callable[[int], int | None]) -> None:
        """Begin without a known time; `read` returns that of a queue, or None if it is empty."""
        self._read = read
        self._times: dict[int, int] = {}
        # Queues whose times are unknown. A queue in neither has no entries.
        self._unread = set(range(queue_count))

    def add(self, queue: int, due_ms: int) -> None:
        """Note that a queue has another entry."""
        if queue not in self._unread:
            self._times[queue] = min(due_ms, self._times.get(queue, due_ms))

    def remove(self, queue: int, due_ms: int) -> None:
        """Note that a queue has an entry less, which was due at this time."""
        if self._times.get(queue) == due_ms:
            del self._times[queue]
            self._unread.add(queue)

    def by_queue(self) -> Mapping[int, int]:
        """Return the earliest due time of each queue that has entries."""
        for queue in sorted(self._unread):
            due_ms = self._read(queue)
            if due_ms is not None:
                self._times[queue] = due_ms
            self._unread.discard(queue)
        return self._times
