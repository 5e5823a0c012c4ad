"""Consumers of a broker that loses power: in the end they have read exactly the stored records.

With durability=os a power loss drops records that were acknowledged and read, and new records get
their offsets. Consumers notice only by the leader epoch, which changes with each start. With
durability=fsync no acknowledged record is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.simulation.clients.member import TOPIC
from tests.simulation.clients.stock_consumer import StockConsumer
from tests.simulation.machine.crash_states import POWER_LOSSES
from tests.simulation.machine.loop import Process
from tests.simulation.worlds.world import CALM_BEFORE_CHECK_S, World
from wirebroker.base.clock import pause
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from tests.simulation.network.link import Exchange

_MOST_CONSUMERS = 3
# Errors after which a producer retries: there is no leader yet.
_AGAIN = {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


class PowerLossWorld(World):
    """One run with durability=os."""

    SLOWEST_S = (0.02, 0.5)
    STORM_S = (20.0, 80.0)
    STRIKES_PER_S = 0.3

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._acknowledged: dict[tuple[int, int], bytes] = {}
        self._consumers: list[StockConsumer] = []

    def served(self, exchange: Exchange) -> None:
        self.model.count("requests")

    def answered(self, exchange: Exchange, answer: Any) -> None:
        """Do nothing: the consumers record what they receive."""

    # -- the run -----------------------------------------------------------------------------

    def _start_clients(self) -> None:
        for number in range(self.random.randint(1, _MOST_CONSUMERS)):
            self._start_consumer(f"consumer {number}")

    def _start_consumer(self, name: str) -> None:
        process = Process(self.loop, name)
        consumer = StockConsumer(
            process,
            self.network,
            self.model,
            topic=TOPIC,
            partition_count=self._partition_count,
        )
        self._consumers.append(consumer)
        self._watch(process.spawn(consumer.run()))

    async def _strike(self) -> None:
        random = self.random
        strikes: list[tuple[str, Callable[[], Coroutine[Any, Any, None]]]] = [
            ("power losses", lambda: self.host.lose_power(random.choice(POWER_LOSSES))),
            ("power losses", lambda: self.host.lose_power(random.choice(POWER_LOSSES))),
            ("kills", self.host.restart),
            ("clean stops", self.host.stop_and_start),
            ("pauses", lambda: self._suspend(self.host.process, random.uniform(0, 8))),
        ]
        name, strike = random.choice(strikes)
        self.model.count(name)
        await strike()

    def _is_acknowledged(self, result: Any, value: bytes) -> bool:
        if result.error_code == ErrorCode.NONE:
            self._acknowledged[result.index, result.base_offset] = value
            return True
        assert result.error_code in _AGAIN, result
        return False

    # -- calm --------------------------------------------------------------------------------

    async def _settle(self) -> None:
        await pause(CALM_BEFORE_CHECK_S)
        await self._append_to_all()
        self._start_consumer("late consumer")
        await self._until_rest(self._restless, since=self.loop.time())
        *consumers, late = self._consumers
        for partition in range(self._partition_count):
            expected = late.values(partition)
            for consumer in consumers:
                values = consumer.values(partition)
                assert values == expected, (
                    f"{consumer.process.name} has another history of {partition}"
                )
        self._check_acknowledged(late)

    def _restless(self) -> str | None:
        if any(self._behind(consumer) for consumer in self._consumers):
            return "a consumer has more records than the log, or receives no further ones"
        return None

    def _behind(self, consumer: StockConsumer) -> bool:
        partitions, _ = self.host.broker.replicas.find(TOPIC, b"", by_id=False)
        return any(
            len(consumer.values(index)) != partition.log.log_end_offset
            for index, partition in partitions.items()
        )

    def _check_acknowledged(self, late: StockConsumer) -> None:
        for (partition, offset), value in self._acknowledged.items():
            if late.values(partition)[offset : offset + 1] != [value]:
                self.model.count("acknowledged records lost")


class SyncedPowerLossWorld(PowerLossWorld):
    """One run with durability=fsync."""

    DURABILITY = "fsync"

    def _check_acknowledged(self, late: StockConsumer) -> None:
        super()._check_acknowledged(late)
        assert "acknowledged records lost" not in self.model.counts
        assert "consumers that detected a loss" not in self.model.counts
        assert "consumers that restart at the beginning" not in self.model.counts
