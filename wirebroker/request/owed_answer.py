"""An answer that is ready and may not leave yet: what it acknowledges is not committed.

    prepared Produce --appended--> CommitQueue --committed--> DueAnswers --next turn--> connection
                                       '--partition goes, time is over: another answer--'

That of a request to several partitions waits in parts in several queues
(api/data/owed_produce.py).

It is all there is of a request that waits: no task, no future, no closure. Hundreds wait at a time
where there are followers, and each object more of them is one more for the cycle collector to walk.

Source: Kafka's DelayedOperationPurgatory.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.base.request_meters import RequestMeter

# So many answers leave between two looks at the clock, and then others have their turn.
_FEW: Final = 16
_TURN_S: Final = 0.002


class OwedAnswer:
    """One of them.

    Attributes:
        answer: What is sent, its size before it.
        settle: Charges for the request with the answer's pieces and returns them, if there are
            quotas.
        session: Whose it is, which knows of answers; None until somebody waits for it.
        meter: Counts the request's time when the response leaves; None if that is not measured.
        times: received_s, began_s and returned_s of `RequestMeter.served_later`.
    """

    __slots__ = ("_take", "answer", "meter", "session", "settle", "times")

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.settle: Callable[[list[Any]], list[Any] | None] | None = None
        self.session: object = None
        self.meter: RequestMeter | None = None
        self.times = (0.0, 0.0, 0.0)
        self._take: Callable[[OwedAnswer], None] | None = None

    def wait(self, session: object, take: Callable[[OwedAnswer], None]) -> None:
        """Have it given to `take` in a later turn of the loop."""
        self.session = session
        self._take = take

    def leave(self) -> None:
        """Give it to who waits for it, once."""
        take, self._take = self._take, None  # each holds the other
        if take is not None:
            take(self)

    def give_up_soon(self) -> None:
        """Wait not much longer: nobody may be there to hear of it."""
        raise NotImplementedError


class QueuedAnswer(OwedAnswer):
    """One that waits in a partition's queue.

    Attributes:
        due_offset: Behind its last record: it may leave when everything below is committed.
        deadline_s: When it leaves all the same, on the loop's clock.
        is_waiting: Whether it is in a queue.
    """

    __slots__ = ("deadline_s", "due_offset", "is_waiting")

    def __init__(self, answer: bytes, due_offset: int, deadline_s: float) -> None:
        super().__init__(answer)
        self.due_offset = due_offset
        self.deadline_s = deadline_s
        self.is_waiting = False

    def look(self) -> bool:
        """Tell whether it may leave, with another answer if something is wrong."""
        raise NotImplementedError

    def give_up(self) -> None:
        """Make it say that it was not committed in time."""
        raise NotImplementedError


class DueAnswers:
    """Answers that may leave: those that became due together leave one behind the other."""

    __slots__ = ("_due",)

    # If it is not empty a turn is scheduled.

    def __init__(self) -> None:
        self._due: list[OwedAnswer] = []

    def add(self, owed: OwedAnswer) -> None:
        """Have one leave in a turn of its own: who takes it may go on with the next request."""
        if not self._due:
            asyncio.get_running_loop().call_soon(self._leave)
        self._due.append(owed)

    def _leave(self) -> None:
        loop = asyncio.get_running_loop()
        due, self._due = self._due, []
        end_s = loop.time() + _TURN_S
        for number, owed in enumerate(due):
            if number % _FEW == 0 and number and loop.time() >= end_s:
                self._due[:0] = due[number:]
                loop.call_soon(self._leave)
                return
            try:
                owed.leave()
            except Exception as error:  # noqa: BLE001 - whatever it is, it is one connection's
                message = "an answer that was owed cannot be sent"
                loop.call_exception_handler({"message": message, "exception": error})
