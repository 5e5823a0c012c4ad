"""One life of a broker on a simulated disk, from its start to its death or its stop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.machine.loop import Process, SimulatedClock
from tests.simulation.machine.simulated_files import SimulatedFiles
from tests.simulation.network.host import Host
from wirebroker.base import threads
from wirebroker.broker.server import Server
from wirebroker.config.listeners.listeners import listeners_of

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from tests.simulation.machine.disk import Disk
    from tests.simulation.machine.loop import SimulatedLoop
    from tests.simulation.network.polled import PolledTransports
    from wirebroker.api.broker import Broker
    from wirebroker.config import Config
    from wirebroker.config.listeners.listeners import ListenerConfig
    from wirebroker.net.connection_table import ConnectionTable


class _Socket:
    """Stands for a listening socket; nobody connects to it."""

    def getsockname(self) -> tuple[str, int]:
        return "127.0.0.1", 9092

    def fileno(self) -> int:
        return 0

    def close(self) -> None:
        """Nothing is open."""


class SimulatedServer(Server):
    """The server without sockets."""

    def _bind(self) -> list[tuple[ListenerConfig, socket.socket]]:
        return [
            (each, _Socket())  # type: ignore[misc]
            for each in listeners_of(self.config)
        ]


class BrokerLife:
    """A process with a server in it; whoever made it starts the server.

    Args:
        loop: Runs it.
        disk: What outlives it.
        config: Of the broker.
        name: Of the process, for traces.
        on_death: Called when it is killed, after its files and threads are gone.

    Attributes:
        clock: The broker's.
        process: Kills it.
        files: Its view of the disk; kills it in a write.
        server: The broker.
    """

    def __init__(
        self,
        loop: SimulatedLoop,
        disk: Disk,
        config: Config,
        *,
        name: str,
        on_death: Callable[[BrokerLife], None],
    ) -> None:
        self.clock = SimulatedClock(loop)
        self.process = Process(loop, name)
        self.files = SimulatedFiles(disk, self.clock, self.process.kill)
        self.server = SimulatedServer(config, clock=self.clock, files=self.files)
        self._on_death = on_death
        self.process.on_death = self._died

    @property
    def broker(self) -> Broker:
        """The parts of the broker that serves, or has served last."""
        assert self.server.broker is not None
        return self.server.broker

    @property
    def table(self) -> ConnectionTable:
        """The connections of the broker."""
        assert self.server.reception.table is not None
        return self.server.reception.table

    def host(self, polled: PolledTransports | None) -> Host:
        """Return the broker as a network sees it; asked for once, when it serves.

        Args:
            polled: The poller of its loop, if that has one, as a broker's own has.
        """
        return Host(self.process, self.server, polled)

    def _died(self) -> None:
        self.files.is_dead = True
        self.files.disk.locks.clear()
        # Its threads have gone with it; the next broker, on the same loop, waits for its own.
        threads._running.clear()
        self._on_death(self)
