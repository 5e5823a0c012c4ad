"""All connections in memory: how bad the weather is, who sees what, and what deaths do to them.

A link (link.py) does not outlive the broker that it leads to.
"""

from __future__ import annotations

import contextvars
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from tests.simulation.network.link import Link

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from tests.simulation.machine.loop import Process, SimulatedLoop
    from tests.simulation.network.host import Host
    from tests.simulation.network.link import Exchange


@dataclass
class Weather:
    """How bad the network is; probabilities are per request."""

    slowest_s: float = 0.02
    request_lost: float = 0.0
    answer_lost: float = 0.0
    lingers: float = 0.0


class Observer(Protocol):
    """Who sees what enters and leaves the broker, also what never arrives."""

    def note(self, line: str, data: bytes = b"") -> None: ...

    def admits(self, exchange: Exchange) -> bool: ...

    def served(self, exchange: Exchange) -> None: ...

    def answered(self, exchange: Exchange, answer: Any) -> None: ...

    def failed(self, error: BaseException) -> None: ...


class Network:
    """All links, and the weather."""

    def __init__(self, loop: SimulatedLoop, random: Random, observer: Observer) -> None:
        self.loop = loop
        self.random = random
        self.observer = observer
        self.weather = Weather()
        # None while no broker accepts connections.
        self.host: Host | None = None
        self._links: dict[Link, None] = {}
        self._next_number = 0

    def delay(self) -> float:
        """Return how long something takes to arrive: mostly short."""
        return self.weather.slowest_s * self.random.random() ** 3

    def later(self, delay_s: float, callback: Callable[..., Any], *args: Any) -> None:
        """Do something that belongs to no process."""
        self.loop.call_later(delay_s, callback, *args, context=contextvars.Context())

    def next_number(self) -> int:
        self._next_number += 1
        return self._next_number

    def open(self, client: Process) -> Link:
        """Return a new link to the broker that is there now."""
        link = Link(self, client, self.host)
        if not link.is_closed:
            self._links[link] = None
        return link

    def closed(self, link: Link) -> None:
        self._links.pop(link, None)

    def broker_died(self) -> None:
        """Let some clients learn of it soon; the others find out by themselves."""
        self.host = None
        for link in list(self._links):
            if self.random.random() < 0.5:
                self.later(self.delay(), link.break_off)

    def client_died(self, client: Process) -> None:
        """Close what it had open; what it sent may still arrive."""
        for link in [link for link in self._links if link.client is client]:
            link.close()
