"""The data side of the console on wirebroker and Apache Kafka, with the same tests."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import confluent_kafka
import pytest

from compat_tests.conftest import new_topic_name
from tests.support.brokers.brokers import make_broker
from tests.support.brokers.collectors import collecting, snapshot_when
from tests.support.tools.waiting import PATIENCE_S
from wirebroker.client.groups.groups import commit
from wirebroker.client.topics.leaders import TopicPartition
from wirebroker.client.topics.topics import create_topics
from wirebroker.console.model import details
from wirebroker.console.model.snapshot import ClusterStatus
from wirebroker.console.records.pages import read_page
from wirebroker.console.records.queries import ReadQuery, SearchQuery
from wirebroker.console.records.search import search

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from tests.support.brokers.brokers import Broker


@pytest.fixture(
    scope="module", params=["wirebroker", pytest.param("apache", marks=pytest.mark.java)]
)
def shown(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator:
    with make_broker(request.param, tmp_path_factory.mktemp("broker")) as running:
        yield running


@contextlib.asynccontextmanager
async def consuming(broker: Broker, topic: str, group: str, protocol: str) -> AsyncIterator[None]:
    """Poll a consumer in a thread, which commits what it reads."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "client.id": "billing-1",
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 100,
        }
    )
    consumer.subscribe([topic])
    is_over = asyncio.Event()

    async def poll() -> None:
        while not is_over.is_set():
            await asyncio.to_thread(consumer.poll, 0.1)

    task = asyncio.create_task(poll())
    try:
        yield
    finally:
        is_over.set()
        await task
        await asyncio.to_thread(consumer.close)


def produce(broker: Broker, topic: str, count: int, **settings: str) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap, **settings})
    for number in range(count):
        headers: list[tuple[str, str | bytes | None]] = [("trace", f"t{number}")]
        value = f'{{"order": {number}}}'
        producer.produce(topic, value, key=str(number), headers=headers, partition=number % 2)
    assert producer.flush(30) == 0


async def test_topics_brokers_and_quorum(shown: Broker) -> None:
    topic = new_topic_name()
    async with collecting(shown.bootstrap) as c:
        await create_topics(c.client, {topic: 2}, configs={})
        await asyncio.to_thread(produce, shown, topic, 100)
        snapshot = await snapshot_when(
            c,
            lambda s: (
                s.is_complete
                and topic in s.topics
                and s.topics[topic].record_count == 100
                and s.topics[topic].size_bytes
            ),
        )
        assert snapshot.status is ClusterStatus.OK
        assert [partition.end_offset for partition in snapshot.topics[topic].partitions] == [50, 50]
        (broker,) = snapshot.brokers.values()
        assert (broker.is_controller, broker.version) == (True, "4.4")
        assert broker.log_dirs[0].size_bytes > 0
        assert snapshot.quorum is not None
        assert snapshot.quorum.failure is None
        assert not [problem for problem in snapshot.problems if problem.kind != "group"]
        configs = {config.name: config for config in await details.configs(c, "topic", topic)}
        assert configs["retention.ms"].type == "long"
        assert configs["retention.ms"].documentation


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_a_group_with_a_member(shown: Broker, protocol: str) -> None:
    topic, group = new_topic_name(), new_topic_name()
    async with collecting(shown.bootstrap) as c:
        await create_topics(c.client, {topic: 2}, configs={})
        await asyncio.to_thread(produce, shown, topic, 10)
        async with consuming(shown, topic, group, protocol):
            snapshot = await snapshot_when(
                c,
                lambda s: (
                    group in s.groups
                    and s.groups[group].lag == 0
                    and any(member.partitions for member in s.groups[group].members or ())
                    and s.groups[group].state == "Stable"
                ),
            )
            found = snapshot.groups[group]
            assert found.kind == protocol
            assert found.members is not None
            assert (found.members[0].client_id, found.stuck) == ("billing-1", None)
            assert {row.member_id for row in found.partitions} == {found.members[0].member_id}
            assert snapshot.topics[topic].groups == (group,)


async def test_a_group_that_was_stopped_lags(shown: Broker) -> None:
    topic, group = new_topic_name(), new_topic_name()
    async with collecting(shown.bootstrap) as c:
        await create_topics(c.client, {topic: 2}, configs={})
        await asyncio.to_thread(produce, shown, topic, 10)
        await commit(c.client, group, {TopicPartition(topic, 0): 2})
        snapshot = await snapshot_when(
            c, lambda s: group in s.groups and s.groups[group].lag == 3 and s.problems
        )
        assert snapshot.groups[group].stuck == "it has no members, and 3 records wait"
        assert any(group in problem.names for problem in snapshot.problems)


async def test_a_search_finds_a_header_among_compressed_records(shown: Broker) -> None:
    topic = new_topic_name()
    async with collecting(shown.bootstrap) as c:
        await create_topics(c.client, {topic: 2}, configs={})
        for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
            await asyncio.to_thread(
                produce, shown, topic, 1000, **{"compression.type": codec, "linger.ms": "50"}
            )
        query = SearchQuery(topic, header_name="trace", header_value="t777")
        reports: list = []
        records = [record async for record in search(c, query, reports.append)]
        assert [record.value for record in records] == [b'{"order": 777}'] * 5
        assert reports[-1].scanned == reports[-1].total == 5000
        by_path = SearchQuery(topic, jsonpath="$.order == 12")
        assert len([record async for record in search(c, by_path, reports.append)]) == 5


async def test_transactions_are_shown(shown: Broker) -> None:
    topic = new_topic_name()

    def write() -> None:
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": shown.bootstrap, "transactional.id": topic}
        )
        producer.init_transactions(30)
        for is_commit in (True, False):
            producer.begin_transaction()
            producer.produce(topic, b"value", partition=0)
            producer.flush(30)
            if is_commit:
                producer.commit_transaction(30)
            else:
                producer.abort_transaction(30)

    async with collecting(shown.bootstrap) as c:
        await create_topics(c.client, {topic: 1}, configs={})
        await asyncio.to_thread(write)
        query = ReadQuery(topic, start="start")
        async with asyncio.timeout(PATIENCE_S):
            # Apache Kafka writes the marker after its response.
            while len((page := await read_page(c, query)).records) < 4:
                pass
        assert [(record.offset, record.control, record.is_aborted) for record in page.records] == [
            (0, None, False),
            (1, "commit", False),
            (2, None, True),
            (3, "abort", False),
        ]
        (transaction,) = [
            row for row in await details.transactions(c) if row.transactional_id == topic
        ]
        assert transaction.state == "CompleteAbort"
        assert not transaction.is_hanging
