"""A broker as the network sees it: it accepts what arrives, as real connections over memory.

Between a connection and the dispatcher somebody looks: whoever sent a request is told when it is
taken up, which is when the broker's state begins to know of it.
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
    """The listener of one life of a broker.

    Attributes:
        process: The broker's; whatever its connections do belongs to it.
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
        # What has arrived, in part at least, and was not taken up yet: by correlation id.
        self._arrived: dict[int, Exchange] = {}

    @property
    def is_stopping(self) -> bool:
        """Whether it closes connections because it was told to stop."""
        return self._broker.is_stopping

    def arrived(self, exchange: Exchange) -> None:
        """Note that bytes of a request are there."""
        self._arrived[exchange.correlation_id] = exchange

    def accept(self, transport: MemoryTransport, link: Link) -> None:
        """Serve what a transport carries: a step of the broker."""
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
