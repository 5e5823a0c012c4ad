"""The simulated network: its faults, its observers, and the effects of process deaths.

A link (link.py) does not outlive its broker.
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
    """Probabilities of network faults, per request."""

    slowest_s: float = 0.02
    request_lost: float = 0.0
    answer_lost: float = 0.0
    lingers: float = 0.0


class Observer(Protocol):
    """An observer of all requests and responses of the broker, lost ones included."""

    def note(self, line: str, data: bytes = b"") -> None: ...

    def admits(self, exchange: Exchange) -> bool: ...

    def served(self, exchange: Exchange) -> None: ...

    def answered(self, exchange: Exchange, answer: Any) -> None: ...

    def failed(self, error: BaseException) -> None: ...


class Network:
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
        """Return a random, mostly short delay."""
        return self.weather.slowest_s * self.random.random() ** 3

    def later(self, delay_s: float, callback: Callable[..., Any], *args: Any) -> None:
        self.loop.call_later(delay_s, callback, *args, context=contextvars.Context())

    def next_number(self) -> int:
        self._next_number += 1
        return self._next_number

    def open(self, client: Process) -> Link:
        link = Link(self, client, self.host)
        if not link.is_closed:
            self._links[link] = None
        return link

    def closed(self, link: Link) -> None:
        self._links.pop(link, None)

    def broker_died(self) -> None:
        """Notify some clients soon; the others time out."""
        self.host = None
        for link in list(self._links):
            if self.random.random() < 0.5:
                self.later(self.delay(), link.break_off)

    def client_died(self, client: Process) -> None:
        """Close the client's links; what it sent may still arrive."""
        for link in [link for link in self._links if link.client is client]:
            link.close()
