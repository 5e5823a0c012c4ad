"""A broker with a compactor, and logs for it."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from tests.support.brokers.servers import broker_of, client_of, running
from tests.support.protocol.requests import create_topic
from tests.support.storage.compaction import append, records_of
from wirebroker.codecs.records.batch import build_batch
from wirebroker.maintenance.compaction_child import (
    CompactionProgress,
    run_here,
)
from wirebroker.maintenance.compaction_order import Limits
from wirebroker.maintenance.compaction_worker import work
from wirebroker.maintenance.compactor import Compactor
from wirebroker.storage.checkpoints import CLEANER_CHECKPOINT
from wirebroker.storage.compaction.compaction import CleanedGroup
from wirebroker.storage.files import Files

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator
    from pathlib import Path

    from tests.support.protocol.raw_client import RawClient
    from wirebroker.broker.server import Server
    from wirebroker.maintenance.compaction_child import News, Run
    from wirebroker.replica.partition import Partition
    from wirebroker.storage.compaction.compaction import CompactionJob


NOW = 1_700_000_000_000
COMPACTED = {"cleanup.policy": "compact"}
LIMITS = Limits(1 << 20, 0.9, 1e300)


class Kit:
    """A broker whose logs are compacted on the test's request."""

    def __init__(self, server: Server, client: RawClient, path: Path, run: Run | None) -> None:
        self.broker = broker_of(server)
        self.server = server
        self.client = client
        self.path = path
        files = server.files
        self.compactor = Compactor(self.broker, files, run or run_here(files))

    async def topic(self, name: str, **configs: str) -> Partition:
        await create_topic(self.client, name, **{**COMPACTED, **configs})
        return self.partition(name)

    def partition(self, name: str) -> Partition:
        return self.broker.replicas.find(name, b"", by_id=False)[0][0]

    async def compact(self) -> list[bool]:
        return [await task for task in await self.compactor.start_due()]

    def checkpoint(self) -> str:
        return (self.path / CLEANER_CHECKPOINT).read_text()


@contextlib.asynccontextmanager
async def kit(
    path: Path, *, run: Run | None = None, files: Files | None = None, **settings: str
) -> AsyncIterator[Kit]:
    configs = {name.replace("_", "."): value for name, value in settings.items()}
    async with (
        running(path, settings={"log.cleaner.enable": "false", **configs}, files=files) as server,
        client_of(server) as client,
    ):
        yield Kit(server, client, path, run)


def fill(partition: Partition, *, segments: int = 3, per_segment: int = 2) -> None:
    log = partition.log
    for _ in range(segments):
        for number in range(per_segment):
            batch = build_batch([(b"key", b"%d" % number, ())], timestamp_ms=NOW)
            append(log, batch, now_ms=NOW)
        log.roll(now_ms=NOW)
    append(log, build_batch([(b"active", b"", ())], timestamp_ms=NOW), now_ms=NOW)


def offsets(partition: Partition) -> list[int]:
    return [record.offset for record in records_of(partition.log)]


def cleaned_files(partition: Partition) -> list[str]:
    names = Files().list_directory(partition.log.directory)
    return [name for name in names if "cleaned" in name or "swap" in name]


async def fail(error: Exception) -> AsyncGenerator[News, None]:
    yield CompactionProgress(1)
    raise error


class Meanwhile:
    def __init__(self) -> None:
        self.is_written = asyncio.Event()
        self.go_on = asyncio.Event()

    async def __call__(self, job: CompactionJob, limits: Limits) -> AsyncGenerator[News, None]:
        async with contextlib.aclosing(run_here(Files())(job, limits)) as worker:
            async for news in worker:
                if isinstance(news, CleanedGroup):
                    self.is_written.set()
                    await self.go_on.wait()
                yield news


def messages_of(job: CompactionJob, *, broker: int) -> list[dict[str, Any]]:
    sent: list[dict[str, Any]] = []
    work(job, LIMITS, broker, sent.append)
    return sent
