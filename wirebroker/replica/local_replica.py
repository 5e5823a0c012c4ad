"""A copy of a partition on this node's disk: who may write to its log now, and who waits for it.

An append has three steps (prepare, write, commit; docs/decisions/0003). Small ones take all three
at once on the loop. A large one, or one whose records turn out to unpack to much, hands prepare and
write to a thread, because they would hold the loop too long, and everyone behind it takes a turn at
`append_lock` until it is through. So do a change of the role and the deletion, which therefore
never pull the log away under a thread.

Whoever waits for records, for the disk, or to answer for what was appended, is told to look again
whenever something has come of it (`watch`), and when the replica's role or its disk goes.

Source: Kafka's Partition and DelayedOperationPurgatory.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from wirebroker.base.threads import Work, in_thread
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.layout import CODEC_MASK, FLAGS_AT, RECORD_COUNT, RECORD_COUNT_AT
from wirebroker.replica.growth_watch import GrowthWatch
from wirebroker.replica.traffic import Traffic
from wirebroker.storage.log.validation.record_validation import BRIEF_RECORDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.disks.data_directory import DataDirectory
    from wirebroker.replica.commit_queue import CommitQueue
    from wirebroker.storage.log.log import Log

logger = logging.getLogger(__name__)

# Above this a thread validates and writes: the page cache takes new pages at 0.4 GB/s in bad
# moments, so 2 MiB hold the loop 5 ms at most.
LARGE_APPEND_BYTES = 2 * 1024 * 1024

# Up to here a batch that is not compressed cannot take long: 2,300 records at most, and compressing
# it for a topic with a codec of its own takes a millisecond.
LARGE_WALK_BYTES = 16 * 1024


class LocalReplica:
    """A log and its users; it is open as long as the partition is known.

    Attributes:
        log: The records.
        directory: Where the log lies; it may go offline.
        traffic: What passed through it.
    """

    __slots__ = (
        "_append_lock",
        "_append_watchers",
        "_commit_watch",
        "_growth",
        "_owed",
        "_replay",
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
        # Made when first needed, as what follows: most of 10,000 partitions never do.
        self._append_lock: asyncio.Lock | None = None
        self._upkeep_lock: asyncio.Lock | None = None
        self._replay: asyncio.Task[None] | None = None
        self._growth: GrowthWatch | None = None
        self._commit_watch: GrowthWatch | None = None
        self._owed: CommitQueue | None = None
        # In the order in which they came.
        self._watchers: dict[Callable[[], None], None] = {}
        self._append_watchers: dict[Callable[[], None], None] | None = None

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"

    # -- whose turn it is ----------------------------------------------------------------------

    @property
    def append_lock(self) -> asyncio.Lock:
        """What a large append holds, and whoever must not interfere with one."""
        if self._append_lock is None:
            self._append_lock = asyncio.Lock()
        return self._append_lock

    @property
    def upkeep_lock(self) -> asyncio.Lock:
        """What is held by who puts other files into the place of the log's: one at a time."""
        if self._upkeep_lock is None:
            self._upkeep_lock = asyncio.Lock()
        return self._upkeep_lock

    @property
    def is_in_upkeep(self) -> bool:
        """Tell whether somebody is at that now; it may take hours (replica_moves.py)."""
        return self._upkeep_lock is not None and self._upkeep_lock.locked()

    @property
    def is_appending(self) -> bool:
        """Tell whether a thread is at work on the log."""
        return self._append_lock is not None and self._append_lock.locked()

    async def until_settled(self) -> None:
        """Wait until no thread is at work on the log."""
        while self._append_lock is not None and self._append_lock.locked():
            async with self._append_lock:
                pass

    def takes_long(self, records: memoryview) -> bool:
        """Tell whether it is known beforehand that an append would hold the loop too long.

        It is not known of compressed records: a small batch can unpack to a very large one. Then
        `append` gives up.
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
        """Read what a clean stop left of the producers, at the first request; a small file.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER: it is damaged, a thread replays the log, clients try
                again. KAFKA_STORAGE_ERROR.
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
                "the producers of %s-%d cannot be replayed: %s", self.topic, self.index, error
            )
        finally:
            self._replay = None

    # -- waiting -------------------------------------------------------------------------------

    def watch(self, on_advance: Callable[[], None]) -> None:
        """Call back whenever more records are committed, or the partition goes, until `unwatch`."""
        self._watchers[on_advance] = None

    def unwatch(self, on_advance: Callable[[], None]) -> None:
        """End what any of the others began, if there is one."""
        self._watchers.pop(on_advance, None)
        if self._append_watchers is not None:
            self._append_watchers.pop(on_advance, None)
        if self._growth is not None:
            self._growth.discard(on_advance)
        if self._commit_watch is not None:
            self._commit_watch.discard(on_advance)

    def watch_append(self, on_append: Callable[[], None]) -> None:
        """Call back once when the leader has more in its log, committed or not.

        Like all watchers it is called when the partition goes, too.
        """
        if self._append_watchers is None:
            self._append_watchers = {}
        self._append_watchers[on_append] = None

    def watch_growth(self, on_growth: Callable[[], None], *, up_to_bytes: int) -> None:
        """Call back once when records are committed and `log.appended_bytes` is as large.

        Like all watchers it is called when the partition goes, too. Ends a `watch` by the same
        callback; an append costs those who wait for more than it brings nothing.
        """
        self._watchers.pop(on_growth, None)
        if self._growth is None:
            self._growth = GrowthWatch()
        self._growth.add(on_growth, due=up_to_bytes)

    def watch_commit(self, on_commit: Callable[[], None], *, offset: int) -> None:
        """Call back once when everything below an offset is committed.

        Like all watchers it is called when the partition goes, too. Hundreds may wait at a time
        while followers fetch: an append costs them nothing, and a high watermark only those that
        it has reached.
        """
        if self._commit_watch is None:
            self._commit_watch = GrowthWatch()
        self._commit_watch.add(on_commit, due=offset)

    @property
    def watcher_count(self) -> int:
        """How many wait for news."""
        return self.waiting_fetches + self.waiting_produces

    @property
    def waiting_fetches(self) -> int:
        """How many Fetch requests wait for records of this partition."""
        waiting = (self._append_watchers, self._growth)
        return len(self._watchers) + sum(len(each) for each in waiting if each is not None)

    @property
    def waiting_produces(self) -> int:
        """How many Produce requests wait for this partition's followers or its disk."""
        waiting = (self._commit_watch, self._owed)
        return sum(len(each) for each in waiting if each is not None)

    def wake_watchers(self) -> None:
        """Tell all who wait to look again: the partition, its disk or the broker goes."""
        self._tell_watchers()
        self._tell_append()
        for watch in (self._growth, self._commit_watch):
            if watch is not None:
                for on_news in watch.take_all():
                    on_news()
        if self._owed is not None:
            self._owed.look_again()

    def _tell_watchers(self) -> None:
        for on_advance in tuple(self._watchers):
            on_advance()

    def _tell_append(self) -> None:
        """Tell followers that they may fetch more."""
        watchers = self._append_watchers
        if watchers:
            self._append_watchers = {}
            for on_append in watchers:
                on_append()

    def _tell_growth(self) -> None:
        """Tell those who wait for as much as there is, or is committed, by now."""
        if self._watchers:
            self._tell_watchers()
        if self._growth is not None:
            for on_growth in self._growth.take_due(self.log.appended_bytes):
                on_growth()
        if self._commit_watch is not None:
            for on_commit in self._commit_watch.take_due(self.log.high_watermark):
                on_commit()
        if self._owed is not None:
            self._owed.take_due(self.log.high_watermark)

    async def _next_news(self) -> None:
        """Wait until watchers are told to look again."""
        news: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def tell() -> None:
            if not news.done():
                news.set_result(None)

        self.watch(tell)
        try:
            await news
        finally:
            self.unwatch(tell)
