"""Threads that load pages of files for readers, and release pages.

A compiled build has threads without the interpreter (_page_threads.c, Linux). With the
interpreter's (threads.py), each switch delays the loop by 0.1 ms for the GIL.

Each recent reader has its own descriptor, by which the kernel sees sequential reading and reads
further ahead. On the shared descriptor, from which the loop sends, it would not.
"""

from __future__ import annotations

import asyncio
import logging
import os
import weakref
from collections import OrderedDict
from functools import partial
from typing import TYPE_CHECKING, Final

from wirebroker.base.threads import Work, begin_in_thread
from wirebroker.storage.paged_file import warm_by

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.net.pages._page_threads import PageThreads
    from wirebroker.net.sockets.poller import Sockets
    from wirebroker.storage.descriptors import Descriptor
    from wirebroker.storage.files import DataFile

    OnDone = Callable[[BaseException | None], None]
    BuildChoice = tuple[DataFile, int, int, OnDone]

logger = logging.getLogger("wirebroker.net")

# Readers beyond this number lose their readahead.
_MOST_READERS: Final = 64
# Started jobs of a kind: enough until the loop's next turn.
_MAX_RUNNING: Final = 16
# One thread releases pages: in order, and in one place at a time.
_MOST_THREADS: Final = {Work.WARMING: Work.WARMING.most_threads, Work.UPKEEP: 1}


def _threads_type() -> type[PageThreads] | None:
    try:
        from wirebroker.net.pages._page_threads import PageThreads  # noqa: PLC0415 - if it is compiled
    except ImportError:
        return None
    return PageThreads


_new_threads: Final = _threads_type()


