"""A replica's log on this node's disk: write access to it, and the waiters for its progress.

An append has three steps (prepare, write, commit; docs/decisions/0003). A small one runs on the
event loop. A large one, or one whose records decompress to a large size, runs prepare and write in
a thread and holds `append_lock`. Later appends, role changes and deletion wait for this lock, so
the log never disappears under a thread.

Waiters for records, for the disk or for commits are also notified when the replica loses its role
or its disk.

Source: Kafka's Partition and DelayedOperationPurgatory.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from wirebroker.base.threads import Work, in_thread
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.layout import CODEC_MASK, FLAGS_AT, RECORD_COUNT, RECORD_COUNT_AT
from wirebroker.replica.offset_waiters import OffsetWaiters
from wirebroker.replica.traffic import Traffic
from wirebroker.storage.log.validation.record_validation import BRIEF_RECORDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.disks.data_directory import DataDirectory
    from wirebroker.replica.response_queue import ResponseQueue
    from wirebroker.storage.log.log import Log

logger = logging.getLogger(__name__)

# Larger appends run in a thread: the page cache may take new pages at only 0.4 GB/s, so 2 MiB block
# the loop for up to 5 ms.
LARGE_APPEND_BYTES = 2 * 1024 * 1024

# A smaller uncompressed batch has at most 2,300 records; compressing it takes a millisecond.
LARGE_WALK_BYTES = 16 * 1024


class LocalReplica:
    """A log and its users; it is open as long as the partition is known.

    Attributes:
        log: The records.
        directory: The log's directory; it may go offline.
        traffic: The partition's counters.
    """

    __slots__ = (
        "_append_lock",
        "_append_watchers",
        "_growth",
        "_replay",
        "_until_committed",
        "_until_stored",
        "_upkeep_lock",
        "_watchers",
        "directory",
        "index",
        "log",
        "topic",
        "topic_id",
        "traffic",
    )

    def __init__(self, log: Log, *, directory: DataDirectory) -> None:
        self.log = log
        self.topic = log.topic
        self.topic_id = log.topic_id
        self.index = log.partition
        self.directory = directory
        self.traffic = Traffic()
        # Created on demand: most of 10,000 partitions never need these fields.
        self._append_lock: asyncio.Lock | None = None
        self._upkeep_lock: asyncio.Lock | None = None
        self._replay: asyncio.Task[None] | None = None
        self._growth: OffsetWaiters | None = None
        self._until_committed: ResponseQueue | None = None
        self._until_stored: ResponseQueue | None = None
        self._watchers: dict[Callable[[], None], None] = {}
        self._append_watchers: dict[Callable[[], None], None] | None = None

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"

    # -- locks ---------------------------------------------------------------------------------

    @property
    def append_lock(self) -> asyncio.Lock:
        """Lock that a large append holds."""
        if self._append_lock is None:
            self._append_lock = asyncio.Lock()
        return self._append_lock

    @property
    def upkeep_lock(self) -> asyncio.Lock:
        """Lock that is held while the log's files are replaced."""
        if self._upkeep_lock is None:
            self._upkeep_lock = asyncio.Lock()
        return self._upkeep_lock

    @property
    def is_in_upkeep(self) -> bool:
        """Whether the log's files are being replaced, which may take hours (replica_moves.py)."""
        return self._upkeep_lock is not None and self._upkeep_lock.locked()

    @property
    def is_appending(self) -> bool:
        """Whether a thread is working on the log."""
        return self._append_lock is not None and self._append_lock.locked()

    async def until_settled(self) -> None:
        """Wait until no thread is working on the log."""
        while self._append_lock is not None and self._append_lock.locked():
            async with self._append_lock:
                pass

    def takes_long(self, records: memoryview) -> bool:
        """Return whether an append is known beforehand to block the loop too long.

        A small compressed batch may decompress to a large one; then `append` raises TakesLongError.
        """
        size = len(records)
        if size > LARGE_APPEND_BYTES:
            return True
        codec = records[FLAGS_AT] & CODEC_MASK
        if size <= LARGE_WALK_BYTES and not codec:
            return False
        log = self.log
        if log.is_recompressed(codec):
            return True
        (count,) = RECORD_COUNT.unpack_from(records, RECORD_COUNT_AT)
        return count > BRIEF_RECORDS and log.walks_records

    # -- producers -----------------------------------------------------------------------------

    def read_producers(self) -> None:
        """Read the producer snapshot of a clean stop; it is small.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER if it is damaged: a thread replays the log, and
                clients retry. KAFKA_STORAGE_ERROR.
        """
        try:
            if self._replay is None and self.log.producer_state.read():
                return
        except OSError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        if self._replay is None:
            self._replay = asyncio.create_task(self._replay_producers())
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    async def _replay_producers(self) -> None:
        try:
            async with self.append_lock:
                await in_thread(Work.LOADING, self.log.producer_state.replay)
        except (KafkaError, OSError) as error:
            logger.error(  # noqa: TRY400 - the next request tries it again
                "cannot replay the producers of %s-%d: %s", self.topic, self.index, error
            )
        finally:
            self._replay = None

    # -- waiting -------------------------------------------------------------------------------

    def watch(self, on_advance: Callable[[], None]) -> None:
        """Call `on_advance` at every commit and when the partition is lost, until `unwatch`."""
        self._watchers[on_advance] = None

    def unwatch(self, on_advance: Callable[[], None]) -> None:
        """Remove a callback of any kind."""
        self._watchers.pop(on_advance, None)
        if self._append_watchers is not None:
            self._append_watchers.pop(on_advance, None)
        if self._growth is not None:
            self._growth.discard(on_advance)

    def watch_append(self, on_append: Callable[[], None]) -> None:
        """Call `on_append` once: at the leader's next append, or when the partition is lost."""
        if self._append_watchers is None:
            self._append_watchers = {}
        self._append_watchers[on_append] = None

    def watch_growth(self, on_growth: Callable[[], None], *, up_to_bytes: int) -> None:
        """Call `on_growth` once: at a commit from `up_to_bytes` on, or when the partition is lost.

        The size is `log.appended_bytes`. The call replaces a `watch` by the same callback.
        """
        self._watchers.pop(on_growth, None)
        if self._growth is None:
            self._growth = OffsetWaiters()
        self._growth.add(on_growth, due=up_to_bytes)

    @property
    def watcher_count(self) -> int:
        """Number of waiting requests."""
        return self.waiting_fetches + self.waiting_produces

    @property
    def waiting_fetches(self) -> int:
        """Number of Fetch requests that wait for records."""
        waiting = (self._append_watchers, self._growth)
        return len(self._watchers) + sum(len(queue) for queue in waiting if queue is not None)

    @property
    def waiting_produces(self) -> int:
        """Number of Produce requests that wait for followers or the disk."""
        waiting = (self._until_committed, self._until_stored)
        return sum(len(queue) for queue in waiting if queue is not None)

    def wake_watchers(self) -> None:
        """Notify all waiters that the partition, its disk or the broker is being lost."""
        self._tell_watchers()
        self._tell_append()
        if self._growth is not None:
            for on_growth in self._growth.take_all():
                on_growth()
        for queue in (self._until_committed, self._until_stored):
            if queue is not None:
                queue.recheck()

    def _tell_watchers(self) -> None:
        for on_advance in tuple(self._watchers):
            on_advance()

    def _tell_append(self) -> None:
        watchers = self._append_watchers
        if watchers:
            self._append_watchers = {}
            for on_append in watchers:
                on_append()

    def _tell_growth(self) -> None:
        if self._watchers:
            self._tell_watchers()
        if self._growth is not None:
            for on_growth in self._growth.take_due(self.log.appended_bytes):
                on_growth()
        if self._until_committed is not None:
            self._until_committed.take_due(self.log.high_watermark)

    async def _next_news(self) -> None:
        news: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def tell() -> None:
            if not news.done():
                news.set_result(None)

        self.watch(tell)
        try:
            await news
        finally:
            self.unwatch(tell)
