"""Short pauses for Python's cycle collector, however much the broker holds.

A full collection walks every container object: 10,000 partitions are 180,000 objects and take 60 ms
at a time, in the middle of anything. Reference counts free what a broker makes, whole topics
included; cycles are rare and young. So:

- the young generations are collected often, and small;
- when a full collection takes longer than it should, what survived it is kept: put out of the
  collector's sight (gc.freeze) until the process ends. The next one starts from nothing.

The price is a cycle that is already old when something is kept and becomes garbage later: it stays
until much has been kept. When what is kept has doubled, one collection looks at all of it, which
takes a tenth of a second for a million objects. A broker with few partitions never gets there, and
collects as Python does.

What a start imports stays for ever: nobody looks for garbage in it (`uncollected`, `keep_all`).

The setting is the process's, so only a process that is a broker uses it (serving.run), no test that
runs one beside itself.
"""

from __future__ import annotations

import gc
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import TracebackType

# 1,000 new containers, 3 of these: a full collection sees what was kept last time, a quarter more
# at most (CPython's rule), and 3,000 new objects: 1 ms, and 5 where each refers to partitions that
# the processor's caches have lost. Where thousands are made at once each slice of the work
# (clock.py) pays for a few of these, none for one of all.
_THRESHOLDS: Final = (1_000, 2, 0)

# A full collection that takes longer (CPU time) is the last of its size.
_LONGEST_MS: Final = 2.0

# So many objects more than twice what there was are kept before all of them are looked at: 50 MiB.
_ROOM: Final = 200_000

_FULL: Final = 2


@contextmanager
def uncollected() -> Generator[None]:
    """Import modules without collections in between: a fifteenth of what hundreds of them take."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def collect_kept() -> None:
    """Look for garbage in what was kept as well, and keep what is left of it.

    For a process that goes on when its broker has ended: that is full of cycles, some 170 KB. It
    takes some 20 ms, in which nothing is served.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()


class GarbagePolicy:
    """A context manager: the process's collections are short inside."""

    __slots__ = ("_before", "_began", "_looks_at_all", "_most_kept")

    def __init__(self) -> None:
        self._before = gc.get_threshold()
        self._began = 0.0
        self._most_kept = _ROOM
        # Whether the next full collection sees what was kept before.
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
        """Keep what there is now: modules, tables, and what start-up has loaded.

        The collection after it has nothing to see: from its size CPython reckons when the next full
        one is due, and would else wait for a quarter of all that has been kept.
        """
        gc.freeze()
        self._most_kept = 2 * gc.get_freeze_count() + _ROOM
        gc.collect()

    def _on_collection(self, phase: str, info: dict[str, Any]) -> None:
        if info["generation"] != _FULL:
            return
        if phase == "start":
            self._began = time.thread_time()
        elif (time.thread_time() - self._began) * 1000 > _LONGEST_MS:
            self._keep()

    def _keep(self) -> None:
        if gc.get_freeze_count() > self._most_kept:
            gc.unfreeze()
            self._looks_at_all = True
            return
        gc.freeze()
        if self._looks_at_all:
            self._looks_at_all = False
            self._most_kept = 2 * gc.get_freeze_count() + _ROOM
