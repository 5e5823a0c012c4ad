"""Threads that nobody has to wait for: a process ends whatever they are in the midst of.

For calls that wait for other machines and can't be broken off: Kerberos's library, and the system's
lookup of names. `ThreadPoolExecutor` is joined when the interpreter ends, however long that takes;
these are not.
"""

from __future__ import annotations

import queue
import threading
from concurrent.futures import Executor, Future
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

_Call: TypeAlias = "tuple[Future[Any], Callable[[], Any]]"


class LeavableThreads(Executor):
    """As ThreadPoolExecutor, for what may be left in its midst; made when needed, they stay."""

    def __init__(self, most_threads: int, name: str) -> None:
        """Begin without threads.

        Args:
            most_threads: At least 1.
            name: What each is called by, with a number behind it.
        """
        self._most_threads = most_threads
        self._name = name
        self._calls: queue.SimpleQueue[_Call] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._count = 0
        # As many as there are threads with nothing to do.
        self._idle = threading.Semaphore(0)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Have a thread call a function; return a future of what it returns or raises."""
        future: Future[Any] = Future()
        self._calls.put((future, partial(fn, *args, **kwargs)))
        with self._lock:
            if not self._idle.acquire(blocking=False) and self._count < self._most_threads:
                name = f"{self._name}_{self._count}"
                self._count += 1
                threading.Thread(target=self._work, name=name, daemon=True).start()
        return future

    def _work(self) -> None:
        """Call one function after the other, for ever; the root of a thread."""
        while True:
            _carry_out(*self._calls.get())
            self._idle.release()


def _carry_out(future: Future[Any], function: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = function()
    except BaseException as error:  # noqa: BLE001 - it is the caller's
        future.set_exception(error)
        # It holds the error, which holds this frame: what the function had open would stay so.
        del future
    else:
        future.set_result(result)
