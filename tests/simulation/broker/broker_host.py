"""The broker's machine: kills it between any two steps or in a write, and restarts it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.simulation.broker.broker_life import BrokerLife
from tests.simulation.machine.crash_states import crash
from tests.simulation.machine.disk import Disk
from tests.simulation.machine.loop import Process
from tests.simulation.network.polled import PolledTransports
from wirebroker.base.clock import pause

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulation.machine.crash_states import CrashKind
    from tests.simulation.network.network import Network
    from wirebroker.api.broker import Broker
    from wirebroker.config import Config

# Limits until a broker's death: its steps, its writes, or time.
_MOST_STEPS = 40
_MOST_WRITES = 6
_LONGEST_AGONY_S = 3.0
_MOST_WRITES_OF_A_START = 30
# Share of loops with a poller; the others notify each connection by itself.
_POLLED = 0.7


class BrokerHost:
    """Successive brokers on the same disk.

    Attributes:
        process: The current broker's process.
        deaths: The number of deaths.
    """

    def __init__(self, network: Network, config: Config, trace: Callable[[str], None]) -> None:
        self.disk = Disk()
        self.process: Process = Process(network.loop, "nobody")
        self.deaths = 0
        self._network = network
        self._config = config
        self._trace = trace
        self._number = 0
        # The current or last one.
        self._life: BrokerLife | None = None

    @property
    def broker(self) -> Broker:
        assert self._life is not None
        return self._life.broker

    def check(self) -> None:
        self.check_groups()
        for partition in self.broker.replicas:
            partition.log.check()
        assert self._life is not None
        self._life.table.check()

    def check_groups(self) -> None:
        for shard in self.broker.groups.shards():
            shard.check()

    async def start(self) -> None:
        """Start a broker; some starts are killed and repeated."""
        random = self._network.random
        while True:
            life = self._new_life()
            if self._number > 1 and random.random() < 0.2:
                life.files.dies_at_write = random.randint(1, _MOST_WRITES_OF_A_START)
            process = life.process
            started = process.spawn(life.server.start())
            while process.is_alive and not started.done():
                await pause(0.001)
            if process.is_alive:
                started.result()
                break
        life.files.dies_at_write = None
        self._life = life
        is_polled = random.random() < _POLLED
        polled = PolledTransports(life.process, random) if is_polled else None
        self._network.host = life.host(polled)
        self._trace(f"! {process.name} serves")

    async def restart(self) -> None:
        """Kill the broker during its next steps, and restart it."""
        await self._die_soon()
        await pause(self._network.random.choice([0.0, 0.2, 4.0]))
        await self.start()

    async def lose_power(self, kind: CrashKind) -> None:
        """Cut the machine's power during the broker's next steps, and restart it."""
        await self._die_soon()
        self.disk = crash(self.disk, kind, self._network.random)
        self._trace(f"! {kind}")
        await pause(self._network.random.choice([0.0, 0.2, 4.0]))
        await self.start()

    async def stop_and_start(self) -> None:
        assert self._life is not None
        process = self.process
        await process.spawn(self._life.server.stop())
        process.kill()
        await self.start()

    async def _die_soon(self) -> None:
        random = self._network.random
        assert self._life is not None
        process, files = self.process, self._life.files
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

    def _new_life(self) -> BrokerLife:
        self._number += 1
        life = BrokerLife(
            self._network.loop,
            self.disk,
            self._config,
            name=f"broker {self._number}",
            on_death=self._note_death,
        )
        self.process = life.process
        return life

    def _note_death(self, life: BrokerLife) -> None:
        self._trace(f"! {life.process.name} dies after {life.process.steps} steps")
        self.deaths += 1
        self._network.broker_died()
