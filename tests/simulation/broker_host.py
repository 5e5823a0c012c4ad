"""The broker's machine: kills it between any two steps, or in a write, and starts it again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.simulation.disk import Disk
from tests.simulation.loop import Process, SimulatedClock
from tests.simulation.network import Host
from tests.simulation.simulated_files import SimulatedFiles
from wirebroker.clock import pause
from wirebroker.listeners import listeners_of
from wirebroker.server import Server

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulation.network import Network
    from wirebroker.broker import Broker
    from wirebroker.config import Config

# How soon a broker dies that is to be killed: after some of its steps or writes, or of its time.
_MOST_STEPS = 40
_MOST_WRITES = 6
_LONGEST_AGONY_S = 3.0
_MOST_WRITES_OF_A_START = 30


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

    def _bind(self) -> None:
        for listener in listeners_of(self.config):
            self._sockets.append((listener, _Socket()))  # type: ignore[arg-type]


class BrokerHost:
    """One broker after the other, on the same disk.

    Attributes:
        disk: What outlives them.
        process: The present one.
        deaths: How many there were.
    """

    def __init__(self, network: Network, config: Config, trace: Callable[[str], None]) -> None:
        self.disk = Disk()
        self.process: Process = Process(network.loop, "nobody")
        self.deaths = 0
        self._network = network
        self._config = config
        self._trace = trace
        self._number = 0
        self._files: SimulatedFiles | None = None
        self._server: SimulatedServer | None = None

    @property
    def broker(self) -> Broker:
        """The parts of the broker that serves, or has served last."""
        assert self._server is not None
        assert self._server.broker is not None
        return self._server.broker

    def check(self) -> None:
        """Assert the laws of all that is in the broker."""
        self.check_groups()
        for partition in self.broker.replicas:
            partition.log.check()
        assert self._server is not None
        assert self._server._table is not None
        self._server._table.check()

    def check_groups(self) -> None:
        """Assert the laws of the groups."""
        for shard in self.broker.groups.shards():
            shard.check()

    async def start(self) -> None:
        """Start a broker; one start in five is killed on its way, and done again."""
        random = self._network.random
        while True:
            process, files = self._new_process()
            if self._number > 1 and random.random() < 0.2:
                files.dies_at_write = random.randint(1, _MOST_WRITES_OF_A_START)
            clock = SimulatedClock(self._network.loop)
            server = SimulatedServer(self._config, clock=clock, files=files)
            started = process.spawn(server.start())
            while process.is_alive and not started.done():
                await pause(0.001)
            if process.is_alive:
                started.result()
                break
        files.dies_at_write = None
        self._server, self._files = server, files
        assert server._table is not None
        self._network.host = Host(process, server._table)
        self._trace(f"! {process.name} serves")

    async def restart(self) -> None:
        """Kill the broker somewhere in what it does next, and start it again."""
        random = self._network.random
        process, files = self.process, self._files
        assert files is not None
        died = self._network.loop.create_future()
        on_death = process.on_death

        def note_death() -> None:
            on_death()
            died.set_result(None)

        process.on_death = note_death
        if random.random() < 0.6:
            process.dies_at_step = process.steps + random.randint(1, _MOST_STEPS)
        else:
            files.dies_at_write = files.writes + random.randint(1, _MOST_WRITES)
        await asyncio.wait([died], timeout=_LONGEST_AGONY_S)
        process.kill()
        await pause(random.choice([0.0, 0.2, 4.0]))
        await self.start()

    def _new_process(self) -> tuple[Process, SimulatedFiles]:
        self._number += 1
        process = self.process = Process(self._network.loop, f"broker {self._number}")
        clock = SimulatedClock(self._network.loop)
        files = SimulatedFiles(self.disk, clock, process.kill)

        def on_death() -> None:
            self._trace(f"! {process.name} dies after {process.steps} steps")
            self.deaths += 1
            files.is_dead = True
            self.disk.locks.clear()
            self._network.broker_died()

        process.on_death = on_death
        return process, files
