"""The broker's side of simulated connections: real connections over memory transports.

A hook between connection and dispatcher reports each request when the broker begins to serve it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulation.machine.loop import Process
    from tests.simulation.network.link import Exchange, Link
    from tests.simulation.network.polled import PolledTransports
    from wirebroker.broker.server import Server
    from wirebroker.net.dispatch import Served
    from wirebroker.net.memory_transport import MemoryTransport
    from wirebroker.request.session import Session


class Host:
    """The listener of one run of a broker process.

    Attributes:
        polled: Its poller, if its loop has one.
    """

    def __init__(self, process: Process, server: Server, polled: PolledTransports | None) -> None:
        assert server.reception.table is not None, "the server has started"
        assert server.broker is not None
        self.process = process
        self.polled = polled
        self._table = server.reception.table
        self._broker = server.broker
        self._serve = self._table.dispatch
        self._table.dispatch = self._dispatch
        # Requests that arrived, at least in part, but are not served yet, by correlation id.
        self._arrived: dict[int, Exchange] = {}

    @property
    def is_stopping(self) -> bool:
        """Whether it closes connections because it is shutting down."""
        return self._broker.is_stopping

    def closes_after(self, quiet_s: float) -> bool:
        """Return whether a connection on which nothing arrived for so long may be closed."""
        idle_ms = self._table.settings.connections_max_idle_ms
        return 0 <= idle_ms <= quiet_s * 1000

    def arrived(self, exchange: Exchange) -> None:
        self._arrived[exchange.correlation_id] = exchange

    def accept(self, transport: MemoryTransport, link: Link) -> None:
        """Serve a transport, as a step of the broker."""
        if self.is_stopping:
            transport.close()
            return
        self._table.adopt(
            transport,
            remote=(link.client.name, 0),
            local=("memory", 9092),
            listener_name="PLAINTEXT",
        )

    def _dispatch(self, frame: memoryview, session: Session) -> Served:
        exchange = self._arrived.pop(int.from_bytes(frame[4:8]))
        if not exchange.link.taken_up(exchange, frame):
            return None
        return self._serve(frame, session)
