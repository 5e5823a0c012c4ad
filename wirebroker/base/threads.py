"""Threads for work that blocks, by classes: each has its own, so that none waits behind another's.

    answer = await in_thread(Work.TOPICS, make, topic)

Nobody uses asyncio's one pool for everything, where a few slow searches held up every topic that
was to be made. Laws:

- Who waits for a class is named here. Within one, work is done in the order in which it came.
- A connection has one request in hand, so it waits for one piece of work at a time; what may take
  long (searches, cold pages, files to be removed) comes in short pieces, each behind the pieces of
  everybody else. A class's queue is therefore no longer than there are connections, partitions
  being loaded and duties.
- Parsing in a thread takes the GIL from the loop: pieces of it last 2 ms, or hold no GIL.

Threads are made when first needed and stay. The fsyncs of the group commit are a class as well.
Nothing ends a thread that waits for another machine. Whoever stops waits for it 1 s, and leaves it
(leavable_threads.py): neither loop nor process is held up by a realm that does not answer.
"""

from __future__ import annotations

import asyncio
import logging
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

logger = logging.getLogger("wirebroker")

_Result = TypeVar("_Result")
_Arguments = TypeVarTuple("_Arguments")


class Work(Enum):
    """The classes of work: a name for its threads, how many there are at most.

    Attributes:
        may_be_left: Whether it may wait for other machines, for longer than a stop waits for it.
    """

    METADATA = ("metadata", 1)  # the sync that every change of the cluster waits for
    TOPICS = ("topics", 2)  # making and moving away directories, what stands about them in files
    SYNCS = ("sync", 16)  # the group commit's
    APPENDS = ("append", 3)  # checking and writing large batches
    SEARCHES = ("search", 2)  # by time: cold indexes, batches to be unpacked, in pieces of 2 ms
    WARMING = ("warm", 4)  # pages that a reader wants, 1 MiB at a time
    CODING = ("coding", 2)  # requests and answers of up to 1 MiB
    LARGE_CODING = ("large-coding", 1)  # larger ones
    LISTENERS = ("listener", 1)  # sockets that are bound
    LOGINS = ("login", 2, True)  # clients whose files are read: by Kerberos, by new keys of tokens
    OUR_LOGINS = ("our-login", 2, True)  # what we ask of a realm, which may wait
    OUR_TOKENS = ("our-token", 4, True)  # of servers of tokens, one each, likewise
    KEYS = ("token-keys", 4, True)  # of servers of keys, likewise
    LOOKUPS = ("lookup", 1, True)  # names of hosts, for limits of their connections
    LOADING = ("load", 2)  # coordinators' partitions, producers' states
    UPKEEP = ("upkeep", 2)  # what nobody waits for: files that go, snapshots, pages given back

    def __init__(self, thread_name: str, most_threads: int, may_be_left: bool = False) -> None:
        self.thread_name = thread_name
        self.most_threads = most_threads
        self.may_be_left = may_be_left


# A request or an answer of so many bytes takes 0.2 s; more would hold up who has less.
_LARGE_CODING_BYTES = 1 << 20

# What a stop waits for threads that may be left: most are done with it by then.
_LEFT_AFTER_S = 1.0

_pools: dict[Work, Executor] = {}
_running: dict[asyncio.Future[Any], Work] = {}
_ends: dict[asyncio.Future[Any], Callable[[], None]] = {}


def begin_in_thread(
    work: Work, function: Callable[[*_Arguments], _Result], *arguments: *_Arguments
) -> asyncio.Future[_Result]:
    """Have a thread of a class call a function; return a future of what it returns or raises."""
    pool = _pools.get(work)
    if pool is None:
        pool = _pools[work] = _new_pool(work)
    future = asyncio.get_running_loop().run_in_executor(pool, function, *arguments)
    _running[future] = work
    future.add_done_callback(_running.pop)
    return future


def _new_pool(work: Work) -> Executor:
    if work.may_be_left:
        from wirebroker.base.leavable_threads import LeavableThreads  # noqa: PLC0415 - few need them

        return LeavableThreads(work.most_threads, work.thread_name)
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - short verbs have none

    return ThreadPoolExecutor(work.most_threads, thread_name_prefix=work.thread_name)


async def in_thread(
    work: Work, function: Callable[[*_Arguments], _Result], *arguments: *_Arguments
) -> _Result:
    """Have a thread of a class call a function, and wait for what it returns or raises."""
    return await begin_in_thread(work, function, *arguments)


def end_with_loop(work: asyncio.Future[Any], end: Callable[[], None]) -> None:
    """Have something that may wait for long ended by `until_idle`, when its loop is to close."""
    _ends[work] = end
    work.add_done_callback(_ends.pop)


def coding(size: int) -> Work:
    """Return the class for parsing or encoding something of `size` bytes."""
    return Work.CODING if size <= _LARGE_CODING_BYTES else Work.LARGE_CODING


async def until_idle() -> None:
    """Wait until no thread works for this event loop, which may then be closed.

    One that may be left is waited for 1 s: what it finds is nobody's then.
    """
    await _until_done(may_be_left=True, most_s=_LEFT_AFTER_S)
    for work, future in _mine(may_be_left=True):
        logger.info("a thread of %s waits for another machine; it is left", work.thread_name)
        future.cancel()
    await _until_done(may_be_left=False, most_s=None)


async def _until_done(*, may_be_left: bool, most_s: float | None) -> None:
    while mine := [future for _, future in _mine(may_be_left=may_be_left)]:
        for future in mine:
            if future in _ends:
                _ends[future]()
        _, others = await asyncio.wait(mine, timeout=most_s)
        if others:
            return


def _mine(*, may_be_left: bool) -> list[tuple[Work, asyncio.Future[Any]]]:
    loop = asyncio.get_running_loop()
    return [
        (work, future)
        # Loops of other threads add to it meanwhile: a copy is made in one go.
        for future, work in tuple(_running.items())
        if future.get_loop() is loop and work.may_be_left is may_be_left
    ]
