"""Readiness of sockets, with direct callbacks: no handle, context or key per event.

The loop's thread waits in the poller's epoll (loop_watch.py), which contains the loop's own
selector as a guest. It is level-triggered, with at most `MOST_EVENTS` a turn; the kernel queues
served descriptors behind the others.

Small responses to a batch of requests are sent together at its end, or after a millisecond, because
each wake-up of a peer takes time (`hold`).

A callback may close any connection of the batch, and an accept may reuse its descriptor. So removed
descriptors are not called, and new ones wait for the next batch.
"""

from __future__ import annotations

import select
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

# Small requests of as many take about 2 ms.
MOST_EVENTS: Final = 64

# Linux's values, also in simulations on other systems.
_IN: Final = 0x001
_OUT: Final = 0x004
# EPOLLRDHUP: the peer sends no more, but there may be unread bytes.
_HANG_UP: Final = 0x2000
_ENDS: Final = _HANG_UP | 0x010 | 0x008  # EPOLLHUP, EPOLLERR
# Errors and hang-ups are reported to readers and writers.
_NOT_IN: Final = ~(_IN | _HANG_UP)
# Readers learn of the end together with the bytes before it.
_READS: Final = _IN | _HANG_UP
_NOT_OUT: Final = ~_OUT
# In smaller batches responses are not held.
_FEWEST_HELD: Final = 4
_LONGEST_HELD_S: Final = 0.001
# This many ready descriptors are a crowd, even if only writable.
_FEWEST_CROWD: Final = 5
_NONE: Final = -1


class Held(Protocol):
    """An object with held output."""

    def release(self) -> None:
        """Send it; handle errors."""
        ...


class Sockets(Protocol):
    """Watches sockets: a Poller, or an event loop."""

    def add_reader(self, fd: int, callback: Callable[[], None], /) -> Any:
        """Call back while `fd` is readable."""
        ...

    def remove_reader(self, fd: int, /) -> Any:
        """Stop calling back."""
        ...

    def add_writer(self, fd: int, callback: Callable[[], None], /) -> Any:
        """Call back while `fd` is writable."""
        ...

    def remove_writer(self, fd: int, /) -> Any:
        """Stop calling back."""
        ...


class Readiness(Protocol):
    """Source of a poller's events, with epoll's methods: an epoll, or a simulation."""

    def register(self, fd: int, eventmask: int, /) -> None:
        """See epoll."""
        ...

    def modify(self, fd: int, eventmask: int, /) -> None:
        """See epoll."""
        ...

    def unregister(self, fd: int, /) -> None:
        """See epoll."""
        ...

    def poll(self, timeout: float | None, maxevents: int, /) -> list[tuple[int, int]]:
        """See epoll."""
        ...

    def close(self) -> None:
        """See epoll."""
        ...


class _Watched:
    """A descriptor with at least one callback; `batch` has added it."""

    __slots__ = ("batch", "ender", "reader", "writer")

    def __init__(self, batch: int) -> None:
        self.batch = batch
        self.reader: Callable[[], None] | None = None
        self.writer: Callable[[], None] | None = None
        self.ender: Callable[[], None] | None = None

    @property
    def mask(self) -> int:
        """Events to watch."""
        return (
            (_READS if self.reader is not None else 0)
            | (_OUT if self.writer is not None else 0)
            | (_HANG_UP if self.ender is not None else 0)
        )


