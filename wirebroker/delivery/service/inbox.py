"""Work for the instance's thread, from its readers and producers: functions, carried out in order.

So all state of an instance belongs to one thread.
"""

from __future__ import annotations

import queue
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_Result = TypeVar("_Result")


class InboxClosedError(Exception):
    """The instance has ended."""


class Inbox:
    """A queue of functions without arguments."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._waiting: set[Future[Any]] = set()
        self._is_closed = False

    def put(self, work: Callable[[], None]) -> None:
        """Add work, from any thread."""
        self._queue.put(work)

    def serve(self, wait_s: float) -> None:
        """Carry out the next work, if there is some within a time.

        Raises:
            Exception: Whatever the work raises.
        """
        try:
            work = self._queue.get(timeout=wait_s)
        except queue.Empty:
            return
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
