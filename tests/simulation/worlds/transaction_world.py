"""Transactional copiers under kills, delays, losses and retries: each record arrives once.

Broker, disk, network and source producer are those of world.py. The seed chooses the finalized
transaction.version, which changes during the copy in some worlds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.simulation.clients.copier import (
    OFFSET_FETCH_VERSION,
    Copier,
    Scene,
    committed,
    group_of,
)
from tests.simulation.clients.member import TOPIC
from tests.simulation.clients.promises import Promises, Source
from tests.simulation.clients.target_reader import TARGET, TARGET_PARTITIONS, TargetReader
from tests.simulation.clients.transactional_producer import SAFE_WHEN_LATE, Client
from tests.simulation.machine.loop import Process
from tests.simulation.network.link import LinkLostError
from tests.simulation.worlds.world import CALM_BEFORE_CHECK_S, CALM_LIMIT_S, World
from wirebroker.base.clock import pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.controller.features.feature_control import TRANSACTION_VERSION
from wirebroker.coordinator.controller.features.feature_updates import UpgradeType

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterable

    from tests.simulation.network.link import Exchange

_HIGHEST_VERSION = 2
_COUNTED = {ApiKey.END_TXN, ApiKey.TXN_OFFSET_COMMIT}


class TransactionWorld(World):
    """One run with a transactional id and a group for each partition of the source.

    Attributes:
        first_version: The transaction.version at the start.
        drops_what_is_late: Whether to drop late requests that no broker could refuse: with
            transaction.version 0 or 1 all transactions of a client have the same epoch.
    """

    LINGERS = (0.03, 0.1)
    STORM_S = (30.0, 90.0)

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.promises = Promises()
        self.drops_what_is_late = True
        self._scene = Scene(self.network, self.model, self.promises)
        self._copiers: dict[Copier, None] = {}
        reader = Process(self.loop, "reader")
        self._reader = TargetReader(reader, self.network, self.promises)
        self._reading: asyncio.Task[None] | None = None
        random = self.random
        self.first_version = random.choice([0, 1, 2, 2])
        self._versions_change = random.random() < 0.2

    # -- network callbacks -------------------------------------------------------------------

    def admits(self, exchange: Exchange) -> bool:
        safe_from = SAFE_WHEN_LATE.get(exchange.key, 0)
        return exchange.version >= safe_from or not self.drops_what_is_late

    def served(self, exchange: Exchange) -> None:
        self.model.count("requests")
        if exchange.is_stale:
            self.model.count(f"stale {exchange.key.name}")

    def answered(self, exchange: Exchange, answer: Any) -> None:
        try:
            self.host.check_groups()
            if exchange.key is ApiKey.OFFSET_FETCH:
                self._check_committed(exchange, answer)
            elif exchange.key is ApiKey.SYNC_GROUP:
                self.model.answered(exchange, answer)
            elif exchange.key in _COUNTED:
                self._count_fences(exchange, answer)
        except AssertionError as error:
            self.failed(error)

    def _check_committed(self, exchange: Exchange, answer: Any) -> None:
        assert exchange.version == OFFSET_FETCH_VERSION
        for partition in answer.topics[0].partitions if answer.error_code == ErrorCode.NONE else ():
            if partition.error_code == ErrorCode.NONE:
                group = exchange.request["group_id"]
                self.promises.fetched(group, partition.partition_index, partition.committed_offset)

    def _count_fences(self, exchange: Exchange, answer: Any) -> None:
        if exchange.key is ApiKey.END_TXN:
            error = answer.error_code
        else:
            error = answer.topics[0].partitions[0].error_code
        if error != ErrorCode.NONE or exchange.is_stale:
            age = "stale " if exchange.is_stale else ""
            self.model.count(f"{age}{exchange.key.name}: {ErrorCode(error).name}")

    # -- the run -----------------------------------------------------------------------------

    async def _prepare(self) -> None:
        await self._finalize(self.first_version)
        self.model.count(f"schedules begun with transaction.version {self.first_version}")
        await self._create(TARGET, TARGET_PARTITIONS)

    def _start_clients(self) -> None:
        self._reading = self._reader.process.spawn(self._reader.run())
        self._watch(self._reading)
        self._start_all()

    async def _finalize(self, level: int) -> None:
        """Set transaction.version; on a bad network it may stay unchanged."""
        present = self.host.broker.metadata.image.features.get(TRANSACTION_VERSION, 0)
        kind = UpgradeType.UPGRADE if level > present else UpgradeType.SAFE_DOWNGRADE
        update = {"feature": TRANSACTION_VERSION, "max_version_level": level, "upgrade_type": kind}
        request = {"feature_updates": [update], "timeout_ms": 30_000}
        link = self.network.open(Process(self.loop, "admin"))
        try:
            answer = await link.ask(ApiKey.UPDATE_FEATURES, 2, request, timeout_s=30)
        except LinkLostError:
            return
        # An earlier request that arrives late may have turned an upgrade into a downgrade.
        assert answer.error_code in {ErrorCode.NONE, ErrorCode.INVALID_UPDATE_VERSION}
        self.model.count(f"UpdateFeatures: {ErrorCode(answer.error_code).name}")

    def _start_all(self) -> None:
        for partition in range(self._partition_count):
            self._start_copier(partition)

    def _start_copier(self, partition: int) -> None:
        """Start an incarnation; an earlier one may still run."""
        self._number += 1
        process = Process(self.loop, f"copier{self._number}")
        copier = Copier(process, self._scene, partition=partition)
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
        if self._versions_change and random.random() < 0.1:
            await self._finalize(random.randint(0, _HIGHEST_VERSION))
        await self._strike_clients()

    async def _strike_clients(self) -> None:
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
        await pause(CALM_BEFORE_CHECK_S)
        began = self.loop.time()
        process = Process(self.loop, "observer")
        client = Client(process, self.network, name="observer")
        ends = self._source_ends()
        for group, partition in self._tasks():
            asking = committed(client, group, partition)
            while (done := await process.spawn(asking)) != ends[partition]:
                await pause(0.5)
                waited = self.loop.time() - began
                assert waited < CALM_LIMIT_S, f"{group}: {done} of {ends[partition]} are copied"
                asking = committed(client, group, partition)
        self.seconds_to_rest = int(self.loop.time() - began)
        await self._check_target()

    async def _check_target(self) -> None:
        """Check that each record is there once, for the storm's reader and for a new one."""
        assert self._reading is not None
        reader = self._reader
        reader.is_over = True
        await self._reading
        process = Process(self.loop, "late reader")
        late = TargetReader(process, self.network, self.promises)
        read_values = await process.spawn(reader.read_all())
        assert read_values == await process.spawn(late.read_all()), "what a reader saw did not stay"
        ends = self._source_ends()
        expected_sources = [
            Source(group, partition, offset)
            for group, partition in self._tasks()
            for offset in range(ends[partition])
        ]
        self.model.counts["records copied"] = self.promises.check_all(read_values, expected_sources)

    def _tasks(self) -> Iterable[tuple[str, int]]:
        return [(group_of(partition), partition) for partition in range(self._partition_count)]

    def _source_ends(self) -> dict[int, int]:
        partitions, _ = self.host.broker.replicas.find(TOPIC, b"", by_id=False)
        return {index: partition.log.log_end_offset for index, partition in partitions.items()}
