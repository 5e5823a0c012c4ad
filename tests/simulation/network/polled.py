"""The product's poller over connections in memory: it tells of them by batches, as of sockets.

Level-triggered as epoll is: what stays ready is told again, behind everything else.
"""

from __future__ import annotations

import itertools
import select
from typing import TYPE_CHECKING

from wirebroker.net.sockets.poller import Poller

if TYPE_CHECKING:
    from random import Random

    from tests.simulation.machine.loop import Process
    from wirebroker.net.memory_transport import MemoryTransport

# How often something else has the loop, so that several connections become ready meanwhile.
_HOLDS = 0.05
_LONGEST_HOLD_S = 1.0


class PolledTransports:
    """The poller of one process, and what it polls.

    Attributes:
        poller: Whom connections ask to be told.
    """

    # _masks has what the poller watches, in the order in which it is told next.

    def __init__(self, process: Process, random: Random) -> None:
        loop = process.loop
        self.poller = Poller(
            report=loop.call_exception_handler, monotonic=loop.time, readiness=self
        )
        self._process = process
        self._random = random
        self._numbers = itertools.count()
        self._transports: dict[int, MemoryTransport] = {}
        self._masks: dict[int, int] = {}
        self._is_due = False

    # -- what transports call ----------------------------------------------------------------

    def number_of(self, transport: MemoryTransport) -> int:
        """Return a descriptor for a new one."""
        number = next(self._numbers)
        self._transports[number] = transport
        return number

    def look(self) -> None:
        """Have the process serve what is ready, in a step of its own."""
        if not self._is_due and any(self._ready(each) for each in self._masks):
            self._is_due = True
            is_held = self._random.random() < _HOLDS
            hold_s = self._random.uniform(0, _LONGEST_HOLD_S) if is_held else 0.0
            self._process.call_later(hold_s, self._turn)

    def _turn(self) -> None:
        self._is_due = False
        self.poller.serve(self.poller.wait(0))
        self.look()

    # -- what the poller calls, as it calls an epoll -----------------------------------------

    def register(self, fd: int, eventmask: int, /) -> None:
        """Watch one more."""
        assert fd in self._transports
        assert fd not in self._masks
        self._masks[fd] = eventmask
        self.look()

    def modify(self, fd: int, eventmask: int, /) -> None:
        """Watch it for something else."""
        assert fd in self._masks
        self._masks[fd] = eventmask
        self.look()

    def unregister(self, fd: int, /) -> None:
        """Watch it no more."""
        del self._masks[fd]

    def poll(self, timeout: float | None, maxevents: int, /) -> list[tuple[int, int]]:
        """Return what is ready; nobody waits here."""
        assert timeout == 0
        found = [(fd, mask) for fd in self._masks if (mask := self._ready(fd))][:maxevents]
        for fd, _ in found:
            self._masks[fd] = self._masks.pop(fd)
        return found

    def close(self) -> None:
        """Nothing is open."""

    def _ready(self, fd: int) -> int:
        transport = self._transports[fd]
        ready = select.EPOLLIN if transport.is_readable else 0
        ready |= select.EPOLLOUT if transport.room_bytes > 0 else 0
        ready |= select.EPOLLRDHUP if transport.has_end else 0
        return ready & self._masks[fd]
