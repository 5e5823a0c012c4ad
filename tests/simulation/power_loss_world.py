"""Consumers of a broker that loses power: what they have read is what there is, in the end.

With durability=os a power loss takes back records that were acknowledged and read, and new ones
come to stand at their offsets. Consumers cannot see that but by the leader epoch, which is another
one after each start. With durability=fsync nothing that anybody was told of is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.crash.crash_states import POWER_LOSSES
from tests.simulation.link import Exchange, LinkLostError
from tests.simulation.loop import Process
from tests.simulation.member import TOPIC
from tests.simulation.network import Weather
from tests.simulation.stock_consumer import StockConsumer
from tests.simulation.world import World
from tests.support.batches import batch
from tests.support.requests import PRODUCE_VERSION, produce_request
from wirebroker.clock import pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

_CALM_LIMIT_S = 120.0
_CALM_BEFORE_CHECK_S = 13.0
_MOST_CONSUMERS = 3
# A producer asks again when there is no leader yet.
_AGAIN = {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


class PowerLossWorld(World):
    """One run with durability=os."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._acknowledged: dict[tuple[int, int], bytes] = {}
        self._consumers: list[StockConsumer] = []

    def served(self, exchange: Exchange) -> None:
        self.model.count("requests")

    def answered(self, exchange: Exchange, answer: Any) -> None:
        """Nothing is known of answers but what clients make of them."""

    # -- the run -----------------------------------------------------------------------------

    async def _run(self) -> None:
        random = self.random
        await self.host.start()
        await self._create_topic()
        producer = Process(self.loop, "producer")
        self._watch(producer.spawn(self._produce(producer)))
        for number in range(random.randint(1, _MOST_CONSUMERS)):
            self._start_consumer(f"consumer {number}")
        self.network.weather = Weather(
            slowest_s=random.choice([0.02, 0.5]),
            request_lost=random.choice([0.0, 0.02]),
            answer_lost=random.choice([0.0, 0.02]),
            lingers=random.choice([0.0, 0.03]),
        )
        storm_ends = self.loop.time() + random.uniform(20, 80)
        while self.loop.time() < storm_ends:
            await pause(random.expovariate(0.3))
            await self._strike()
        producer.kill()
        await self._settle()

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

    async def _append(self, process: Process, partition: int) -> None:
        """Append a record; again until it is acknowledged, so it may be there twice."""
        self._number += 1
        value = f"value {self._number}".encode()
        records = batch(value, timestamp_ms=self.clock.now_ms())
        request = produce_request({(TOPIC, partition): records})
        while True:
            link = self.network.open(process)
            try:
                answer = await link.ask(ApiKey.PRODUCE, PRODUCE_VERSION, request, timeout_s=5)
            except LinkLostError:
                await pause(0.1)
                continue
            link.close()
            result = answer.responses[0].partition_responses[0]
            if result.error_code == ErrorCode.NONE:
                self._acknowledged[partition, result.base_offset] = value
                return
            assert result.error_code in _AGAIN, result
            await pause(0.1)

    # -- calm --------------------------------------------------------------------------------

    async def _settle(self) -> None:
        """Check that every consumer has what there is, all of it and nothing else."""
        self.note("! calm")
        self.network.weather = Weather()
        await pause(_CALM_BEFORE_CHECK_S)
        producer = Process(self.loop, "last producer")
        for partition in range(self._partition_count):
            await producer.spawn(self._append(producer, partition))
        self._start_consumer("late consumer")
        began = self.loop.time()
        while any(self._behind(consumer) for consumer in self._consumers):
            await pause(0.5)
            waited = self.loop.time() - began
            assert waited < _CALM_LIMIT_S, "a consumer has more than there is, or gets no more"
        self.seconds_to_rest = int(self.loop.time() - began)
        *consumers, late = self._consumers
        for partition in range(self._partition_count):
            there = late.values(partition)
            for consumer in consumers:
                found = consumer.values(partition)
                assert found == there, f"{consumer.process.name} has another history of {partition}"
        self._check_acknowledged(late)
        self.host.check()

    def _behind(self, consumer: StockConsumer) -> bool:
        found, _ = self.host.broker.replicas.find(TOPIC, b"", by_id=False)
        return any(
            len(consumer.values(index)) != partition.log.log_end_offset
            for index, partition in found.items()
        )

    def _check_acknowledged(self, late: StockConsumer) -> None:
        """Count what is lost: nothing was promised."""
        for (partition, offset), value in self._acknowledged.items():
            if late.values(partition)[offset : offset + 1] != [value]:
                self.model.count("acknowledged records lost")


class SyncedPowerLossWorld(PowerLossWorld):
    """One run with durability=fsync."""

    DURABILITY = "fsync"

    def _check_acknowledged(self, late: StockConsumer) -> None:
        super()._check_acknowledged(late)
        assert "acknowledged records lost" not in self.model.counts
        assert "consumers told of a loss" not in self.model.counts
        assert "consumers that begin anew" not in self.model.counts
