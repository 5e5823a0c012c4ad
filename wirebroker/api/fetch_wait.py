"""A Fetch that waits for more: told of each advance of its partitions, it counts what there is.

An advance makes it look at that partition alone, so that a consumer of a thousand partitions costs
their producers no more than a consumer of one; only when enough has come, something is wrong or
time is over is everything read again. Many appends in one turn of the loop make one look.

Source: Kafka's DelayedFetch.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from wirebroker.api.fetch_sessions import records_length

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.api.partition_reads import PartitionReads
    from wirebroker.clock import Steps


class FetchWait:
    """The waiting of one Fetch. `begin` comes before or right after the first look."""

    __slots__ = ("_callbacks", "_deadline", "_is_over", "_loop", "_reads", "_wakening", "_woken")

    def __init__(self, reads: PartitionReads) -> None:
        self._reads = reads
        self._loop = asyncio.get_running_loop()
        self._deadline = self._loop.time() + reads.max_wait_ms / 1000
        self._is_over = False
        # By the number of the partition that calls it.
        self._callbacks: list[Callable[[], None]] = []
        # Numbers of the partitions that there is news of.
        self._woken: set[int] = set()
        self._wakening: asyncio.Future[None] | None = None

    def begin(self) -> Steps[None]:
        """Watch every partition."""
        for number, (_, partition) in enumerate(self._reads.found):
            callback = partial(self._advanced, number)
            self._callbacks.append(callback)
            partition.watch(callback)
            yield

    def end(self) -> Steps[None]:
        """Watch none any more."""
        for (_, partition), callback in zip(self._reads.found, self._callbacks, strict=False):
            partition.unwatch(callback)
            yield

    async def until_ready(self) -> bool:
        """Wait until an answer is worth while or due.

        Returns:
            Whether anything has changed since the look before, so that another one is needed.
        """
        reads = self._reads
        sizes: dict[int, int] = {}
        total = reads.size
        has_changed = False
        timer = self._loop.call_at(self._deadline, self._give_up)
        try:
            while True:
                woken, self._woken = self._woken, set()
                for number in woken:
                    has_changed = True
                    available = reads.available(number)
                    if available is None:
                        return True
                    before = sizes.get(number)
                    if before is None:
                        before = records_length(reads.results[number][1])
                    sizes[number] = available
                    total += available - before
                is_over = self._is_over or reads.is_hurried
                if is_over or (has_changed and total >= reads.min_bytes):
                    return has_changed
                if not self._woken:
                    self._wakening = self._loop.create_future()
                    await self._wakening
        finally:
            timer.cancel()

    def _advanced(self, number: int) -> None:
        self._woken.add(number)
        self._wake()

    def _give_up(self) -> None:
        self._is_over = True
        self._wake()

    def _wake(self) -> None:
        if self._wakening is not None and not self._wakening.done():
            self._wakening.set_result(None)
