"""Readiness of sockets, told to their owners at once: no handle, no context, no key for an event.

    poller.add_reader(descriptor, callback)      # as on an event loop, which serves where none is
    events = poller.wait(timeout_s)
    poller.serve(events)

The poller's epoll is where the loop's thread sleeps (loop_watch.py); the loop's own selector is a
guest in it, looked at only when it has something. Level-triggered, at most `MOST_EVENTS` a turn:
the kernel queues what stays ready behind the rest, so all have their turn, timers as well.

Small answers to a batch of several leave together at its end, or with the first request that ends
a millisecond after it: a peer that is woken for each of them costs us 2 us a time (`hold`).

Within a batch a callback may close any connection, and an accept may reuse its descriptor: what is
no longer watched is not called, what has been added since the batch began waits for the next.
"""

from __future__ import annotations

import select
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

# Small requests take about 2 ms together.
MOST_EVENTS: Final = 64

# Linux's, also where there is no epoll: a simulation's readiness speaks of them, too.
_IN: Final = 0x001
_OUT: Final = 0x004
# The peer has shut its sending half, perhaps behind data that nobody has read.
_HANG_UP: Final = 0x2000
_ENDS: Final = _HANG_UP | 0x010 | 0x008  # EPOLLHUP, EPOLLERR
# Errors and hang-ups are told to whoever is there, as event loops do.
_NOT_IN: Final = ~(_IN | _HANG_UP)
# Who reads is told of the end along with what was sent before it.
_READS: Final = _IN | _HANG_UP
_NOT_OUT: Final = ~_OUT
# Fewer than this and there is nobody to wait for.
_FEWEST_HELD: Final = 4
_LONGEST_HELD_S: Final = 0.001
# This many ready descriptors are a crowd, even if all are only writable.
_FEWEST_CROWD: Final = 5
# No descriptor.
_NONE: Final = -1


class Held(Protocol):
    """Something that is to be sent."""

    def release(self) -> None:
        """Send it; faults are its own business."""
        ...


class Sockets(Protocol):
    """Who watches sockets: a Poller, or an event loop."""

    def add_reader(self, fd: int, callback: Callable[[], None], /) -> Any:
        """Call back whenever `fd` is readable."""
        ...

    def remove_reader(self, fd: int, /) -> Any:
        """Do so no more."""
        ...

    def add_writer(self, fd: int, callback: Callable[[], None], /) -> Any:
        """Call back whenever `fd` is writable."""
        ...

    def remove_writer(self, fd: int, /) -> Any:
        """Do so no more."""
        ...


class Readiness(Protocol):
    """What tells a poller of descriptors that are ready: an epoll, or a simulation's."""

    def register(self, fd: int, eventmask: int, /) -> None:
        """Watch one more."""
        ...

    def modify(self, fd: int, eventmask: int, /) -> None:
        """Watch it for something else."""
        ...

    def unregister(self, fd: int, /) -> None:
        """Watch it no more."""
        ...

    def poll(self, timeout: float | None, maxevents: int, /) -> list[tuple[int, int]]:
        """Sleep until one is ready, or for so many seconds; return descriptors and masks."""
        ...

    def close(self) -> None:
        """Watch nothing any more."""
        ...


class _Watched:
    """One descriptor."""

    __slots__ = ("batch", "ender", "reader", "writer")

    # In the poller's table at least one of the three is set, out of it none.

    def __init__(self, batch: int) -> None:
        # When it was added.
        self.batch = batch
        self.reader: Callable[[], None] | None = None
        self.writer: Callable[[], None] | None = None
        self.ender: Callable[[], None] | None = None

    @property
    def mask(self) -> int:
        """What the kernel is asked for; 0 is nothing."""
        return (
            (_READS if self.reader is not None else 0)
            | (_OUT if self.writer is not None else 0)
            | (_HANG_UP if self.ender is not None else 0)
        )


