"""A queue of login steps that may block on files, for a few threads.

Addresses take turns (net/bounds/fair_queue.py), so many logins from one do not delay others. A
connection queues at most one step.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from wirebroker.base.threads import Work, begin_in_thread
from wirebroker.net.bounds.fair_queue import FairQueue

if TYPE_CHECKING:
    from collections.abc import Callable


class _Step:
    """Releases its mechanism and message once it is done or canceled."""

    __slots__ = ("answer", "call", "on_failure")

    def __init__(
        self, call: Callable[[], bytes], on_failure: Callable[[BaseException], None]
    ) -> None:
        self.call: Callable[[], bytes] | None = call
        self.on_failure = on_failure
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.answer.add_done_callback(self._forget)

    def _forget(self, _answer: asyncio.Future[bytes]) -> None:
        self.call = None


class LoginQueue:
    """Steps that wait for a thread of Work.LOGINS, on one event loop."""

    __slots__ = ("_running", "_waiting")

    def __init__(self) -> None:
        self._waiting: FairQueue[_Step] = FairQueue()
        self._running = 0

    def wait(
        self,
        address: str,
        call: Callable[[], bytes],
        on_failure: Callable[[BaseException], None],
    ) -> asyncio.Future[bytes]:
        """Run `call` in a thread when it is the address's turn; return its result.

        If the result is canceled before, the call is not made; if later, `on_failure` receives an
        error.
        """
        step = _Step(call, on_failure)
        self._waiting.add(address, step)
        self._begin()
        return step.answer

    def _begin(self) -> None:
        while self._running < Work.LOGINS.most_threads and self._waiting:
            step = self._waiting.take()
            if step.call is not None:
                self._running += 1
                work = begin_in_thread(Work.LOGINS, step.call)
                work.add_done_callback(partial(self._end, step.answer, step.on_failure))

    def _end(
        self,
        answer: asyncio.Future[bytes],
        on_failure: Callable[[BaseException], None],
        work: asyncio.Future[bytes],
    ) -> None:
        self._running -= 1
        self._begin()
        if work.cancelled():  # shutdown
            answer.cancel()
        elif (error := work.exception()) is not None:
            if answer.done():
                on_failure(error)
            else:
                answer.set_exception(error)
        elif not answer.done():
            answer.set_result(work.result())
