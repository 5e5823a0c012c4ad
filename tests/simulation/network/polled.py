"""The broker's poller over in-memory connections, which reports readiness in batches.

Level-triggered like epoll: a descriptor that stays ready is reported again, after all others.
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

# Probability that the loop is busy, so that several connections become ready meanwhile.
_HOLDS = 0.05
_LONGEST_HOLD_S = 1.0


class PolledTransports:
    """The poller of one process and its transports.

    Attributes:
        poller: The poller with which connections register.
    """

    # _masks holds the watched descriptors in the order of their next report.

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

    # -- for transports ----------------------------------------------------------------------

    def number_of(self, transport: MemoryTransport) -> int:
        number = next(self._numbers)
        self._transports[number] = transport
        return number

    def look(self) -> None:
        """Schedule a step of the process that serves the ready transports."""
        if not self._is_due and any(self._ready(descriptor) for descriptor in self._masks):
            self._is_due = True
            is_held = self._random.random() < _HOLDS
            hold_s = self._random.uniform(0, _LONGEST_HOLD_S) if is_held else 0.0
            self._process.call_later(hold_s, self._turn)

    def _turn(self) -> None:
        self._is_due = False
        self.poller.serve(self.poller.wait(0))
        self.look()

    # -- for the poller ----------------------------------------------------------------------

    def register(self, fd: int, eventmask: int, /) -> None:
        assert fd in self._transports
        assert fd not in self._masks
        self._masks[fd] = eventmask
        self.look()

    def modify(self, fd: int, eventmask: int, /) -> None:
        assert fd in self._masks
        self._masks[fd] = eventmask
        self.look()

    def unregister(self, fd: int, /) -> None:
        del self._masks[fd]

    def poll(self, timeout: float | None, maxevents: int, /) -> list[tuple[int, int]]:
        """Return the ready descriptors without waiting."""
        assert timeout == 0
        ready = [(fd, mask) for fd in self._masks if (mask := self._ready(fd))][:maxevents]
        for fd, _ in ready:
            self._masks[fd] = self._masks.pop(fd)
        return ready

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def _ready(self, fd: int) -> int:
        transport = self._transports[fd]
        ready = select.EPOLLIN if transport.is_readable else 0
        ready |= select.EPOLLOUT if transport.room_bytes > 0 else 0
        ready |= select.EPOLLRDHUP if transport.has_end else 0
        return ready & self._masks[fd]
