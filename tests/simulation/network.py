"""Connections in memory: requests are delayed, lost, or arrive after their client has gone.

A client has one request in flight on a link. A link that breaks loses the request, or the answer;
or the request is still on its way and is served after the client has repeated it on another link,
as what lies in a socket's buffer is. A link does not outlive the broker that it leads to.
"""

from __future__ import annotations

import asyncio
import contextvars
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

from tests.support.raw_client import answer_of, request_frame
from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.net.memory_shell import MemoryConnection
from wirebroker.request import CloseConnectionError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from random import Random

    from tests.simulation.loop import Process, SimulatedLoop
    from wirebroker.codecs.api_keys import ApiKey
    from wirebroker.net.connection_table import ConnectionTable
    from wirebroker.net.dispatch import Dispatcher

# A request that outlives its link is served after up to this time.
_LONGEST_LINGER_S = 12.0


class LinkLostError(Exception):
    """The link broke, or nobody answers: the request may have been served or not."""


@dataclass
class Weather:
    """How bad the network is; probabilities are per request."""

    slowest_s: float = 0.02
    request_lost: float = 0.0
    answer_lost: float = 0.0
    lingers: float = 0.0


class Exchange:
    """A request on its way, and what an observer notes about it."""

    __slots__ = ("correlation_id", "is_stale", "key", "link", "note", "request", "version")

    def __init__(
        self, link: Link, key: ApiKey, version: int, request: Mapping[str, Any], number: int
    ) -> None:
        self.link = link
        self.key = key
        self.version = version
        self.request = request
        self.correlation_id = number
        # Whether its client had given it up before it was served.
        self.is_stale = False
        self.note: Any = None


class Observer(Protocol):
    """Who sees what enters and leaves the broker, also what never arrives."""

    def note(self, line: str, data: bytes = b"") -> None: ...

    def admits(self, exchange: Exchange) -> bool: ...

    def served(self, exchange: Exchange) -> None: ...

    def answered(self, exchange: Exchange, answer: Any) -> None: ...

    def failed(self, error: BaseException) -> None: ...


class Host:
    """The broker as the network sees it."""

    def __init__(self, process: Process, table: ConnectionTable) -> None:
        self.process = process
        self._table = table

    def connect(self) -> MemoryConnection:
        """Accept a connection."""
        return MemoryConnection(cast("Dispatcher", self._table.dispatch))


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


class Link:
    """One connection of a client."""

    def __init__(self, network: Network, client: Process, host: Host | None) -> None:
        self._network = network
        self.client = client
        self._host = host
        self._connection = None if host is None else host.connect()
        self._waiter: asyncio.Future[Any] | None = None
        self.is_closed = host is None

    async def ask(
        self, key: ApiKey, version: int, request: Mapping[str, Any], *, timeout_s: float
    ) -> Any:
        """Send a request and return its decoded answer.

        Raises:
            LinkLostError: The link is closed now.
        """
        network = self._network
        if self.is_closed:
            raise LinkLostError
        waiter = self._waiter = network.loop.create_future()
        self._send(Exchange(self, key, version, request, network.next_number()))
        try:
            async with asyncio.timeout(timeout_s):
                return await waiter
        except TimeoutError:
            self.close()
            raise LinkLostError from None

    def close(self) -> None:
        """Give up what is in flight."""
        self.is_closed = True
        self._network.closed(self)

    def break_off(self) -> None:
        """Let the client learn that the link is gone."""
        self.close()
        if self.client.is_alive and self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(LinkLostError())

    def _send(self, exchange: Exchange) -> None:
        network, weather, random = self._network, self._network.weather, self._network.random
        luck = random.random()
        if luck < weather.request_lost:
            network.later(network.delay(), self.break_off)
            return
        frame = request_frame(
            exchange.key,
            exchange.version,
            exchange.request,
            correlation_id=exchange.correlation_id,
            client_id=self.client.name,
        )
        delay_s = network.delay()
        if luck < weather.request_lost + weather.lingers:
            network.later(delay_s, self.break_off)
            delay_s = random.uniform(0, _LONGEST_LINGER_S)
        network.later(delay_s, self._arrive, exchange, frame)

    def _arrive(self, exchange: Exchange, frame: bytes) -> None:
        host = self._host
        if host is None or not host.process.is_alive:
            self.break_off()
            return
        host.process.spawn(self._serve(exchange, frame))

    async def _serve(self, exchange: Exchange, frame: bytes) -> None:
        """Run in the broker's process: what a connection does with a frame."""
        network, observer, connection = self._network, self._network.observer, self._connection
        assert connection is not None
        exchange.is_stale = self.is_closed
        if exchange.is_stale and not observer.admits(exchange):
            return
        name = f"{self.client.name} {exchange.key.name} v{exchange.version}"
        observer.note(f"> {name}{' stale' if exchange.is_stale else ''}", frame)
        observer.served(exchange)
        try:
            data = await connection.exchange(frame)
        except (MalformedFrameError, CloseConnectionError) as error:
            observer.failed(error)
            return
        except Exception as error:  # noqa: BLE001 - the simulation ends with it
            observer.failed(error)
            return
        observer.note(f"< {name}", data)
        answer = answer_of(
            exchange.key, exchange.version, data[4:], correlation_id=exchange.correlation_id
        )
        observer.answered(exchange, answer)
        if network.random.random() < network.weather.answer_lost:
            network.later(network.delay(), self.break_off)
        else:
            network.later(network.delay(), self._receive, answer)

    def _receive(self, answer: Any) -> None:
        if not self.is_closed and self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(answer)
