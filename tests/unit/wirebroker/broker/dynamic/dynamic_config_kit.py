"""A broker whose configs change while it runs, and the table of probes."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from typing import TYPE_CHECKING, Any
from unittest import mock

from tests.support.brokers.servers import broker_of, client_of, running
from tests.support.protocol.requests import append, create_topic, produce
from tests.support.records.batches import batch
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.config import Config
from wirebroker.config.rows.row import ConfigType, Mutability
from wirebroker.config.table import BROKER_ROWS
from wirebroker.maintenance.compaction_child import Done

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from tests.support.protocol.raw_client import RawClient
    from wirebroker.broker.server import Server
    from wirebroker.config.rows.row import ConfigRow, ConfigValue
    from wirebroker.maintenance.compaction_child import News
    from wirebroker.maintenance.compaction_order import Limits
    from wirebroker.replica.partition import Partition
    from wirebroker.storage.compaction.compaction import CompactionJob

    Probe = Callable[["World"], Awaitable[None]]

DAY_MS = 86_400_000
PROBES: dict[str, Probe] = {}


class World:
    """A broker, its administrator, and shortcuts to observe it."""

    def __init__(self, server: Server, client: RawClient, path: Path) -> None:
        self.server = server
        self.broker = broker_of(server)
        self.client = client
        self.path = path
        assert server.compactor is not None
        assert server._maintenance is not None
        self.compactor = server.compactor
        self.maintenance = server._maintenance
        self.jobs: list[tuple[CompactionJob, Limits]] = []
        self.compactor._run = self._note_job

    async def change(self, *changes: tuple[str, str], broker: str = "1") -> ErrorCode:
        """Set configs of this broker, or of all brokers if the name is empty."""
        entries = [{"name": n, "config_operation": 0, "value": v} for n, v in changes]
        resource = {"resource_type": 4, "resource_name": broker, "configs": entries}
        answer = await self.client.ask(
            ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, {"resources": [resource]}
        )
        return ErrorCode(answer.responses[0].error_code)

    async def set(self, *changes: tuple[str, str]) -> None:
        """Set configs, for all brokers where this is allowed."""
        of_one = any(BROKER_ROWS[n].mutability is Mutability.PER_BROKER for n, _ in changes)
        assert await self.change(*changes, broker="1" if of_one else "") is ErrorCode.NONE

    async def topic(self, name: str = "t", **configs: str) -> Partition:
        await create_topic(self.client, name, **configs)
        return self.partition(name)

    def partition(self, name: str = "t") -> Partition:
        return self.broker.replicas.find(name, b"", by_id=False)[0][0]

    def now_ms(self) -> int:
        return self.broker.clock.now_ms()

    async def append(self, *values: bytes, topic: str = "t", **batch_fields: Any) -> int:
        records = batch(
            *(values or (b"v",)), timestamp_ms=batch_fields.pop("at", self.now_ms()), **batch_fields
        )
        return await append(self.client, topic, records)

    async def error_of(self, records: bytes, *, topic: str = "t") -> ErrorCode:
        return ErrorCode((await produce(self.client, topic, records)).error_code)

    async def _note_job(self, job: CompactionJob, limits: Limits) -> AsyncGenerator[News, None]:
        self.jobs.append((job, limits))
        await asyncio.Event().wait()
        yield Done(0)


@contextlib.asynccontextmanager
async def world(path: Path) -> AsyncIterator[World]:
    settings = {
        "log.cleaner.backoff.ms": str(DAY_MS),
        "log.flush.scheduler.interval.ms": str(DAY_MS),
        "transaction.state.log.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
    }
    async with running(path, settings=settings) as server, client_of(server) as client:
        yield World(server, client, path)


def probe(*names: str) -> Callable[[Probe], Probe]:

    def register(function: Probe) -> Probe:
        for name in names:
            assert name not in PROBES
            PROBES[name] = function
        return function

    return register


async def is_noticed(world: World, name: str) -> None:
    row = BROKER_ROWS[name]
    partition = await world.topic()
    text = _another(row, world.broker.config.value(name))
    read_values: set[ConfigValue] = set()
    original = Config.value

    def value(config: Config, requested_name: str) -> ConfigValue:
        current = original(config, requested_name)
        if requested_name == name and _reader().startswith("wirebroker."):
            read_values.add(current)
        return current

    with mock.patch.object(Config, "value", value):
        await world.set((name, text))
    if row.topic_name is not None:
        read_values = {getattr(partition.log.settings, row.topic_name.replace(".", "_"))}
    assert row.parse(text) in read_values, (
        f"nothing read {name} as it changed: say by what one sees it"
    )


def _reader() -> str:
    """Return the module that read a config's value."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("wirebroker.config"):
        frame = frame.f_back
    return str(frame.f_globals["__name__"])


def _another(row: ConfigRow, value: ConfigValue) -> str:
    """Return a text for another value that the row allows."""
    if row.choices:
        current_choices = value if isinstance(value, tuple) else (value,)
        return next(choice for choice in row.choices if choice not in current_choices)
    if row.type is ConfigType.BOOLEAN:
        return "false" if value else "true"
    minimum = 0 if row.at_least is None else row.at_least
    if value is None:
        return str(minimum + 1)
    assert isinstance(value, int | float), f"{row.name} has its own form: it needs a probe"
    if row.type is ConfigType.DOUBLE:
        return str((value + minimum) / 2 if value > minimum else value * 2)
    return str(value - 1 if value > minimum else value + 1)
