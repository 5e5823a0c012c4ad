"""No request holds the event loop for long, however many names it has and however long they are.

Every request that can name many things is sent with many names, with a name that is repeated, with
long names, and likewise with many numbers of partitions. What is counted are the lines that run
between two waits of the loop (tests/support/step_counter.py): the same on every machine. The broker
has something of each kind, so that a repeated name would be answered with something each time.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.support.raw_client import BlockingClient, request_frame
from tests.support.servers import ONE_NODE, broker_of, running
from tests.support.step_counter import CountedClock, StepCounter
from tests.support.transactional_producer import TransactionalProducer
from tests.unit.wirebroker.large_requests import (
    GROUP,
    LARGE_REQUESTS,
    NAMELESS,
    TOPIC,
    TRANSACTIONAL_ID,
    LargeRequest,
    known_name,
)
from wirebroker.api import commit_portions
from wirebroker.api.modules import API_MODULES
from wirebroker.api.registry import registered_keys
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

for _module in API_MODULES:  # each handler registers itself
    importlib.import_module(f"wirebroker.api.{_module}")

MANY_NAMES = 3_000
MANY_INDEXES = 20_000
LONG_NAME_LENGTH = 32_000
PARTITIONS = 50

# Two slices of 5,000 lines, and what comes before and after them; and the pass that Python's own
# functions make over what a request names.
MOST_LINES = 13_000
MOST_LINES_A_NAME = 1.2


class Case(NamedTuple):
    """What a request is filled with."""

    name: str
    names: list[str]
    indexes: list[int]

    @property
    def size(self) -> int:
        """How many things the request names."""
        return len(self.names) * len(self.indexes)


def cases_of(request: LargeRequest) -> Iterator[Case]:
    """Yield what a request is filled with."""
    count = min(MANY_NAMES, request.most_names)
    known = known_name(request)
    if count > 1:
        yield Case("many names", [f"a-name-of-usual-length-{n}" for n in range(count)], [0])
        yield Case("a repeated name", [known] * count, [0])
        yield Case("long names", [f"{n}".ljust(LONG_NAME_LENGTH, "x") for n in range(3)], [0])
    if request.has_indexes:
        yield Case("many partitions", [TOPIC], list(range(MANY_INDEXES)))
        yield Case("a repeated partition", [TOPIC], [0] * MANY_INDEXES)


class CountedBroker:
    """A broker whose work is counted, and a client of it in a thread of its own."""

    def __init__(self, counter: StepCounter, client: BlockingClient) -> None:
        self.counter = counter
        self._client = client

    async def ask(self, key: ApiKey, version: int, request: dict[str, Any]) -> Any:
        """Return a decoded answer; nothing is counted."""
        return await asyncio.to_thread(self._client.ask, key, version, request)

    async def count(self, request: LargeRequest, names: list[str], indexes: list[int]) -> bytes:
        """Send a request, count what it costs, and return the answer as it came."""
        frame = request_frame(request.key, request.version, request.make(names, indexes))
        with self.counter:
            return await asyncio.to_thread(self._client.exchange, frame)


@contextlib.asynccontextmanager
async def counted_broker(directory: Path) -> AsyncIterator[CountedBroker]:
    """Run a broker with a topic, a group that has read it, and a transaction that writes to it."""
    counter = StepCounter()
    settings = {**ONE_NODE, "controller.mutation.rate.window.size.seconds": "1"}
    clock = CountedClock(counter)
    async with running(directory, settings=settings, clock=clock) as server:
        client = await asyncio.to_thread(BlockingClient, server.address)
        broker = CountedBroker(counter, client)
        topic = {"name": TOPIC, "num_partitions": PARTITIONS, "replication_factor": 1}
        created = await broker.ask(
            ApiKey.CREATE_TOPICS, 7, {"topics": [topic], "timeout_ms": 30_000}
        )
        assert created.topics[0].error_code == 0
        for kind, name in ((0, GROUP), (1, TRANSACTIONAL_ID)):
            await _until_coordinated(broker, kind, name)
        await _commit(broker)
        assert broker_of(server).groups.partitions()
        await _begin_transaction(broker)
        yield broker
        client.close()


async def _until_coordinated(broker: CountedBroker, kind: int, name: str) -> None:
    request = {"key_type": kind, "coordinator_keys": [name]}
    while (await broker.ask(ApiKey.FIND_COORDINATOR, 4, request)).coordinators[0].error_code:
        pass


async def _commit(broker: CountedBroker) -> None:
    offsets = [
        {"partition_index": index, "committed_offset": 1, "committed_metadata": "m" * 100}
        for index in range(PARTITIONS)
    ]
    request = {"group_id": GROUP, "topics": [{"name": TOPIC, "partitions": offsets}]}
    while True:
        answer = await broker.ask(ApiKey.OFFSET_COMMIT, 8, request)
        errors = {each.error_code for each in answer.topics[0].partitions}
        if errors == {0}:
            return
        assert errors <= {14, 15, 16}, errors  # it is being loaded


async def _begin_transaction(broker: CountedBroker) -> None:
    producer = TransactionalProducer(TRANSACTIONAL_ID)
    while (answer := await broker.ask(*producer.init())).error_code:
        assert answer.error_code in {14, 15, 16}
    producer.become(answer)
    await broker.ask(*producer.add_partitions(TOPIC, range(PARTITIONS)))


def test_every_request_is_tried():
    tried = {request.key for request in LARGE_REQUESTS}
    assert tried | NAMELESS == set(registered_keys())
    assert not tried & NAMELESS


@pytest.mark.patience(500)
async def test_no_request_holds_the_loop(tmp_path, monkeypatch):
    # A line is given a microsecond here, ten times what it takes.
    monkeypatch.setattr(commit_portions, "_AT_ONCE", 50)
    held: list[str] = []
    async with counted_broker(tmp_path) as broker:
        for request in LARGE_REQUESTS:
            for case in cases_of(request):
                await broker.count(request, case.names, case.indexes)
                lines = broker.counter.longest_turn
                if lines > MOST_LINES + MOST_LINES_A_NAME * case.size:
                    held.append(f"{request.key.name} {request.version}, {case.name}: {lines} lines")
    assert not held, "\n".join(held)