class Poller:
    """The sockets of one event loop.

    Attributes:
        is_batch: Whether several are being served, so that small answers had better be held.
        is_ending: Whether the peer of the descriptor that is being served sends no more.
        woken_s: When the last wait ended, on the stopwatch of request_meters.py; 0.0: unknown.
    """

    __slots__ = (
        "_batch",
        "_epoll",
        "_guest",
        "_held",
        "_held_until",
        "_is_crowded",
        "_monotonic",
        "_report",
        "_watched",
        "is_batch",
        "is_ending",
        "woken_s",
    )

    # _held => is_batch: a batch leaves nothing behind.

    def __init__(
        self,
        *,
        report: Callable[[dict[str, Any]], None],
        monotonic: Callable[[], float],
        guest: int = _NONE,
        readiness: Readiness | None = None,
    ) -> None:
        """Watch nothing yet.

        Args:
            report: Told what a callback raises (loop.call_exception_handler).
            monotonic: Seconds on a clock that never goes back.
            guest: A descriptor whose readiness `serve` returns.
            readiness: Who knows of it; an epoll if it is not said.
        """
        self._epoll: Readiness = select.epoll() if readiness is None else readiness
        self._report = report
        self._monotonic = monotonic
        self._guest = guest
        self.is_batch = False
        self.is_ending = False
        self.woken_s = 0.0
        self._held: list[Held] = []
        self._held_until = 0.0
        self._batch = 0
        # Others are in the batch, have been found ready since, or may be behind a full one.
        self._is_crowded = False
        self._watched: dict[int, _Watched] = {}
        if guest != _NONE:
            self._epoll.register(guest, _IN)

    def __len__(self) -> int:
        return len(self._watched)

    def close(self) -> None:
        """Watch nothing any more."""
        self._epoll.close()

    # --- who is watched ---

    def add_reader(self, fd: int, callback: Callable[[], None], /) -> None:
        """Call back whenever `fd` is readable, or has failed."""
        watched = self._watched.get(fd)
        if watched is None:
            self._epoll.register(fd, _READS)
            watched = self._watched[fd] = _Watched(self._batch)
        elif watched.reader is None:
            self._epoll.modify(fd, watched.mask | _READS)
        watched.reader = callback

    def add_writer(self, fd: int, callback: Callable[[], None], /) -> None:
        """Call back whenever `fd` is writable, or has failed."""
        watched = self._watched.get(fd)
        if watched is None:
            self._epoll.register(fd, _OUT)
            watched = self._watched[fd] = _Watched(self._batch)
        elif watched.writer is None:
            self._epoll.modify(fd, watched.mask | _OUT)
        watched.writer = callback

    def add_ender(self, fd: int, callback: Callable[[], None], /) -> None:
        """Call back once when the peer of `fd` ends, whatever it has sent before; reads nothing."""
        watched = self._watched.get(fd)
        if watched is None:
            self._epoll.register(fd, _HANG_UP)
            watched = self._watched[fd] = _Watched(self._batch)
        elif watched.ender is None:
            self._epoll.modify(fd, watched.mask | _HANG_UP)
        watched.ender = callback

    def remove_reader(self, fd: int, /) -> None:
        """Call back no more; nothing happens if nobody is called."""
        watched = self._watched.get(fd)
        if watched is not None and watched.reader is not None:
            watched.reader = None
            self._left(fd, watched)

    def remove_writer(self, fd: int, /) -> None:
        """Call back no more; nothing happens if nobody is called."""
        watched = self._watched.get(fd)
        if watched is not None and watched.writer is not None:
            watched.writer = None
            self._left(fd, watched)

    def remove_ender(self, fd: int, /) -> None:
        """Call back no more; nothing happens if nobody is called."""
        watched = self._watched.get(fd)
        if watched is not None and watched.ender is not None:
            watched.ender = None
            self._left(fd, watched)

    def _left(self, fd: int, watched: _Watched) -> None:
        """Ask the kernel for what is still wanted."""
        mask = watched.mask
        if mask:
            self._epoll.modify(fd, mask)
        else:
            del self._watched[fd]
            self._epoll.unregister(fd)

    # --- a turn (hot) ---

    def wait(self, timeout_s: float | None) -> list[tuple[int, int]]:
        """Sleep until something is ready, at most so long (None: without an end)."""
        return self._epoll.poll(timeout_s, MOST_EVENTS)

    def is_another_ready(self, fd: int) -> bool:
        """Return whether another descriptor than `fd` waits for a turn (about 1 us).

        A few that are only writable do not count: each is in the middle of a large response, and
        large responses are sent faster one after another than in turns.
        The kernel moves reported descriptors to the end of its queue. So this is called only if
        all ready ones are served in one turn; otherwise some would be reported and never served.
        """
        if not self._is_crowded:
            ready = [event for event in self._epoll.poll(0, _FEWEST_CROWD + 1) if event[0] != fd]
            self._is_crowded = _is_crowd(ready)
        return self._is_crowded

    def serve(self, events: list[tuple[int, int]]) -> bool:
        """Call whom `wait`'s events are for.

        Returns:
            Whether the guest is ready.
        """
        self._batch += 1
        self.is_batch = len(events) >= _FEWEST_HELD
        self._is_crowded = len(events) > 1 and _is_crowd(events)
        is_guest_ready = False
        for fd, mask in events:
            watched = self._watched.get(fd)
            if watched is None:
                is_guest_ready = is_guest_ready or fd == self._guest
            elif watched.batch != self._batch:
                self.is_ending = mask & _ENDS != 0
                try:
                    if mask & _NOT_OUT and watched.reader is not None:
                        watched.reader()
                    if mask & _NOT_IN and watched.writer is not None:
                        watched.writer()
                    if mask & _ENDS and watched.ender is not None:
                        ender = watched.ender
                        self.remove_ender(fd)
                        ender()
                except Exception as error:  # noqa: BLE001 - whatever it is, it is one connection's
                    self._report({"message": "a socket's callback failed", "exception": error})
                if self._held and self._monotonic() >= self._held_until:
                    self._release()
        if self._held:
            self._release()
        self.is_batch = self.is_ending = False
        self._is_crowded = len(events) >= MOST_EVENTS
        return is_guest_ready

    def hold(self, held: Held) -> None:
        """Release something when this batch has been served; only while `is_batch`."""
        if not self._held:
            self._held_until = self._monotonic() + _LONGEST_HELD_S
        self._held.append(held)

    def _release(self) -> None:
        released, self._held = self._held, []
        for held in released:
            try:
                held.release()
            except Exception as error:  # noqa: BLE001 - as above
                self._report({"message": "an answer cannot be sent", "exception": error})


def _is_crowd(events: list[tuple[int, int]]) -> bool:
    """Return whether there are many, or one is ready for more than writing."""
    return len(events) >= _FEWEST_CROWD or any(mask != _OUT for _, mask in events)