class Poller:
    """The sockets of one event loop.

    Attributes:
        is_batch: Whether several are being served, so that small responses should be held.
        is_ending: Whether the peer of the descriptor being served has disconnected.
        woken_s: End of the last wait (request_meters.py's stopwatch); 0.0: unknown.
    """

    __slots__ = (
        "_batch",
        "_epoll",
        "_guest",
        "_held_until",
        "_is_crowded",
        "_monotonic",
        "_releasables",
        "_report",
        "_watched",
        "is_batch",
        "is_ending",
        "woken_s",
    )

    # _releasables => is_batch: nothing is held after a batch.

    def __init__(
        self,
        *,
        report: Callable[[dict[str, Any]], None],
        monotonic: Callable[[], float],
        guest: int = _NONE,
        readiness: Readiness | None = None,
    ) -> None:
        """Begin without descriptors.

        `report` receives exceptions of callbacks (loop.call_exception_handler). `guest` is a
        descriptor whose readiness `serve` returns.
        """
        self._epoll: Readiness = select.epoll() if readiness is None else readiness
        self._report = report
        self._monotonic = monotonic
        self._guest = guest
        self.is_batch = False
        self.is_ending = False
        self.woken_s = 0.0
        self._releasables: list[Held] = []
        self._held_until = 0.0
        self._batch = 0
        # Other descriptors are ready, or may be: a full batch leaves some out.
        self._is_crowded = False
        self._watched: dict[int, _Watched] = {}
        if guest != _NONE:
            self._epoll.register(guest, _IN)

    def __len__(self) -> int:
        return len(self._watched)

    def close(self) -> None:
        """Stop watching."""
        self._epoll.close()

    # --- registration ---

    def add_reader(self, fd: int, callback: Callable[[], None], /) -> None:
        """Call back while `fd` is readable or has failed."""
        watched = self._watched.get(fd)
        if watched is None:
            self._epoll.register(fd, _READS)
            watched = self._watched[fd] = _Watched(self._batch)
        elif watched.reader is None:
            self._epoll.modify(fd, watched.mask | _READS)
        watched.reader = callback

    def add_writer(self, fd: int, callback: Callable[[], None], /) -> None:
        """Call back while `fd` is writable or has failed."""
        watched = self._watched.get(fd)
        if watched is None:
            self._epoll.register(fd, _OUT)
            watched = self._watched[fd] = _Watched(self._batch)
        elif watched.writer is None:
            self._epoll.modify(fd, watched.mask | _OUT)
        watched.writer = callback

    def add_ender(self, fd: int, callback: Callable[[], None], /) -> None:
        """Call back once when the peer disconnects, even after unread bytes."""
        watched = self._watched.get(fd)
        if watched is None:
            self._epoll.register(fd, _HANG_UP)
            watched = self._watched[fd] = _Watched(self._batch)
        elif watched.ender is None:
            self._epoll.modify(fd, watched.mask | _HANG_UP)
        watched.ender = callback

    def remove_reader(self, fd: int, /) -> None:
        """Stop calling back."""
        watched = self._watched.get(fd)
        if watched is not None and watched.reader is not None:
            watched.reader = None
            self._remaining_mask(fd, watched)

    def remove_writer(self, fd: int, /) -> None:
        """Stop calling back."""
        watched = self._watched.get(fd)
        if watched is not None and watched.writer is not None:
            watched.writer = None
            self._remaining_mask(fd, watched)

    def remove_ender(self, fd: int, /) -> None:
        """Stop calling back."""
        watched = self._watched.get(fd)
        if watched is not None and watched.ender is not None:
            watched.ender = None
            self._remaining_mask(fd, watched)

    def _remaining_mask(self, fd: int, watched: _Watched) -> None:
        mask = watched.mask
        if mask:
            self._epoll.modify(fd, mask)
        else:
            del self._watched[fd]
            self._epoll.unregister(fd)

    # --- a turn (hot) ---

    def wait(self, timeout_s: float | None) -> list[tuple[int, int]]:
        """Wait for events, `timeout_s` at most (None: forever)."""
        return self._epoll.poll(timeout_s, MOST_EVENTS)

    def is_another_ready(self, fd: int) -> bool:
        """Return whether a descriptor other than `fd` waits for a turn.

        A few that are only writable do not count: large responses are sent faster one after
        another. The kernel moves reported descriptors to the end of its queue, so this polls only
        if the current batch had all ready ones; otherwise some would never be served.
        """
        if not self._is_crowded:
            ready = [event for event in self._epoll.poll(0, _FEWEST_CROWD + 1) if event[0] != fd]
            self._is_crowded = _is_crowd(ready)
        return self._is_crowded

    def serve(self, events: list[tuple[int, int]]) -> bool:
        """Run the callbacks of `wait`'s events; return whether the guest is ready."""
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
                if self._releasables and self._monotonic() >= self._held_until:
                    self._release()
        if self._releasables:
            self._release()
        self.is_batch = self.is_ending = False
        self._is_crowded = len(events) >= MOST_EVENTS
        return is_guest_ready

    def hold(self, releasable: Held) -> None:
        """Call `release` at the end of this batch; only while `is_batch`."""
        if not self._releasables:
            self._held_until = self._monotonic() + _LONGEST_HELD_S
        self._releasables.append(releasable)

    def _release(self) -> None:
        released, self._releasables = self._releasables, []
        for releasable in released:
            try:
                releasable.release()
            except Exception as error:  # noqa: BLE001 - as above
                self._report({"message": "cannot send a response", "exception": error})


def _is_crowd(events: list[tuple[int, int]]) -> bool:
    """Return whether there are many, or one has events other than writable."""
    return len(events) >= _FEWEST_CROWD or any(mask != _OUT for _, mask in events)
