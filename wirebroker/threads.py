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
"""

from __future__ import annotations

import asyncio
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import ThreadPoolExecutor

_Result = TypeVar("_Result")
_Arguments = TypeVarTuple("_Arguments")


class Work(Enum):
    """The classes of work: a name for its threads, and how many there are at most."""

    METADATA = ("metadata", 1)  # the sync that every change of the cluster waits for
    TOPICS = ("topics", 2)  # making and moving away directories, what stands about them in files
    SYNCS = ("sync", 16)  # the group commit's
    APPENDS = ("append", 3)  # checking and writing large batches
    SEARCHES = ("search", 2)  # by time: cold indexes, batches to be unpacked, in pieces of 2 ms
    WARMING = ("warm", 4)  # pages that a reader wants, 1 MiB at a time
    CODING = ("coding", 2)  # requests and answers of up to 1 MiB
    LARGE_CODING = ("large-coding", 1)  # larger ones
    LISTENERS = ("listener", 1)  # sockets that are bound
    LOGINS = ("login", 2)  # clients by Kerberos, whose files are read and written
    OUR_LOGINS = ("our-login", 2)  # what we ask of a realm, which may wait
    OUR_TOKENS = ("our-token", 4)  # of servers of tokens, one each, likewise
    KEYS = ("token-keys", 4)  # of servers of keys, likewise
    LOOKUPS = ("lookup", 1)  # names of hosts, for limits of their connections
    LOADING = ("load", 2)  # coordinators' partitions, producers' states
    UPKEEP = ("upkeep", 2)  # what nobody waits for: files that go, snapshots, pages given back

    def __init__(self, thread_name: str, most_threads: int) -> None:
        self.thread_name = thread_name
        self.most_threads = most_threads


# A request or an answer of so many bytes takes 0.2 s; more would hold up who has less.
_LARGE_CODING_BYTES = 1 << 20

_pools: dict[Work, ThreadPoolExecutor] = {}
_running: set[asyncio.Future[Any]] = set()
_ends: dict[asyncio.Future[Any], Callable[[], None]] = {}


def begin_in_thread(
    work: Work, function: Callable[[*_Arguments], _Result], *arguments: *_Arguments
) -> asyncio.Future[_Result]:
    """Have a thread of a class call a function; return a future of what it returns or raises."""
    pool = _pools.get(work)
    if pool is None:
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - short verbs have none

        pool = _pools[work] = ThreadPoolExecutor(
            work.most_threads, thread_name_prefix=work.thread_name
        )
    future = asyncio.get_running_loop().run_in_executor(pool, function, *arguments)
    _running.add(future)
    future.add_done_callback(_running.discard)
    return future


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
    """Wait until no thread works for this event loop, which may then be closed."""
    loop = asyncio.get_running_loop()
    while mine := [each for each in _running if each.get_loop() is loop]:
        for work in mine:
            if work in _ends:
                _ends[work]()
        await asyncio.wait(mine)
