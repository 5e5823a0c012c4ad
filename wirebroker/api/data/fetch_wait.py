"""A Fetch that waits for more records.

If any record is enough, a consumer's wait ends at each advance of its partitions, a follower's only
at appends, as in Kafka. Otherwise it wakes when enough bytes may be there, and checks only
partitions that have grown. All are read again when enough has arrived, something has failed, or the
time is over.

For M missing bytes in N partitions, each partition calls back after M / 2N bytes (a single one
after M). While less than M / 2 is reported, only the caller's share is set again. After that all
are counted, and shares are set for the rest. Partitions with appended bytes that are not visible
yet (open transactions, unsynced records) call back at each advance.

Source: Kafka's DelayedFetch.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from wirebroker.request.fetch_session import records_length

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from wirebroker.api.data.partition_reads import PartitionReads
    from wirebroker.base.clock import Steps

# With more partitions, shares are so small that every advance calls back.
_MOST_SHARES = 100


class FetchWait:
    """The wait of one Fetch; `begin` must precede or directly follow the first read."""

    __slots__ = (
        "_callbacks",
        "_deadline",
        "_hidden",
        "_is_over",
        "_loop",
        "_missing",
        "_noted",
        "_notified",
        "_reads",
        "_round",
        "_share",
        "_wakeup",
    )

    def __init__(self, reads: PartitionReads) -> None:
        self._reads = reads
        self._loop = asyncio.get_running_loop()
        self._deadline = self._loop.time() + reads.max_wait_ms / 1000
        self._is_over = False
        # By partition number; _noted has the appended bytes at the last look.
        self._callbacks: list[Callable[[], None]] = []
        self._noted: list[int] = []
        # Partitions with appended bytes that are not visible.
        self._hidden: set[int] = set()
        self._notified: set[int] = set()
        # Bytes until the next look; 0 looks at any change.
        self._missing = 0
        # The missing bytes when shares were set, and the share; 0: each advance calls back.
        self._round = 0
        self._share = 0
        self._wakeup: asyncio.Future[None] | None = None

    def begin(self) -> Steps[None]:
        """Watch all partitions."""
        for number, (_, partition) in enumerate(self._reads.found):
            callback = partial(self._on_change, number)
            self._callbacks.append(callback)
            self._noted.append(0)
            self._note(number)
            self._reads.watch(partition, callback)
            yield
        self._notified.update(self._reads.appended_bytes())

    def end(self) -> Steps[None]:
        """Stop watching."""
        for (_, partition), callback in zip(self._reads.found, self._callbacks, strict=False):
            partition.unwatch(callback)
            yield
        # Callbacks refer to this object: break the cycles.
        self._callbacks.clear()

    def give_up(self) -> None:
        """End the wait."""
        self._is_over = True
        self._wake()

    async def until_ready(self) -> bool:
        """Wait until a response is useful or due; return whether another read is needed."""
        reads = self._reads
        sizes: dict[int, int] = {}
        total = reads.size
        has_changed = False
        timer = self._loop.call_at(self._deadline, self.give_up)
        try:
            while True:
                if self._share:
                    self._count_all()
                woken, self._notified = self._notified, set()
                if woken and reads.wakes_on_any_change:
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
                is_over = self._is_over or reads.must_respond_now
                if is_over or (has_changed and total >= reads.min_bytes):
                    return has_changed
                if not self._notified:
                    self._watch_again(woken)
                    self._wait_for(max(0, reads.min_bytes - total))
                    self._wakeup = self._loop.create_future()
                    await self._wakeup
        finally:
            timer.cancel()

    def _watch_again(self, numbers: Collection[int]) -> None:
        if self._reads.notifies_once:
            for number in numbers:
                self._reads.watch(self._reads.found[number][1], self._callbacks[number])

    def _wait_for(self, missing: int) -> None:
        """Set the shares for a number of missing bytes."""
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
        partition = self._reads.found[number][1]
        callback = self._callbacks[number]
        if self._share and number not in self._hidden:
            partition.watch_growth(callback, up_to_bytes=self._noted[number] + self._share)
        else:
            partition.unwatch(callback)
            self._reads.watch(partition, callback)

    def _note(self, number: int) -> int:
        """Record a partition's appended bytes; return its growth."""
        log = self._reads.found[number][1].log
        grown = log.appended_bytes - self._noted[number]
        self._noted[number] = log.appended_bytes
        if self._reads.sees_all(log):
            self._hidden.discard(number)
        else:
            self._hidden.add(number)
        return grown

    def _on_change(self, number: int) -> None:
        """Count a partition's growth, which may contain hidden bytes."""
        self._notified.add(number)
        was_hidden = number in self._hidden
        grown = self._note(number)
        self._missing -= grown
        if not grown or was_hidden or self._missing <= 0:
            self._wake()  # also if the partition is lost
        elif self._share:
            self._recompute_share(number)

    def _recompute_share(self, number: int) -> None:
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
                self._notified.add(number)
                self._missing -= grown

    def _wake(self) -> None:
        if self._wakeup is not None and not self._wakeup.done():
            self._wakeup.set_result(None)
