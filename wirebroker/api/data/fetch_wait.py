"""A Fetch that waits for more: told of the growth of its partitions, it counts what there is.

A Fetch for which any record is enough is told of each advance of its partitions; a follower's of
appends alone, since a new high watermark answers it no more than in Kafka. One that wants
many bytes is called when they may be there, and looks at what has grown, nothing else; only when
enough has come, something is wrong or time is over is everything read again.

How one that waits for M bytes in N partitions is called seldom and never late: each partition
calls it after M / 2N bytes. While all that it was told of is less than M / 2, what it was not told
of is less as well, so the partition that called is the only one to be set anew; after that all are
counted and set by what is missing then. With one partition it is called after M bytes. Bytes that
were appended are at least those that are to be seen: an open transaction's, or what the disk does
not have yet, come later, and where there are any it looks at each advance.

The wait ends with its connection: who has gone is answered at once, with what there is.

Source: Kafka's DelayedFetch.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from wirebroker.request.fetch_sessions import records_length

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from wirebroker.api.data.partition_reads import PartitionReads
    from wirebroker.base.clock import Steps

# Over more partitions the shares are so small that every advance is told (and only counted).
_MOST_SHARES = 100


class FetchWait:
    """The waiting of one Fetch. `begin` comes before or right after the first look."""

    __slots__ = (
        "_callbacks",
        "_deadline",
        "_hidden",
        "_is_over",
        "_loop",
        "_missing",
        "_noted",
        "_reads",
        "_round",
        "_share",
        "_wakening",
        "_woken",
    )

    def __init__(self, reads: PartitionReads) -> None:
        self._reads = reads
        self._loop = asyncio.get_running_loop()
        self._deadline = self._loop.time() + reads.max_wait_ms / 1000
        self._is_over = False
        # By the number of the partition, as are the next: who calls, and how much was appended to
        # it when it was looked at or called last.
        self._callbacks: list[Callable[[], None]] = []
        self._noted: list[int] = []
        # Numbers of the partitions that have more than is to be seen.
        self._hidden: set[int] = set()
        # Numbers of the partitions that there is news of.
        self._woken: set[int] = set()
        # Bytes without which it need not look; 0: it looks at any news.
        self._missing = 0
        # What was missing when the shares were set; each partition calls after `_share`, or at
        # each advance if that is 0.
        self._round = 0
        self._share = 0
        self._wakening: asyncio.Future[None] | None = None

    def begin(self) -> Steps[None]:
        """Watch every partition."""
        for number, (_, partition) in enumerate(self._reads.found):
            callback = partial(self._on_news, number)
            self._callbacks.append(callback)
            self._noted.append(0)
            self._note(number)
            self._reads.watch(partition, callback)
            yield
        self._woken.update(self._reads.grown_meanwhile())

    def end(self) -> Steps[None]:
        """Watch none any more."""
        for (_, partition), callback in zip(self._reads.found, self._callbacks, strict=False):
            partition.unwatch(callback)
            yield
        # They refer to this: a follower of thousands would leave as much garbage twice a second.
        self._callbacks.clear()

    def give_up(self) -> None:
        """Wait no longer."""
        self._is_over = True
        self._wake()

    async def until_ready(self) -> bool:
        """Wait until an answer is worth while or due.

        Returns:
            Whether anything has changed since the look before, so that another one is needed.
        """
        reads = self._reads
        sizes: dict[int, int] = {}
        total = reads.size
        has_changed = False
        timer = self._loop.call_at(self._deadline, self.give_up)
        try:
            while True:
                if self._share:
                    self._count_all()
                woken, self._woken = self._woken, set()
                if woken and reads.wants_any_news:
                    return True
                for number in woken:
                    has_changed = True
                    self._note(number)
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
                    self._watch_anew(woken)
                    self._wait_for(max(0, reads.min_bytes - total))
                    self._wakening = self._loop.create_future()
                    await self._wakening
        finally:
            timer.cancel()

    # -- who calls when ----------------------------------------------------------------------

    def _watch_anew(self, told: Collection[int]) -> None:
        """Watch those that have called, where one is called only once."""
        if self._reads.is_told_once:
            for number in told:
                self._reads.watch(self._reads.found[number][1], self._callbacks[number])

    def _wait_for(self, missing: int) -> None:
        """Have nobody wake this before so much may have come."""
        self._missing = missing
        count = len(self._callbacks)
        share = missing if count == 1 else missing // (2 * count)
        if count > _MOST_SHARES or share <= 1:
            share = 0
        if share or self._share:
            self._round, self._share = missing, share
            for number in range(count):
                self._set(number)

    def _set(self, number: int) -> None:
        """Have a partition call when its share has come."""
        partition = self._reads.found[number][1]
        callback = self._callbacks[number]
        if self._share and number not in self._hidden:
            partition.watch_growth(callback, up_to_bytes=self._noted[number] + self._share)
        else:
            partition.unwatch(callback)
            self._reads.watch(partition, callback)

    def _note(self, number: int) -> int:
        """Remember how far a partition has come; return by how much it has grown."""
        log = self._reads.found[number][1].log
        grown = log.appended_bytes - self._noted[number]
        self._noted[number] = log.appended_bytes
        if self._reads.sees_all(log):
            self._hidden.discard(number)
        else:
            self._hidden.add(number)
        return grown

    def _on_news(self, number: int) -> None:
        """Count what a partition's call brings (its own bytes may be part of what is hidden)."""
        self._woken.add(number)
        was_hidden = number in self._hidden
        grown = self._note(number)
        self._missing -= grown
        if not grown or was_hidden or self._missing <= 0:
            self._wake()  # the partition may have gone
        elif self._share:
            self._share_anew(number)

    def _share_anew(self, number: int) -> None:
        if self._missing > self._round // 2:
            self._set(number)
            return
        self._count_all()
        if self._missing <= 0:
            self._wake()
        else:
            self._wait_for(self._missing)

    def _count_all(self) -> None:
        for number in range(len(self._callbacks)):
            grown = self._note(number)
            if grown:
                self._woken.add(number)
                self._missing -= grown

    def _wake(self) -> None:
        if self._wakening is not None and not self._wakening.done():
            self._wakening.set_result(None)
