"""Each kind of change of topics, configs, messages and groups, on wirebroker and Apache Kafka."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, NamedTuple

import confluent_kafka
import pytest

from compat_tests.conftest import new_topic_name
from tests.support.brokers.brokers import make_broker
from tests.support.brokers.collectors import collecting
from tests.support.console.changes import prepared, records_of
from tests.support.tools.waiting import PATIENCE_S
from wirebroker.base.clock import pause
from wirebroker.client.configs.configs import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    configs_of,
)
from wirebroker.client.errors import ClientError
from wirebroker.client.groups.group_kinds import describe_any_group
from wirebroker.client.groups.group_membership import GroupMembership
from wirebroker.client.groups.groups import commit, committed_of, list_groups
from wirebroker.client.groups.share_offsets import alter_share_offsets, share_starts_of
from wirebroker.client.records.producing import TopicWriter
from wirebroker.client.topics.leaders import TopicPartition, offsets_at
from wirebroker.client.topics.topics import create_topics, list_topics
from wirebroker.codecs.records.codec import Codec
from wirebroker.codecs.special_offsets import EARLIEST
from wirebroker.console.changes.change import ChangeError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from tests.support.brokers.brokers import Broker
    from wirebroker.console.model.collector import Collector

EVIL = "<b>'\"; $(reboot)"
COUNT = 5


class Names(NamedTuple):
    """What one case uses; the other topic is compacted, `{name}` in values is one of these."""

    topic: str
    target: str
    compacted: str
    group: str
    shared: str
    new: str


@pytest.fixture(
    scope="module", params=["wirebroker", pytest.param("apache", marks=pytest.mark.java)]
)
def changed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator:
    with make_broker(request.param, tmp_path_factory.mktemp("broker")) as running:
        yield running


@contextlib.asynccontextmanager
async def content(broker: Broker) -> AsyncIterator[tuple[Collector, Names]]:
    """Create topics with five records in each of two partitions, and groups of two kinds."""
    topic = new_topic_name()
    names = Names(topic, f"{topic}-t", f"{topic}-c", f"{topic} {EVIL}", f"{topic}-s", f"{topic}-n")
    async with collecting(broker.bootstrap) as c:
        client = c.client
        await create_topics(client, {topic: 2, names.target: 2}, configs={})
        await create_topics(client, {names.compacted: 1}, configs={"cleanup.policy": "compact"})
        writer = TopicWriter(client, topic, Codec.ZSTD)
        await writer.open()
        for number in range(COUNT):
            record = (b"k%d" % number, b"v%d" % number, [("trace", b"\xff")])
            rows = [(partition, record) for partition in range(2)]
            await writer.write(rows, timestamp_ms=1000 * (number + 1))
        places = [TopicPartition(topic, partition) for partition in range(2)]
        await commit(client, names.group, dict(zip(places, (2, 1), strict=True)))
        await alter_share_offsets(client, names.shared, dict.fromkeys(places, 0))
        yield c, names


# --- what a case changes ---


async def partitions(c: Collector, names: Names) -> Any:
    topics = await list_topics(c.client)
    return topics.get(names.topic), topics.get(names.new)


async def starts(c: Collector, names: Names) -> Any:
    places = [TopicPartition(names.topic, partition) for partition in range(2)]
    return list((await offsets_at(c.client, dict.fromkeys(places, EARLIEST))).values())


async def target_records(c: Collector, names: Names) -> Any:
    records = await records_of(c.client, names.target)
    return [
        (place.partition, row.timestamp // 1000 if row.timestamp < 10_000 else 0, *row[2:4])
        for place, rows in records.items()
        for row in rows
    ]


async def committed(c: Collector, names: Names) -> Any:
    return list((await committed_of(c.client, names.group)).values())


async def shared(c: Collector, names: Names) -> Any:
    return list((await share_starts_of(c.client, names.shared)).values())


async def groups(c: Collector, names: Names) -> Any:
    listed = {group.name for group in await list_groups(c.client)}
    return names.group in listed, names.shared in listed


def config(kind: int, resource: str, name: str) -> Callable[[Collector, Names], Awaitable[Any]]:
    async def read(c: Collector, names: Names) -> Any:
        found = await configs_of(c.client, kind, resource.format(**names._asdict()))
        return [row.value for row in found if row.name == name and row.is_set]

    return read


async def root_is_fatal(c: Collector, _names: Names) -> Any:
    rows = await configs_of(c.client, BROKER_LOGGER, "1", names=["root"])
    return [row.value for row in rows if row.name == "root"] == ["FATAL"]


class Case(NamedTuple):
    """A kind of change with its values, and what is read before and after it."""

    kind: str
    values: dict[str, Any]
    read: Callable[[Collector, Names], Awaitable[Any]]
    before: Any
    after: Any


SAME_TARGET = {"source": "{topic}", "topic": "{target}", "keep_partitions": "yes"}
GROUP_VALUES = {"group": "{group}"}
ALL = [(part, n + 1, b"k%d" % n, b"v%d" % n) for part in range(2) for n in range(COUNT)]

CASES = {
    "create": Case(
        "create-topic",
        {"topic": "{new}", "partitions": 3, "replicas": 1, "configs": "retention.ms=1000"},
        partitions,
        (2, None),
        (2, 3),
    ),
    "create-by-defaults": Case("create-topic", {"topic": "{new}"}, partitions, (2, None), (2, 1)),
    "add": Case(
        "add-partitions", {"topic": "{topic}", "partitions": 4}, partitions, (2, None), (4, None)
    ),
    "delete": Case(
        "delete-topic",
        {"topic": "{topic}", "confirm": "{topic}"},
        partitions,
        (2, None),
        (None, None),
    ),
    "delete-several": Case(
        "delete-topics",
        {"topics": "{topic}\n{target}", "confirm": 2},
        partitions,
        (2, None),
        (None, None),
    ),
    "empty": Case("empty-topic", {"topic": "{topic}"}, starts, [0, 0], [5, 5]),
    "trim-offset": Case(
        "trim-topic",
        {"topic": "{topic}", "before_offset": 3, "partitions": "1"},
        starts,
        [0, 0],
        [0, 3],
    ),
    "trim-time": Case(
        "trim-topic",
        {"topic": "{topic}", "before_time": "1970-01-01T00:00:03"},
        starts,
        [0, 0],
        [2, 2],
    ),
    "topic-configs": Case(
        "alter-topic-configs",
        {"topic": "{topic}", "set": "retention.ms=86400000"},
        config(TOPIC, "{topic}", "retention.ms"),
        [],
        ["86400000"],
    ),
    "topic-config-reset": Case(
        "alter-topic-configs",
        {"topic": "{compacted}", "unset": "cleanup.policy"},
        config(TOPIC, "{compacted}", "cleanup.policy"),
        ["compact"],
        [],
    ),
    "broker-configs": Case(
        "alter-broker-configs",
        {"broker": "1", "set": "log.cleaner.threads=2"},
        config(BROKER, "1", "log.cleaner.threads"),
        [],
        ["2"],
    ),
    "broker-config-reset": Case(
        "alter-broker-configs",
        {"broker": "1", "unset": "log.cleaner.threads"},
        config(BROKER, "1", "log.cleaner.threads"),
        ["2"],
        [],
    ),
    "all-brokers": Case(
        "alter-broker-configs",
        {"broker": "all", "set": "log.retention.ms=99999999"},
        config(BROKER, "", "log.retention.ms"),
        [],
        ["99999999"],
    ),
    "broker-loggers": Case(
        "alter-broker-loggers",
        {"broker": "1", "set": "root=FATAL"},
        root_is_fatal,
        False,
        True,
    ),
    "group-configs": Case(
        "alter-group-configs",
        {"group": "{group}", "set": "consumer.session.timeout.ms=50000"},
        config(GROUP, "{group}", "consumer.session.timeout.ms"),
        [],
        ["50000"],
    ),
    "client-metrics": Case(
        "alter-client-metrics",
        {"subscription": "{new}", "set": "interval.ms=5000\nmetrics=org.apache."},
        config(CLIENT_METRICS, "{new}", "interval.ms"),
        [],
        ["5000"],
    ),
    "produce": Case(
        "produce-record",
        {"topic": "{target}", "partition": 1, "value": EVIL, "headers": f"a={EVIL}"},
        target_records,
        [],
        [(1, 0, None, EVIL.encode())],
    ),
    "resend": Case(
        "resend-record",
        {
            "source_topic": "{topic}",
            "source_partition": 1,
            "source_offset": 2,
            "topic": "{target}",
            "partition": 0,
        },
        target_records,
        [],
        [(0, 0, b"k2", b"v2")],
    ),
    "copy": Case("copy-records", SAME_TARGET, target_records, [], ALL),
    "copy-range": Case(
        "copy-records",
        {**SAME_TARGET, "from_offset": 1, "until_time": "1970-01-01T00:00:04", "most": 3},
        target_records,
        [],
        [ALL[1], ALL[2], ALL[6]],
    ),
    "reset-start": Case(
        "reset-offsets", {**GROUP_VALUES, "to": "start"}, committed, [2, 1], [0, 0]
    ),
    "reset-end": Case("reset-offsets", {**GROUP_VALUES, "to": "end"}, committed, [2, 1], [5, 5]),
    "reset-offset": Case(
        "reset-offsets",
        {**GROUP_VALUES, "to": "offset", "value": 4, "topics": "{topic}:1"},
        committed,
        [2, 1],
        [2, 4],
    ),
    "reset-shift": Case(
        "reset-offsets", {**GROUP_VALUES, "to": "shift", "value": 1}, committed, [2, 1], [3, 2]
    ),
    "reset-time": Case(
        "reset-offsets",
        {**GROUP_VALUES, "to": "time", "value": "1970-01-01T00:00:05"},
        committed,
        [2, 1],
        [4, 4],
    ),
    "reset-share": Case(
        "reset-offsets", {"group": "{shared}", "to": "end"}, shared, [0, 0], [5, 5]
    ),
    "delete-offsets": Case(
        "delete-offsets", {**GROUP_VALUES, "topics": "{topic}:0"}, committed, [2, 1], [1]
    ),
    "delete-share-offsets": Case(
        "delete-offsets", {"group": "{shared}", "topics": "{topic}"}, shared, [0, 0], []
    ),
    "delete-group": Case("delete-group", GROUP_VALUES, groups, (True, True), (False, True)),
    "delete-share-group": Case(
        "delete-group", {"group": "{shared}"}, groups, (True, True), (True, False)
    ),
}


def filled(values: dict[str, Any], names: Names) -> dict[str, Any]:
    texts = names._asdict()
    return {
        name: value.format(**texts) if isinstance(value, str) else value
        for name, value in values.items()
    }


@pytest.mark.parametrize("name", CASES)
async def test_a_change_does_what_its_plan_says(changed: Broker, name: str) -> None:
    case = CASES[name]
    async with content(changed) as (c, names):
        assert await case.read(c, names) == case.before
        plan = await prepared(c, case.kind, **filled(case.values, names))
        assert await case.read(c, names) == case.before
        assert await plan.apply()
        # Brokers of Apache Kafka apply configs after the response.
        async with asyncio.timeout(PATIENCE_S):
            while await case.read(c, names) != case.after:
                await pause(0.05)


# --- what the cluster refuses ---

REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("create-topic", {"topic": "{topic}"}),
    ("create-topic", {"topic": EVIL}),
    ("create-topic", {"topic": "{new}", "replicas": 5}),
    ("create-topic", {"topic": "{new}", "configs": "retention.ms=soon"}),
    ("add-partitions", {"topic": "{topic}", "partitions": 1}),
    ("empty-topic", {"topic": "{compacted}"}),
    ("delete-topic", {"topic": "{new}", "confirm": "{new}"}),
    ("delete-topics", {"topics": "{topic}\n{new}", "confirm": 2}),
    ("alter-broker-loggers", {"broker": "1", "set": "no.such.logger=INFO"}),
    ("alter-topic-configs", {"topic": "{topic}", "set": "retention.ms=soon"}),
    ("alter-topic-configs", {"topic": "{topic}", "set": "retention.mss=1"}),
    ("alter-broker-configs", {"broker": "1", "set": "process.roles=broker"}),
    ("alter-broker-configs", {"broker": "1", "set": "log.retention.ms=soon"}),
    ("alter-group-configs", {"group": "g", "set": "consumer.session.timeout.ms=1"}),
    ("alter-client-metrics", {"subscription": "m", "set": "interval.ms=1"}),
    ("copy-records", {"source": "{topic}", "topic": "{new}"}),
    ("reset-offsets", {"group": "{new}", "to": "start"}),
    ("delete-group", {"group": "{new}"}),
    ("delete-offsets", {"group": "{group}", "topics": "{target}"}),
    ("remove-members", {"group": "{group}"}),
]


async def test_plans_that_cannot_be_made_are_refused(changed: Broker) -> None:
    async with content(changed) as (c, names):
        for kind, values in REFUSED:
            with pytest.raises((ClientError, ChangeError)):
                await prepared(c, kind, **filled(values, names))
        assert await partitions(c, names) == (2, None)


async def test_members_of_classic_groups_are_removed(changed: Broker) -> None:
    async with content(changed) as (c, names):
        membership = GroupMembership(c.client, names.group, [names.topic])
        await membership.join()
        with pytest.raises(ClientError, match="the group has members"):
            await prepared(c, "reset-offsets", group=names.group, to="start")
        plan = await prepared(c, "remove-members", group=names.group)
        await plan.apply()
        assert (await describe_any_group(c.client, names.group)).members == []
        membership.abort()


async def test_members_of_the_consumer_protocol_cannot_be_removed(changed: Broker) -> None:
    async with content(changed) as (c, names):
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": changed.bootstrap,
                "group.id": names.new,
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
            }
        )
        consumer.subscribe([names.topic])
        try:
            assert await asyncio.to_thread(consumer.poll, 30) is not None
            with pytest.raises(ClientError, match="uses the consumer protocol"):
                await prepared(c, "remove-members", group=names.new)
        finally:
            await asyncio.to_thread(consumer.close)