class PageWork:
    """Page jobs of one server."""

    __slots__ = (
        "_callbacks",
        "_cooling",
        "_descriptors",
        "_next_number",
        "_sockets",
        "_threads",
        "_to_release",
        "_waiting",
    )

    # _waiting => _callbacks[WARMING] is full: each job that ends starts the next.

    def __init__(self, sockets: Sockets | None = None) -> None:
        """Without `sockets` only the interpreter's threads are used."""
        self._sockets = sockets if _new_threads is not None else None
        self._threads: dict[Work, PageThreads] = {}
        self._next_number = 0
        # Of started jobs, by number.
        self._callbacks: dict[Work, dict[int, OnDone]] = {work: {} for work in _MOST_THREADS}
        # Each reader waits for one range at a time.
        self._waiting: OrderedDict[object, BuildChoice] = OrderedDict()
        # Last used last. The weak reference does not hold deleted files open.
        self._descriptors: OrderedDict[object, tuple[weakref.ref[DataFile], Descriptor]] = (
            OrderedDict()
        )
        # Ranges that wait for the interpreter's one thread.
        self._to_release: list[tuple[DataFile, int, int]] = []
        self._cooling: asyncio.Future[None] | None = None

    def bring(
        self, reader: object, file: DataFile, position: int, length: int, on_done: OnDone
    ) -> None:
        """Load a range for a reader, which continues after it until `leave`.

        `on_done` is called in a later turn, with the error or None, unless the reader leaves before
        the job starts.
        """
        request = (file, position, length, on_done)
        if len(self._callbacks[Work.WARMING]) >= _MAX_RUNNING:
            self._waiting[reader] = request
        else:
            self._bring(reader, request)

    def give_back(self, file: DataFile, position: int, length: int) -> None:
        """Release a range from memory; errors are logged."""
        if self._sockets is not None:
            try:
                descriptor = file.held()
            except OSError as error:
                _log_fault(file.path, error)
                return
            on_done = partial(_log_fault, file.path)
            if self._begin(Work.UPKEEP, descriptor, position, length, on_done):
                return
        self._to_release.append((file, position, length))
        if self._cooling is None:
            self._cool()

    def leave(self, reader: object) -> None:
        """Forget a reader and its waiting job."""
        self._descriptors.pop(reader, None)
        self._waiting.pop(reader, None)

    def close(self) -> None:
        """End the native threads, and drop all callbacks."""
        self._descriptors.clear()
        self._waiting.clear()
        for callbacks in self._callbacks.values():
            callbacks.clear()
        sockets, self._sockets = self._sockets, None
        if sockets is not None:
            for threads in self._threads.values():
                sockets.remove_reader(threads.fileno())
                threads.close()
            self._threads.clear()

    def _bring(self, reader: object, request: BuildChoice) -> None:
        file, position, length, on_done = request
        try:
            own = self._descriptor_of(reader, file)
            if own is not None and self._begin(Work.WARMING, own, position, length, on_done):
                return
            if own is None:
                warming = begin_in_thread(Work.WARMING, file.warm, position, length)
            else:
                warming = begin_in_thread(Work.WARMING, warm_by, own, position, length)
        except (OSError, RuntimeError) as error:  # no descriptor, or no thread could be started
            asyncio.get_running_loop().call_soon(on_done, error)
            return
        number = self._next_number = self._next_number + 1
        self._callbacks[Work.WARMING][number] = on_done
        warming.add_done_callback(partial(self._on_warmed, number))

    def _on_warmed(self, number: int, warming: asyncio.Future[None]) -> None:
        error = warming.exception()
        on_done = self._callbacks[Work.WARMING].pop(number, None)
        if on_done is None:  # closed
            return
        self._go_on()
        on_done(error)

    def _go_on(self) -> None:
        while self._waiting and len(self._callbacks[Work.WARMING]) < _MAX_RUNNING:
            self._bring(*self._waiting.popitem(last=False))

    def _descriptor_of(self, reader: object, file: DataFile) -> Descriptor | None:
        entry = self._descriptors.pop(reader, None)
        own = file.ahead(entry[1] if entry is not None and entry[0]() is file else None)
        if own is not None:
            callback = partial(self._on_file_deleted, reader)
            self._descriptors[reader] = (weakref.ref(file, callback), own)
            if len(self._descriptors) > _MOST_READERS:
                self._descriptors.popitem(last=False)
        return own

    def _on_file_deleted(self, reader: object, reference: weakref.ref[DataFile]) -> None:
        entry = self._descriptors.get(reader)
        if entry is not None and entry[0] is reference:
            self._descriptors.pop(reader, None)  # a thread may have dropped the last reference

    # --- native threads ---

    def _begin(
        self, work: Work, descriptor: Descriptor, position: int, length: int, on_done: OnDone
    ) -> bool:
        """Start a job in a native thread; return False if none is available."""
        if self._sockets is None or len(self._callbacks[work]) >= _MAX_RUNNING:
            return False
        number = self._next_number = self._next_number + 1
        try:
            threads = self._threads.get(work) or self._begin_threads(work, self._sockets)
            is_read = work is Work.WARMING
            threads.submit(number, is_read, descriptor.number, position, length)
        except OSError as error:  # no descriptor or thread is available
            logger.debug("using Python threads instead: %s", error)
            return False
        self._callbacks[work][number] = on_done
        return True

    def _begin_threads(self, work: Work, sockets: Sockets) -> PageThreads:
        assert _new_threads is not None, "page threads exist if sockets are given"
        threads = _new_threads(_MOST_THREADS[work])
        # First, because results of unwatched threads would be lost.
        sockets.add_reader(threads.fileno(), partial(self._on_done, work, threads))
        self._threads[work] = threads
        return threads

    def _on_done(self, work: Work, threads: PageThreads) -> None:
        loop = asyncio.get_running_loop()
        for number, error in threads.take():
            fault = OSError(error, os.strerror(error)) if error else None
            loop.call_soon(self._callbacks[work].pop(number), fault)
        self._go_on()

    # --- threads of the interpreter ---

    def _cool(self) -> None:
        ranges, self._to_release = self._to_release, []
        self._cooling = begin_in_thread(Work.UPKEEP, _give_back, ranges)
        self._cooling.add_done_callback(self._on_cooled)

    def _on_cooled(self, cooling: asyncio.Future[None]) -> None:
        self._cooling = None
        error = cooling.exception()
        if error is not None:
            logger.error("cannot release cached pages", exc_info=error)
        if self._to_release:
            self._cool()


def _give_back(ranges: list[tuple[DataFile, int, int]]) -> None:
    for file, position, length in ranges:
        try:
            file.cool(position, length)
        except OSError as error:
            _log_fault(file.path, error)


def _log_fault(path: str, error: BaseException | None) -> None:
    if isinstance(error, FileNotFoundError):
        logger.debug("%s was deleted", path)  # deleted by retention
    elif error is not None:
        logger.warning("cannot release cached pages of %s: %s", path, error)
