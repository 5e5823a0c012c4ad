"""Deferred responses.

They are complete, but the records that they acknowledge are not committed yet (acks=all) or not
stored yet (acks=1).

    Produce --appended--> ResponseQueue --committed or stored--> DeferredResponses --> connection
                              '--partition lost, timeout: another response--'

Source: Kafka's DelayedOperationPurgatory.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.base.request_meters import RequestMeter

# Responses between two checks of the clock; after _TURN_S other work gets a turn.
_FEW: Final = 16
_TURN_S: Final = 0.002


class DeferredResponse:
    """A deferred response.

    Attributes:
        answer: The response, with its size in front.
        settle: Charges quotas and returns the pieces to send; None without quotas.
        meter: Counts the request's time when the response is sent.
        times: received_s, began_s and returned_s of `RequestMeter.served_later`.
    """

    __slots__ = ("_take", "answer", "meter", "session", "settle", "times")

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.settle: Callable[[list[Any]], list[Any] | None] | None = None
        self.session: object = None
        self.meter: RequestMeter | None = None
        self.times = (0.0, 0.0, 0.0)
        self._take: Callable[[DeferredResponse], None] | None = None

    def wait(self, session: object, take: Callable[[DeferredResponse], None]) -> None:
        """Store the session, and the callback to which `leave` passes this response."""
        self.session = session
        self._take = take

    def leave(self) -> None:
        """Pass this response to the callback, once."""
        take, self._take = self._take, None  # breaks a reference cycle
        if take is not None:
            take(self)

    def give_up_soon(self) -> None:
        """Shorten the wait: the client may have disconnected."""
        raise NotImplementedError


class QueuedResponse(DeferredResponse):
    """A deferred response in a partition's queue.

    Attributes:
        due_offset: The offset after its last record; all below must be committed (acks=all) or
            stored (acks=1).
        deadline_s: When the wait times out, on the loop's clock.
    """

    __slots__ = ("deadline_s", "due_offset", "is_waiting")

    def __init__(self, answer: bytes, due_offset: int, deadline_s: float) -> None:
        super().__init__(answer)
        self.due_offset = due_offset
        self.deadline_s = deadline_s
        self.is_waiting = False

    def look(self) -> bool:
        """Return whether it can be sent, perhaps as an error response."""
        raise NotImplementedError

    def give_up(self) -> None:
        """Change it to a timeout error."""
        raise NotImplementedError


class DeferredResponses:
    """Responses that are ready to be sent, in order."""

    __slots__ = ("_due",)

    # While it is not empty, a turn is scheduled.

    def __init__(self) -> None:
        self._due: list[DeferredResponse] = []

    def add(self, deferred: DeferredResponse) -> None:
        """Send it in a later turn: the connection may then serve its next request."""
        if not self._due:
            asyncio.get_running_loop().call_soon(self._leave)
        self._due.append(deferred)

    def _leave(self) -> None:
        loop = asyncio.get_running_loop()
        pending, self._due = self._due, []
        end_s = loop.time() + _TURN_S
        for number, deferred in enumerate(pending):
            if number % _FEW == 0 and number and loop.time() >= end_s:
                self._due[:0] = pending[number:]
                loop.call_soon(self._leave)
                return
            try:
                deferred.leave()
            except Exception as error:  # noqa: BLE001 - whatever it is, it is one connection's
                message = "cannot send a deferred response"
                loop.call_exception_handler({"message": message, "exception": error})
