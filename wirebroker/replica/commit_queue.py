"""The deferred responses of one partition, ordered by the offsets that they wait for.

A response leaves when its records are committed, when the partition is lost, or at its deadline.
Appends cost waiting responses nothing.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from wirebroker.replica.deadlines import Deadlines
    from wirebroker.request.owed_answer import DueAnswers, QueuedAnswer

_NEVER: Final = float("inf")


class CommitQueue:
    """Deferred responses by required offset."""

    __slots__ = ("_deadlines", "_due", "_look_s", "_waiting")

    # _waiting ascends by due_offset. While it is not empty, _on_time is scheduled no later than its
    # first deadline. A timer per response would cost 1 us each.

    def __init__(self, deadlines: Deadlines, due: DueAnswers) -> None:
        self._deadlines = deadlines
        self._due = due
        self._waiting: deque[QueuedAnswer] = deque()
        # When _on_time runs next.
        self._look_s = _NEVER

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, owed: QueuedAnswer) -> None:
        """Add a response."""
        waiting = self._waiting
        owed.is_waiting = True
        if waiting and waiting[-1].due_offset > owed.due_offset:
            # A duplicate: its batch was appended earlier.
            waiting.insert(bisect_right(waiting, owed.due_offset, key=_due_offset), owed)
        else:
            waiting.append(owed)
        if owed.deadline_s < self._look_s:
            self.hurry(owed)

    def hurry(self, owed: QueuedAnswer) -> None:
        """Check the deadlines no later than that of this response."""
        self._look_s = min(self._look_s, owed.deadline_s)
        delay_s = max(0.0, owed.deadline_s - asyncio.get_running_loop().time())
        self._deadlines.add(self._on_time, delay_s=delay_s)

    def take_due(self, reached: int) -> None:
        """Release the responses whose records, below `reached`, are committed."""
        waiting = self._waiting
        while waiting and waiting[0].due_offset <= reached:
            owed = waiting.popleft()
            owed.look()
            self._leave(owed)

    def look_again(self) -> None:
        """Release the responses that the partition's new role or failed disk makes final."""
        waiting, self._waiting = self._waiting, deque()
        for owed in waiting:
            if owed.look():
                self._leave(owed)
            else:
                self._waiting.append(owed)

    def _on_time(self) -> None:
        now_s = asyncio.get_running_loop().time()
        waiting, self._waiting = self._waiting, deque()
        self._look_s = _NEVER
        first: QueuedAnswer | None = None
        for owed in waiting:
            if owed.deadline_s <= now_s:
                owed.give_up()
                self._leave(owed)
            else:
                self._waiting.append(owed)
                if first is None or owed.deadline_s < first.deadline_s:
                    first = owed
        if first is not None:
            self.hurry(first)

    def _leave(self, owed: QueuedAnswer) -> None:
        owed.is_waiting = False
        self._due.add(owed)


def _due_offset(owed: QueuedAnswer) -> int:
    return owed.due_offset
