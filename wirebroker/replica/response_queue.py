"""The deferred responses of one partition, ordered by the offsets that they wait for.

A partition has two queues: of responses that wait until records are committed, and of those that
wait until they are stored. A response also leaves when the partition is lost, or at its deadline.
Appends cost waiting responses nothing.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from wirebroker.replica.deadlines import Deadline, Deadlines
    from wirebroker.request.deferred_response import DeferredResponses, QueuedResponse

_NEVER: Final = float("inf")


class ResponseQueue:
    """Deferred responses by required offset."""

    __slots__ = ("_check", "_deadlines", "_due_responses", "_next_check_s", "_waiting")

    # _waiting ascends by due_offset. While it is not empty, _on_time is scheduled no later than its
    # first deadline. A timer per response would cost 1 us each.

    def __init__(self, deadlines: Deadlines, due: DeferredResponses) -> None:
        self._deadlines = deadlines
        self._due_responses = due
        self._waiting: deque[QueuedResponse] = deque()
        # When _on_time runs next.
        self._next_check_s = _NEVER
        self._check: Deadline | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, response: QueuedResponse) -> None:
        """Add a response."""
        waiting = self._waiting
        response.is_waiting = True
        if waiting and waiting[-1].due_offset > response.due_offset:
            # A duplicate: its batch was appended earlier.
            waiting.insert(bisect_right(waiting, response.due_offset, key=_due_offset), response)
        else:
            waiting.append(response)
        self.check_by(response)

    def check_by(self, response: QueuedResponse) -> None:
        """Check the deadlines no later than that of this response."""
        if self._next_check_s <= response.deadline_s:
            return
        if self._check is not None:
            self._deadlines.discard(self._check)
        self._next_check_s = response.deadline_s
        delay_s = max(0.0, response.deadline_s - asyncio.get_running_loop().time())
        self._check = self._deadlines.add(self._on_time, delay_s=delay_s)

    def take_due(self, reached: int) -> None:
        """Release the responses that wait for at most the offset `reached`."""
        waiting = self._waiting
        while waiting and waiting[0].due_offset <= reached:
            response = waiting.popleft()
            response.look()
            self._leave(response)

    def recheck(self) -> None:
        """Release the responses that the partition's new role or failed disk makes final."""
        waiting, self._waiting = self._waiting, deque()
        for response in waiting:
            if response.look():
                self._leave(response)
            else:
                self._waiting.append(response)

    def _on_time(self) -> None:
        now_s = asyncio.get_running_loop().time()
        waiting, self._waiting = self._waiting, deque()
        self._next_check_s = _NEVER
        self._check = None
        if not waiting:
            return
        first: QueuedResponse | None = None
        for response in waiting:
            if response.deadline_s <= now_s:
                response.give_up()
                self._leave(response)
            else:
                self._waiting.append(response)
                if first is None or response.deadline_s < first.deadline_s:
                    first = response
        if first is not None:
            self.check_by(first)

    def _leave(self, response: QueuedResponse) -> None:
        response.is_waiting = False
        self._due_responses.add(response)


def _due_offset(response: QueuedResponse) -> int:
    return response.due_offset
