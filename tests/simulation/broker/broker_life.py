"""One run of a broker on a simulated disk, from its start to its death or shutdown."""

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
    """A placeholder for a listening socket."""

    def getsockname(self) -> tuple[str, int]:
        return "127.0.0.1", 9092

    def fileno(self) -> int:
        return 0

    def close(self) -> None:
        """Do nothing: there is no socket."""


class SimulatedServer(Server):
    def _bind(self) -> list[tuple[ListenerConfig, socket.socket]]:
        return [
            (listener, _Socket())  # type: ignore[misc]
            for listener in listeners_of(self.config)
        ]


class BrokerLife:
    """A process with a server, which the caller starts.

    Args:
        on_death: Called when it is killed, after its files and threads are gone.

    Attributes:
        process: The process, which can be killed between steps.
        files: Its view of the disk, which can kill it in a write.
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
        """The parts of the current or last broker."""
        assert self.server.broker is not None
        return self.server.broker

    @property
    def table(self) -> ConnectionTable:
        assert self.server.reception.table is not None
        return self.server.reception.table

    def host(self, polled: PolledTransports | None) -> Host:
        """Return the broker's side of the network; to be called once, when it serves.

        Args:
            polled: The poller of its loop, if there is one.
        """
        return Host(self.process, self.server, polled)

    def _died(self) -> None:
        self.files.is_dead = True
        self.files.disk.locks.clear()
        # Its threads ended with it; the next broker, on the same loop, waits for its own.
        threads._running.clear()
        self._on_death(self)
