"""Threads that a process can abandon while their calls still block.

For calls that wait for other machines and cannot be canceled: Kerberos and host name lookups. At
exit, the interpreter joins the threads of `ThreadPoolExecutor`, but not these.
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


class AbandonableThreads(Executor):
    """Executor whose calls can be abandoned; its threads start on demand and stay."""

    def __init__(self, most_threads: int, name: str) -> None:
        self._most_threads = most_threads
        self._name = name
        self._calls: queue.SimpleQueue[_Call] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._count = 0
        self._idle = threading.Semaphore(0)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call a function in a thread; return a future of its result."""
        future: Future[Any] = Future()
        self._calls.put((future, partial(fn, *args, **kwargs)))
        with self._lock:
            if not self._idle.acquire(blocking=False) and self._count < self._most_threads:
                name = f"{self._name}_{self._count}"
                self._count += 1
                threading.Thread(target=self._work, name=name, daemon=True).start()
        return future

    def _work(self) -> None:
        while True:
            _carry_out(*self._calls.get())
            self._idle.release()


def _carry_out(future: Future[Any], function: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = function()
    except BaseException as error:  # noqa: BLE001
        future.set_exception(error)
        # Breaks the cycle of future, exception and frame.
        del future
    else:
        future.set_result(result)
