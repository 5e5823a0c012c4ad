"""Short pauses of Python's cycle collector, however much the broker holds.

A full collection takes 60 ms with 10,000 partitions. Reference counts free what a broker creates;
cycles are rare and young. So the young generations are collected often, and when a full collection
takes too long, its survivors are frozen (gc.freeze).

A frozen cycle that becomes garbage stays until the process's memory blocks have doubled. Then one
collection examines all objects: a tenth of a second per million. Blocks are counted instead of
frozen objects, because counting frozen objects visits each of them. Objects from imports are never
collected.

The settings affect the whole process, so only a broker's process uses them.
"""

from __future__ import annotations

import gc
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import TracebackType

# A full collection sees the survivors of the last one, at most a quarter more (CPython's rule), and
# 3,000 new objects.
_THRESHOLDS: Final = (1_000, 2, 0)

# After a collection that takes longer (CPU time), survivors are frozen.
_LONGEST_MS: Final = 2.0

# All objects are examined at twice the earlier number of memory blocks plus these: 50 MiB.
_ROOM: Final = 400_000

_FULL: Final = 2


@contextmanager
def uncollected() -> Generator[None]:
    """Suspend collections during imports, which saves a fifteenth of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def collect_frozen() -> None:
    """Collect garbage among the frozen objects too, and freeze the rest; blocks for about 20 ms.

    For a process that continues after its broker ended.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()


class GarbagePolicy:
    """Context manager that keeps the process's collections short."""

    __slots__ = ("_before", "_began", "_looks_at_all", "_max_blocks")

    def __init__(self) -> None:
        self._before = gc.get_threshold()
        self._began = 0.0
        self._limit_growth()
        # Whether the next full collection sees the frozen objects.
        self._looks_at_all = False

    def __enter__(self) -> GarbagePolicy:
        gc.set_threshold(*_THRESHOLDS)
        gc.callbacks.append(self._on_collection)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        gc.callbacks.remove(self._on_collection)
        gc.set_threshold(*self._before)
        gc.unfreeze()

    def keep_all(self) -> None:
        """Freeze all current objects.

        The empty collection afterwards resets the size by which CPython schedules the next full
        one.
        """
        gc.freeze()
        self._limit_growth()
        gc.collect()

    def _on_collection(self, phase: str, info: dict[str, Any]) -> None:
        if info["generation"] != _FULL:
            return
        if phase == "start":
            self._began = time.thread_time()
        elif (time.thread_time() - self._began) * 1000 > _LONGEST_MS:
            self._keep()

    def _keep(self) -> None:
        if sys.getallocatedblocks() > self._max_blocks and not self._looks_at_all:
            gc.unfreeze()
            self._looks_at_all = True
            return
        gc.freeze()
        if self._looks_at_all:
            self._looks_at_all = False
            self._limit_growth()

    def _limit_growth(self) -> None:
        self._max_blocks = 2 * sys.getallocatedblocks() + _ROOM
