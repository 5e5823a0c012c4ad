"""An event loop in a thread."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, TypeVar

from wirebroker.net.loop_watch import LoopWatch

if TYPE_CHECKING:
    from collections.abc import Coroutine

_Result = TypeVar("_Result")


class LoopThread:
    """A running event loop in a thread, which must not call these methods."""

    def __init__(self, name: str) -> None:
        self._runner = asyncio.Runner(loop_factory=LoopWatch().new_event_loop)
        self._loop = self._runner.get_loop()
        # Interrupted tests must not keep the process alive.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def call(self, coroutine: Coroutine[Any, Any, _Result]) -> _Result:
        """Run a coroutine; KeyboardInterrupt cancels it."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        finally:
            future.cancel()  # no effect once it is done

    def stop(self) -> None:
        """Cancel all tasks, and wait for the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        with self._runner:
            self._loop.run_forever()
