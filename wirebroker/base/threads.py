"""Threads for blocking work, by classes, so that no kind of work waits for another.

    answer = await in_thread(Work.TOPICS, make, topic)

Rules:

- Within a class, work is done in order of arrival.
- A connection waits for one piece of work at a time, and long work comes in short pieces. A class's
  queue is therefore no longer than the number of connections, loading partitions and background
  tasks.
- Parsing in a thread takes the GIL from the loop: its pieces last 2 ms, or hold no GIL.

Threads start when first needed and stay. Work that waits for another machine cannot be stopped: a
shutdown waits 1 s for it and then abandons it.
"""

from __future__ import annotations

import asyncio
import logging
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, TypeVar, TypeVarTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

logger = logging.getLogger("wirebroker")

_Result = TypeVar("_Result")
_Arguments = TypeVarTuple("_Arguments")


class Work(Enum):
    """Classes of work: a name for the threads, and their maximum number.

    Attributes:
        may_be_left: Whether it may wait for other machines and be abandoned.
    """

    METADATA = ("metadata", 1)  # the sync for every change of the cluster
    TOPICS = ("topics", 2)  # creating and moving directories
    SYNCS = ("sync", 16)
    APPENDS = ("append", 3)  # checking and writing large batches
    SEARCHES = ("search", 2)  # by time: cold indexes, compressed batches, in pieces of 2 ms
    WARMING = ("warm", 4)  # loading pages, 1 MiB at a time
    CODING = ("coding", 2)  # messages of up to 1 MiB
    LARGE_CODING = ("large-coding", 1)  # larger ones
    IMPORTS = ("import", 1)  # modules that the start did not need
    LISTENERS = ("listener", 1)  # binding sockets, loading TLS keys
    LOGINS = ("login", 2, True)  # client logins that read files
    OUR_LOGINS = ("our-login", 2, True)  # the broker's Kerberos logins
    OUR_TOKENS = ("our-token", 4, True)  # one for each token server
    KEYS = ("token-keys", 4, True)  # servers of token keys
    LOOKUPS = ("lookup", 1, True)  # host names in connection limits
    LOADING = ("load", 2)  # coordinators' partitions, producer states
    RECORDS = ("records", 1)  # clients: batches decompressed, searched or built, one at a time
    LISTS = ("list", 1)  # the console: long lists filtered and sorted
    PASSWORDS = ("password", 1)  # the console: passwords checked, each with up to 64 MiB
    AUDIT = ("audit", 1)  # the console: lines of the audit log written and synced
    FORMS = ("form", 1)  # the console: long bodies of requests parsed
    HTTP = ("http", 2, True)  # the console: brokers in test mode
    SCRAPES = ("scrape", 4, True)  # the console: brokers' metrics read and parsed
    DELIVERY = ("delivery", 1, True)  # the console: pending records read
    REDRIVES = ("redrive", 2, True)  # the console: dead letters sent again, for as long as it takes
    UPKEEP = ("upkeep", 2)  # deleted files, snapshots, pages given back

    def __init__(self, thread_name: str, most_threads: int, may_be_left: bool = False) -> None:
        self.thread_name = thread_name
        self.most_threads = most_threads
        self.may_be_left = may_be_left


# Longer messages are coded in a thread: 64 KiB of arrays take up to 15 ms.
LONGEST_ON_LOOP_BYTES: Final = 64 << 10
# Coding this much takes 0.2 s and would delay smaller messages.
_LARGE_CODING_BYTES = 1 << 20

_ABANDONED_AFTER_S = 1.0

_pools: dict[Work, Executor] = {}
_running: dict[asyncio.Future[Any], Work] = {}
_ends: dict[asyncio.Future[Any], Callable[[], None]] = {}


def begin_in_thread(
    work: Work, function: Callable[[*_Arguments], _Result], *arguments: *_Arguments
) -> asyncio.Future[_Result]:
    """Call a function in a thread of a class; return a future of its result."""
    pool = _pools.get(work)
    if pool is None:
        pool = _pools[work] = _new_pool(work)
    future = asyncio.get_running_loop().run_in_executor(pool, function, *arguments)
    _running[future] = work
    future.add_done_callback(_running.pop)
    return future


def _new_pool(work: Work) -> Executor:
    if work.may_be_left:
        from wirebroker.base.abandonable_threads import AbandonableThreads  # noqa: PLC0415

        return AbandonableThreads(work.most_threads, work.thread_name)
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

    return ThreadPoolExecutor(work.most_threads, thread_name_prefix=work.thread_name)


async def in_thread(
    work: Work, function: Callable[[*_Arguments], _Result], *arguments: *_Arguments
) -> _Result:
    """Call a function in a thread of a class and return its result."""
    return await begin_in_thread(work, function, *arguments)


def end_with_loop(work: asyncio.Future[Any], end: Callable[[], None]) -> None:
    """Register the function by which `until_idle` ends long work."""
    _ends[work] = end
    work.add_done_callback(_ends.pop)


def coding(size: int) -> Work:
    """Return the class for coding `size` bytes."""
    return Work.CODING if size <= _LARGE_CODING_BYTES else Work.LARGE_CODING


async def until_idle() -> None:
    """Wait until no thread works for this event loop, which can then be closed.

    The result of work that is abandoned is dropped.
    """
    await _until_done(may_be_left=True, most_s=_ABANDONED_AFTER_S)
    for work, future in _futures_of_loop(may_be_left=True):
        logger.info("abandoning a %s thread that waits for another machine", work.thread_name)
        future.cancel()
    await _until_done(may_be_left=False, most_s=None)


async def _until_done(*, may_be_left: bool, most_s: float | None) -> None:
    while futures := [future for _, future in _futures_of_loop(may_be_left=may_be_left)]:
        for future in futures:
            if future in _ends:
                _ends[future]()
        _, pending = await asyncio.wait(futures, timeout=most_s)
        if pending:
            return


def _futures_of_loop(*, may_be_left: bool) -> list[tuple[Work, asyncio.Future[Any]]]:
    loop = asyncio.get_running_loop()
    return [
        (work, future)
        # Other threads' loops change it concurrently; the copy is atomic.
        for future, work in tuple(_running.items())
        if future.get_loop() is loop and work.may_be_left is may_be_left
    ]
