"""The fast path of repeated Produce requests against the normal one: two brokers, same requests.

One gets them all on one connection, the other each on a new one, without remembered state.
Responses and log files must be identical. Topics, settings and requests: repeated_requests.py.
"""

from __future__ import annotations

import errno
from contextlib import AsyncExitStack, contextmanager
from typing import TYPE_CHECKING

from tests.property.repeated_requests import PARTITIONS, TOPICS, Request, RequestMaker
from tests.support.brokers.produce_line import FixedClock, ProduceLine, logs_below
from tests.support.brokers.servers import client_of, memory_directory, running
from tests.support.harness.budget import SharedBudget
from tests.support.protocol.requests import create_topic, delete_topic
from tests.support.records.batches import TIMESTAMP_MS
from tests.support.replicas.roles import lead, offline
from tests.support.storage.failing_files import FailingFiles
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from random import Random

    import pytest

    from tests.support.protocol.raw_client import RawClient


class _Twin:
    def __init__(
        self, path: Path, disk: FailingFiles, client: RawClient, line: ProduceLine
    ) -> None:
        self.path = path
        self.disk = disk
        self.client = client
        self.line = line
        self.ids: dict[str, bytes] = {}

    async def make(self, topic: str) -> None:
        self.ids[topic] = await create_topic(self.client, topic, PARTITIONS, **TOPICS[topic])

    async def make_again(self, topic: str) -> None:
        await delete_topic(self.client, topic)
        await self.make(topic)

    async def send(self, request: Request) -> bytes | str:
        """Return the response, or the error that closed the connection."""
        answer = await self.line.outcome(request.for_broker(self.ids))
        return answer if isinstance(answer, str) else request.as_made(answer, self.ids)

    async def alter(self, topic: str, name: str, value: str | None) -> None:
        """Set a topic's config; None restores the default."""
        value = value or TOPICS[topic].get(name.replace(".", "_"))
        operation = 1 if value is None else 0
        entry = {"name": name, "config_operation": operation, "value": value}
        resource = {"resource_type": 2, "resource_name": topic, "configs": [entry]}
        request = {"resources": [resource], "validate_only": False}
        answer = await self.client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
        assert answer.responses[0].error_code == 0, answer

    @contextmanager
    def trouble(self, kind: int, topic: str) -> Iterator[None]:
        """Put a topic's first partition into a state in which it accepts (almost) nothing."""
        partition = self.line.partition(topic)
        match kind:
            case 0:
                partition.resign()
                yield
                lead(partition)
            case 1:
                # The other replica never fetches; a leader that is alone again commits all.
                lead(partition, replicas=(1, 2), isr=(1,))
                yield
                lead(partition)
            case 2:
                with offline(partition.directory):
                    yield
            case _:
                self.disk.fail(self.path / topic, "write")
                yield
                self.disk.broken.clear()


# Configs that change between requests; None is the default.
_SETTINGS = {
    "max.message.bytes": ("150", "2000", None, None),
    "message.timestamp.type": ("LogAppendTime", "CreateTime", None),
    "flush.messages": ("1", None, None),
    "message.timestamp.after.max.ms": ("1000", None),
    "segment.bytes": ("1048576", None),
    "compression.type": ("gzip", "producer", None),
}


async def _change(random: Random, twins: tuple[_Twin, _Twin]) -> None:
    topic = random.choice(list(TOPICS))
    if random.random() < 0.2:
        for twin in twins:
            await twin.make_again(topic)
        return
    name = random.choice(list(_SETTINGS))
    value = random.choice(_SETTINGS[name])
    for twin in twins:
        for setting in _SETTINGS if value is None else (name,):
            await twin.alter(topic, setting, value)


async def _serve(stack: AsyncExitStack, path: Path, *, has_memory: bool) -> _Twin:
    clock = FixedClock(TIMESTAMP_MS + 1_000)
    disk = FailingFiles()
    disk.error_number = errno.ENOSPC
    server = await stack.enter_async_context(
        running(path, settings={"log.cleaner.enable": "false"}, clock=clock, files=disk)
    )
    client = await stack.enter_async_context(client_of(server))
    twin = _Twin(path, disk, client, ProduceLine(server, has_memory=has_memory))
    for topic in TOPICS:
        await twin.make(topic)
    return twin


async def test_fast_and_full_path_respond_and_store_the_same(
    pytestconfig: pytest.Config, tmp_path: Path
) -> None:
    budget = SharedBudget(pytestconfig, seconds=5)
    random = budget.random
    maker = RequestMaker(random)

    async def compare(rounds: int, fast: _Twin, full: _Twin) -> None:
        for _ in range(rounds):
            request = maker.next_request()
            expected = await full.send(request)
            assert await fast.send(request) == expected, (request, budget.seed)

    async def run(path: Path) -> None:
        async with AsyncExitStack() as stack:
            fast = await _serve(stack, path / "fast", has_memory=True)
            full = await _serve(stack, path / "full", has_memory=False)
            for _ in budget.rounds():
                await compare(40, fast, full)
                kind = random.randrange(4)
                with fast.trouble(kind, maker.topic), full.trouble(kind, maker.topic):
                    await compare(3, fast, full)
                await compare(20, fast, full)
                await _change(random, (fast, full))
                assert logs_below(fast.path) == logs_below(full.path), budget.seed
            assert full.line.short_count == 0
            assert fast.line.short_count > 0

    with memory_directory(tmp_path) as path:
        for name in ("fast", "full"):
            (path / name).mkdir()
        await run(path)
