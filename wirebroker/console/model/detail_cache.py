"""Details for pages, read once for all viewers that want them in the same seconds."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Hashable

    from wirebroker.base.clock import Clock

_Detail = TypeVar("_Detail")

_KEPT_S: Final = 5.0
_MOST: Final = 100


class DetailCache:
    """Details of some seconds, and those that are being read."""

    # laws: len(_tasks) <= _MOST plus those that are not done

    __slots__ = ("_clock", "_outdated", "_tasks")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # With the time when reading began, oldest first.
        self._tasks: dict[Hashable, tuple[float, asyncio.Task[Any]]] = {}
        # Began before a change: only for the viewers that wait for them.
        self._outdated: set[asyncio.Task[Any]] = set()

    async def get(self, key: Hashable, read: Callable[[], Coroutine[Any, Any, _Detail]]) -> _Detail:
        """Return the detail of a key, read in the last five seconds; failures are not kept.

        A viewer that leaves does not stop the reading for the others.
        """
        self._drop_old()
        if key not in self._tasks:
            task: asyncio.Task[Any] = asyncio.create_task(read())
            self._tasks[key] = (self._clock.monotonic(), task)
        task = self._tasks[key][1]
        try:
            detail: _Detail = await asyncio.shield(task)
        except Exception:  # raised again
            if self._tasks.get(key, (0.0, None))[1] is task:
                del self._tasks[key]
            raise
        return detail

    def _drop_old(self) -> None:
        now = self._clock.monotonic()
        for key, (began, task) in list(self._tasks.items()):
            is_old = now - began >= _KEPT_S or len(self._tasks) >= _MOST
            if is_old and task.done():
                if not task.cancelled():
                    task.exception()  # its viewers have left
                del self._tasks[key]

    def forget(self) -> None:
        """Drop all cached details, after a change; later viewers do not get those being read."""
        for _, task in self._tasks.values():
            self._outdated.add(task)
            task.add_done_callback(self._drop_outdated)
        self._tasks.clear()

    def _drop_outdated(self, task: asyncio.Task[Any]) -> None:
        self._outdated.discard(task)
        if not task.cancelled():
            task.exception()  # its viewers may have left

    async def close(self) -> None:
        """Stop reading."""
        tasks: list[Awaitable[Any]] = []
        for task in (*self._outdated, *(task for _, task in self._tasks.values())):
            task.cancel()
            tasks.append(task)
        self._tasks.clear()
        await asyncio.gather(*tasks, return_exceptions=True)
