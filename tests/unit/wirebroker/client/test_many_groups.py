"""Many groups in one request each."""

from __future__ import annotations

import contextlib

from tests.support.brokers.servers import ONE_NODE, running
from wirebroker.client.groups.groups import DescribedConsumers, commit
from wirebroker.client.groups.many_groups import (
    ManyOffsets,
    committed_of_groups,
    describe_groups,
    listed_groups_of,
)
from wirebroker.client.topics.leader_offsets import leader_offsets
from wirebroker.client.topics.leaders import TopicPartition
from wirebroker.client.topics.topics import create_topics
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.special_offsets import LATEST
from wirebroker.net.client.settings import PeerAddress
from wirebroker.testing.clients.internal_client import internal_client


@contextlib.asynccontextmanager
async def broker_client(directory):
    async with (
        running(directory, settings=ONE_NODE) as server,
        internal_client(PeerAddress(*server.address)) as client,
    ):
        yield client


async def test_groups_are_listed_described_and_read_together(tmp_path):
    async with broker_client(tmp_path) as client:
        await create_topics(client, {"orders": 2}, configs={})
        await commit(client, "one", {TopicPartition("orders", 0): 3})
        await commit(
            client, "two", {TopicPartition("orders", 0): 4, TopicPartition("orders", 1): 5}
        )
        listed = await listed_groups_of(client, 1)
        assert {(group.name, group.state, group.kind) for group in listed} == {
            ("one", "Empty", "classic"),
            ("two", "Empty", "classic"),
        }
        names = ["one", "missing", "two"]
        described = await describe_groups(client, 1, "classic", names)
        assert list(described) == ["one", "two"]
        assert isinstance(described["one"], DescribedConsumers)
        assert described["one"].state == "Empty"
        committed = await committed_of_groups(client, 1, names)
        offsets = committed["two"]
        assert isinstance(offsets, ManyOffsets)
        assert list(zip(*offsets, strict=True)) == [("orders", 0, 4), ("orders", 1, 5)]
        missing = committed["missing"]
        assert isinstance(missing, ManyOffsets)
        assert missing.topics == []


async def test_offsets_of_a_leader_have_their_errors(tmp_path):
    async with broker_client(tmp_path) as client:
        await create_topics(client, {"orders": 1}, configs={})
        rows = await leader_offsets(client, 1, {"orders": [0, 7], "other": [0]}, LATEST)
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert [(row.topic, row.partition, row.error_code) for row in rows] == [
            ("orders", 0, 0),
            ("orders", 7, unknown),
            ("other", 0, unknown),
        ]
