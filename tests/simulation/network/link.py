"""One in-memory connection from a client to a broker, with simulated network faults.

A link that breaks loses the one request in flight or its response, or the request arrives after the
client has retried it on another link. The broker's side is a real connection: frames arrive in
pieces, responses leave in pieces if the client reads slowly, and a close arrives late or never.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tests.support.protocol.raw_client import answer_of, request_frame
from wirebroker.net.memory_transport import MemoryTransport

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.simulation.machine.loop import Process
    from tests.simulation.network.host import Host
    from tests.simulation.network.network import Network
    from wirebroker.codecs.api_keys import ApiKey

# Maximum delay of a request that arrives after its link broke.
_LONGEST_LINGER_S = 12.0
# Share of frames that arrive in two pieces, and the maximum gap between these.
_CUT = 0.1
_LONGEST_GAP_S = 0.5
# Share of slow readers, the broker's output buffer for them, and their read delay.
_SLOW = 0.1
_SLOW_BYTES = 200
_LONGEST_LIE_S = 0.01
_PLENTY_BYTES = 1 << 18
# Share of closes that the broker never sees, as when the client's machine fails.
_UNTOLD = 0.5
# Minimum time between two arrivals.
_INSTANT_S = 1e-5
_LENGTH_BYTES = 4


class LinkLostError(Exception):
    """The link broke or the request timed out; the request may have been served."""


class Exchange:
    __slots__ = (
        "correlation_id",
        "has_arrived",
        "is_stale",
        "key",
        "link",
        "note",
        "request",
        "version",
    )

    def __init__(
        self, link: Link, key: ApiKey, version: int, request: Mapping[str, Any], number: int
    ) -> None:
        self.link = link
        self.key = key
        self.version = version
        self.request = request
        self.correlation_id = number
        # Whether the broker could have received some of the request.
        self.has_arrived = False
        # Whether the client had closed the link before the request was served.
        self.is_stale = False
        self.note: Any = None

    @property
    def name(self) -> str:
        return f"{self.link.client.name} {self.key.name} v{self.version}"


class Link:
    """One connection of a client.

    Attributes:
        is_closed: Whether the client has closed it, or knows that it is broken.
    """

    # The client's requests do not overlap: _exchange is the only one without a response.

    def __init__(self, network: Network, client: Process, host: Host | None) -> None:
        self._network = network
        self.client = client
        self._host = host
        # The broker's side, created by the first arrival.
        self._transport: MemoryTransport | None = None
        self._exchange: Exchange | None = None
        self._waiter: asyncio.Future[Any] | None = None
        # Arrival time of the last bytes sent to the broker.
        self._arrives_at = 0.0
        # Time of the last arrival.
        self._arrived_at = 0.0
        self._is_slow = network.random.random() < _SLOW
        self._takes_soon = False
        # An incomplete response.
        self._taken = bytearray()
        self.is_closed = host is None

    # -- the client --------------------------------------------------------------------------

    async def ask(
        self, key: ApiKey, version: int, request: Mapping[str, Any], *, timeout_s: float
    ) -> Any:
        """Send a request and return its decoded response.

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
        """Drop the request in flight; the broker may or may not see the close."""
        if self.is_closed:
            return
        self.is_closed = True
        network = self._network
        network.closed(self)
        if network.random.random() >= _UNTOLD:
            self._later(network.delay(), self._end)

    def break_off(self) -> None:
        self.close()
        if self.client.is_alive and self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(LinkLostError())

    def _receive(self, answer: Any) -> None:
        if not self.is_closed and self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(answer)

    # -- to the broker -----------------------------------------------------------------------

    def _send(self, exchange: Exchange) -> None:
        network, weather, random = self._network, self._network.weather, self._network.random
        self._exchange = exchange
        frame = request_frame(
            exchange.key,
            exchange.version,
            exchange.request,
            correlation_id=exchange.correlation_id,
            client_id=self.client.name,
        )
        luck = random.random()
        if luck < weather.request_lost:
            if random.random() < 0.5:  # only the beginning arrives
                self._later(network.delay(), self._arrive, frame[: random.randrange(1, len(frame))])
            network.later(network.delay(), self.break_off)
            return
        delay_s = network.delay()
        if luck < weather.request_lost + weather.lingers:
            network.later(delay_s, self.break_off)
            delay_s = random.uniform(0, _LONGEST_LINGER_S)
        if random.random() < _CUT:
            cut = random.randrange(1, len(frame))
            self._later(delay_s, self._arrive, frame[:cut])
            delay_s, frame = delay_s + random.uniform(0, _LONGEST_GAP_S), frame[cut:]
        self._later(delay_s, self._arrive, frame)

    def _later(self, delay_s: float, callback: Any, *args: Any) -> None:
        """Schedule an arrival after all earlier ones."""
        now = self._network.loop.time()
        self._arrives_at = max(self._arrives_at + _INSTANT_S, now + delay_s)
        self._network.later(self._arrives_at - now, callback, *args)

    def _arrive(self, data: bytes) -> None:
        """Put bytes into the broker's receive buffer; this is no step of the broker."""
        host, exchange = self._host, self._exchange
        if host is None or not host.process.is_alive:
            self.break_off()
            return
        transport = self._transport
        if transport is None:
            transport = self._transport = MemoryTransport(
                self._network.loop,
                self._on_output,
                most_bytes=_SLOW_BYTES if self._is_slow else _PLENTY_BYTES,
                polled=host.polled,
            )
            host.process.call_later(0, host.accept, transport, self)
        if transport.is_closed:
            self.break_off()
            return
        assert exchange is not None
        host.arrived(exchange)
        exchange.has_arrived = True
        self._arrived_at = self._network.loop.time()
        transport.incoming += data
        transport.changed()

    def _end(self) -> None:
        if self._transport is not None and not self._transport.is_closed:
            self._transport.has_end = True
            self._transport.changed()

    # -- in the broker -----------------------------------------------------------------------

    def taken_up(self, exchange: Exchange, frame: memoryview) -> bool:
        """Note that the broker begins to serve a request; return whether it may."""
        observer = self._network.observer
        exchange.is_stale = self.is_closed
        if exchange.is_stale and not observer.admits(exchange):
            return False
        observer.note(f"> {exchange.name}{' stale' if exchange.is_stale else ''}", bytes(frame))
        observer.served(exchange)
        return True

    def _on_output(self) -> None:
        """Read what the broker has sent, later if this client is slow."""
        transport = self._transport
        assert transport is not None
        if not self._is_slow or transport.is_closed:
            self._take()
        elif not self._takes_soon:
            self._takes_soon = True
            self._network.later(self._network.random.uniform(0, _LONGEST_LIE_S), self._take)

    def _take(self) -> None:
        host, transport = self._host, self._transport
        assert host is not None
        assert transport is not None
        self._takes_soon = False
        if not host.process.is_alive:
            return
        received = self._taken
        received += transport.take()
        if len(received) >= _LENGTH_BYTES:
            size = int.from_bytes(received[:_LENGTH_BYTES]) + _LENGTH_BYTES
            if len(received) >= size:
                data = bytes(received[:size])
                del received[:size]
                self._answered(data)
        if transport.is_closed and not self.is_closed:
            self._closed_by(host, has_received_all=not transport.incoming)

    def _closed_by(self, host: Host, *, has_received_all: bool) -> None:
        """Report the broker's close to the client; fail if a request lost its response by it."""
        exchange = self._exchange
        is_excused = not has_received_all or host.is_stopping
        if exchange is not None and not is_excused and not self._seems_idle(host, exchange):
            name = exchange.name
            error = AssertionError(f"the broker closes a connection instead of answering {name}")
            self._network.observer.failed(error)
        self._network.later(self._network.delay(), self.break_off)

    def _seems_idle(self, host: Host, exchange: Exchange) -> bool:
        """Return whether the connection seems idle to a broker because a request is on its way."""
        quiet_s = self._network.loop.time() - self._arrived_at
        return not exchange.has_arrived and host.closes_after(quiet_s)

    # -- to the client -----------------------------------------------------------------------

    def _answered(self, data: bytes) -> None:
        network, observer = self._network, self._network.observer
        exchange, self._exchange = self._exchange, None
        try:
            assert exchange is not None, "an answer to nothing"
            observer.note(f"< {exchange.name}", data)
            answer = answer_of(
                exchange.key,
                exchange.version,
                data[_LENGTH_BYTES:],
                correlation_id=exchange.correlation_id,
            )
        except Exception as error:  # noqa: BLE001 - the simulation ends with it
            observer.failed(error)
            return
        observer.answered(exchange, answer)
        if network.random.random() < network.weather.answer_lost:
            network.later(network.delay(), self.break_off)
        else:
            network.later(network.delay(), self._receive, answer)
