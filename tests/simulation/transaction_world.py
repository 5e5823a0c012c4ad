"""Copiers in bad luck: whatever is killed, delayed, lost or repeated, each record arrives once."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from tests.simulation.copier import TARGET, TARGET_PARTITIONS, Copier, error_of
from tests.simulation.loop import Process
from tests.simulation.member import TOPIC
from tests.simulation.network import Weather
from tests.simulation.world import World
from wirebroker.clock import pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    import asyncio

    from tests.simulation.network import Exchange

_CALM_LIMIT_S = 300.0
_CALM_BEFORE_CHECK_S = 13.0
_TRANSACTION_TIMEOUT_MS = 20_000


class TransactionWorld(World):
    """One simulated run; the broker, its disk, the network and the producer are the groups'."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._copiers: dict[Copier, None] = {}
        self._committed: dict[str, int] = {}

    def served(self, exchange: Exchange) -> None:
        self.model.count("requests")
        if exchange.is_stale:
            self.model.count(f"stale {exchange.key.name}")

    def answered(self, exchange: Exchange, answer: Any) -> None:
        try:
            self.host.check_groups()
            if exchange.key is ApiKey.OFFSET_FETCH:
                self._check_committed(exchange, answer)
            if exchange.is_stale and exchange.key is ApiKey.END_TXN:
                self.model.count(f"stale END_TXN: {ErrorCode(answer.error_code).name}")
        except AssertionError as error:
            self.failed(error)

    def _check_committed(self, exchange: Exchange, answer: Any) -> None:
        """Transactions of one id come one after the other, so offsets only rise."""
        if error_of(exchange.key, answer) != ErrorCode.NONE:
            return
        group, offset = exchange.request["group_id"], answer.topics[0].partitions[0]
        before = self._committed.get(group, -1)
        assert offset.committed_offset >= before, f"{group} goes back from {before}: {offset}"
        self._committed[group] = offset.committed_offset

    async def _run(self) -> None:
        random = self.random
        await self.host.start()
        await self._create_topic()
        await self._create_target()
        producer = Process(self.loop, "producer")
        self._watch(producer.spawn(self._produce(producer)))
        for partition in range(self._partition_count):
            self._start_copier(partition)
        self.network.weather = Weather(
            slowest_s=random.choice([0.02, 0.5, 6.0]),
            request_lost=random.choice([0.0, 0.02]),
            answer_lost=random.choice([0.0, 0.02]),
            lingers=random.choice([0.03, 0.1]),
        )
        storm_ends = self.loop.time() + random.uniform(30, 90)
        while self.loop.time() < storm_ends:
            await pause(random.expovariate(0.4))
            await self._strike()
        producer.kill()
        await self._settle()

    async def _create_target(self) -> None:
        topic = {"name": TARGET, "num_partitions": TARGET_PARTITIONS, "replication_factor": 1}
        link = self.network.open(Process(self.loop, "admin"))
        request = {"topics": [topic], "timeout_ms": 30_000}
        answer = await link.ask(ApiKey.CREATE_TOPICS, 7, request, timeout_s=30)
        assert answer.topics[0].error_code == ErrorCode.NONE

    def _start_copier(self, partition: int) -> None:
        """Start an incarnation; one before it may still be there."""
        self._number += 1
        process = Process(self.loop, f"copier{self._number}")
        copier = Copier(
            process,
            self.network,
            self.model,
            partition=partition,
            timeout_ms=_TRANSACTION_TIMEOUT_MS,
        )
        self._copiers[copier] = None
        task = process.spawn(copier.run())
        self._watch(task)

        def ended(_: asyncio.Task[None]) -> None:
            self._copiers.pop(copier, None)
            if not any(other.partition == partition for other in self._copiers):
                self._start_copier(partition)

        task.add_done_callback(ended)

    async def _strike(self) -> None:
        random = self.random
        partition = random.randrange(self._partition_count)
        luck = random.random()
        if luck < 0.3:
            await self.host.restart()
        elif luck < 0.4:
            await self._suspend(self.host.process, random.uniform(0, 8))
        elif luck < 0.6:
            self._start_copier(partition)
        else:
            copier = random.choice(list(self._copiers))
            if luck < 0.8:
                await self._suspend(copier.process, random.uniform(0, 30))
            else:
                self._kill_copier(copier)

    def _kill_copier(self, copier: Copier) -> None:
        self.note(f"! {copier.process.name} is killed")
        self._copiers.pop(copier, None)
        copier.process.kill()
        self.network.client_died(copier.process)
        if not any(other.partition == copier.partition for other in self._copiers):
            self._start_copier(copier.partition)

    # -- calm --------------------------------------------------------------------------------

    async def _settle(self) -> None:
        """Check that everything is copied, once, in both targets."""
        self.note("! calm")
        self.network.weather = Weather()
        await pause(_CALM_BEFORE_CHECK_S)
        began = self.loop.time()
        ends = self._source_ends()
        process = Process(self.loop, "reader")
        readers = [
            Copier(process, self.network, self.model, partition=partition, timeout_ms=1)
            for partition in ends
        ]
        for reader in readers:
            end = ends[reader.partition]
            while (done := await process.spawn(reader.committed())) != end:
                await pause(0.5)
                waited = self.loop.time() - began
                assert waited < _CALM_LIMIT_S, f"{done} of {end} of {reader.name} are copied"
        self.seconds_to_rest = int(self.loop.time() - began)
        wanted = Counter(
            b"%d/%d" % (partition, offset)
            for partition, end in ends.items()
            for offset in range(end)
        )
        for index in range(TARGET_PARTITIONS):
            found = Counter(await process.spawn(readers[0].read_target(index)))
            lost, more = wanted - found, found - wanted
            assert not lost, f"{len(lost)} records are lost in {index}: {list(lost)[:3]}"
            assert not more, f"{len(more)} records are there twice in {index}: {list(more)[:3]}"
        self.model.counts["records copied"] = wanted.total()
        self.host.check()

    def _source_ends(self) -> dict[int, int]:
        found, _ = self.host.broker.replicas.find(TOPIC, b"", by_id=False)
        return {index: partition.log.log_end_offset for index, partition in found.items()}
