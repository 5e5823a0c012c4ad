"""Work for the instance's thread, from its readers and producers: functions, carried out in order.

So all state of an instance belongs to one thread. Results of transactions are processed first: due
records wait for them, and must not also wait for batches of input that were read earlier.
"""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_Result = TypeVar("_Result")


class InboxClosedError(Exception):
    """The instance has ended."""


class Inbox:
    """Two queues of functions without arguments."""

    def __init__(self) -> None:
        # One for each function in the queues. SimpleQueue.get may wait forever if a signal arrives
        # at the end of its timeout (Python 3.11 and 3.12).
        self._available = threading.Semaphore(0)
        self._first: deque[Callable[[], None]] = deque()
        self._later: deque[Callable[[], None]] = deque()
        self._lock = threading.Lock()
        self._waiting: set[Future[Any]] = set()
        self._is_closed = False

    def put(self, work: Callable[[], None]) -> None:
        """Add work, from any thread."""
        self._later.append(work)
        self._available.release()

    def put_first(self, work: Callable[[], None]) -> None:
        """Add work that is done before all work of `put`, from any thread."""
        self._first.append(work)
        self._available.release()

    def serve(self, wait_s: float) -> None:
        """Carry out the next work, if there is some within a time.

        Raises:
            Exception: Whatever the work raises.
        """
        if not self._available.acquire(timeout=wait_s):
            return
        work = (self._first or self._later).popleft()
        work()

    def call(self, work: Callable[[], _Result]) -> _Result:
        """Have work done by the instance's thread, from another one; return its result.

        Raises:
            InboxClosedError: The instance ends, perhaps by an error of the work.
        """
        result: Future[_Result] = Future()
        with self._lock:
            if self._is_closed:
                raise InboxClosedError
            self._waiting.add(result)
        self.put(lambda: _do(work, result))
        try:
            return result.result()
        finally:
            with self._lock:
                self._waiting.discard(result)

    def close(self) -> None:
        """End all calls; nothing is served any longer."""
        with self._lock:
            self._is_closed = True
            for result in self._waiting:
                if not result.done():
                    result.set_exception(InboxClosedError())


def _do(work: Callable[[], _Result], result: Future[_Result]) -> None:
    try:
        value = work()
    except BaseException:
        result.set_exception(InboxClosedError())
        raise
    result.set_result(value)
