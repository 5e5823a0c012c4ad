"""Metadata over a socket: all topics, by name, by id, auto creation, authorized operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.brokers.servers import broker_of, client_of, memory_directory, running
from tests.support.protocol.requests import create_topic, delete_topic
from wirebroker.base.clock import next_turn
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.primitives import ZERO_UUID

if TYPE_CHECKING:
    from tests.support.protocol.raw_client import RawClient

NOT_ASKED = -(1 << 31)
ALL_ON_TOPIC = 0b1101_1111_1000
AUTO = {"auto.create.topics.enable": "true"}


async def ask(client: RawClient, *names: str, version: int = 12, **fields: Any) -> Any:
    topics = [{"name": name} for name in names]
    return await client.ask(ApiKey.METADATA, version, {"topics": topics, **fields})


def codes(answer: Any) -> dict[str, int]:
    return {topic.name: topic.error_code for topic in answer.topics}


@pytest.mark.parametrize("version", range(14))
async def test_every_version_returns_brokers_and_topics(tmp_path, version):
    async with running(tmp_path) as server, client_of(server) as client:
        topic_id = await create_topic(client, "t", 2)
        answer = await ask(client, "t", version=version)
        (node,) = answer.brokers
        assert (node.node_id, node.host, node.port) == (1, *server.address)
        (topic,) = answer.topics
        assert (topic.error_code, topic.name) == (0, "t")
        assert [
            (
                partition.partition_index,
                partition.leader_id,
                partition.replica_nodes,
                partition.isr_nodes,
            )
            for partition in topic.partitions
        ] == [(0, 1, [1], [1]), (1, 1, [1], [1])]
        if version >= 1:
            assert answer.controller_id == 1
        if version >= 2:
            assert answer.cluster_id == broker_of(server).cluster_id
        if version >= 7:
            assert [partition.leader_epoch for partition in topic.partitions] == [0, 0]
        if version >= 10:
            assert topic.topic_id == topic_id


@pytest.mark.parametrize("version", [0, 1, 9, 12, 13])
async def test_all_topics_and_none(tmp_path, version):
    async with running(tmp_path) as server, client_of(server) as client:
        for name in ("a", "b"):
            await create_topic(client, name)
        everything: dict[str, Any] = {"topics": [] if version == 0 else None}
        answer = await client.ask(ApiKey.METADATA, version, everything)
        assert sorted(codes(answer)) == ["a", "b"]
        if version > 0:
            assert codes(await ask(client, version=version)) == {}


async def test_names_are_answered_once_in_their_order(tmp_path):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        answer = await ask(client, "z", "t", "z", "bad name", "")
        assert codes(answer) == {
            "z": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "t": 0,
            "bad name": ErrorCode.INVALID_TOPIC_EXCEPTION,
            "": ErrorCode.INVALID_TOPIC_EXCEPTION,
        }
        assert [topic.name for topic in answer.topics] == ["z", "t", "bad name", ""]


async def test_topics_by_id(tmp_path):
    async with running(tmp_path) as server, client_of(server) as client:
        topic_id = await create_topic(client, "t")
        topics = [{"topic_id": topic_id, "name": None}, {"topic_id": b"?" * 16, "name": None}]
        answer = await client.ask(ApiKey.METADATA, 12, {"topics": topics})
        assert [(topic.name, topic.topic_id, topic.error_code) for topic in answer.topics] == [
            ("t", topic_id, 0),
            (None, b"?" * 16, ErrorCode.UNKNOWN_TOPIC_ID),
        ]


@pytest.mark.parametrize(
    "topic", [{"name": None, "topic_id": ZERO_UUID}, {"name": "t", "topic_id": b"?" * 16}]
)
async def test_ids_and_null_names_are_for_later_versions(tmp_path, topic):
    async with running(tmp_path) as server, client_of(server) as client:
        answer = await client.ask(ApiKey.METADATA, 11, {"topics": [topic]})
        assert [entry.error_code for entry in answer.topics] == [ErrorCode.INVALID_REQUEST]


async def until_created(client: RawClient, name: str) -> Any:
    while True:
        answer = await ask(client, name)
        if answer.topics[0].error_code == 0:
            return answer.topics[0]
        assert answer.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        await next_turn()


@pytest.mark.parametrize("version", [0, 4, 12])
async def test_requested_topic_is_auto_created(tmp_path, version):
    settings = {**AUTO, "num.partitions": "3"}

    async with (
        running(tmp_path, settings=settings) as server,
        client_of(server) as client,
    ):
        options = {"allow_auto_topic_creation": True} if version >= 4 else {}
        answer = await ask(client, "new", "no good", version=version, **options)
        assert codes(answer) == {
            "new": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "no good": ErrorCode.INVALID_TOPIC_EXCEPTION,
        }
        assert len((await until_created(client, "new")).partitions) == 3


async def test_topic_is_not_auto_created_unless_allowed(tmp_path):
    async with running(tmp_path, settings=AUTO) as server, client_of(server) as client:
        await ask(client, "unwanted", allow_auto_topic_creation=False)
        await ask(client, "wanted", allow_auto_topic_creation=True)
        await until_created(client, "wanted")
        assert "unwanted" not in broker_of(server).metadata.image.topics
    async with running(tmp_path) as server, client_of(server) as client:
        await ask(client, "forbidden", allow_auto_topic_creation=True)
        await create_topic(client, "last")
        assert sorted(broker_of(server).metadata.image.topics) == ["last", "wanted"]


async def test_concurrent_requests_auto_create_one_topic(tmp_path, caplog):
    async with running(tmp_path, settings=AUTO) as server, client_of(server) as client:
        correlation_ids = [
            await client.send(
                ApiKey.METADATA,
                12,
                {"topics": [{"name": "new"}], "allow_auto_topic_creation": True},
            )
            for _ in range(20)
        ]
        for correlation_id in correlation_ids:
            await client.receive(ApiKey.METADATA, 12, correlation_id)
        await until_created(client, "new")
    assert "failed" not in caplog.text


async def test_authorized_operations_are_returned_on_request(tmp_path):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        for version in (8, 10, 12):
            options = {"include_topic_authorized_operations": True}
            if version <= 10:
                options["include_cluster_authorized_operations"] = True
            for _ in range(2):  # the second time from the cache
                answer = await ask(client, "t", version=version, **options)
                assert answer.topics[0].topic_authorized_operations == ALL_ON_TOPIC
            if version <= 10:
                assert answer.cluster_authorized_operations > 0
            answer = await ask(client, "t", version=version)
            assert answer.topics[0].topic_authorized_operations == NOT_ASKED
            if version <= 10:
                assert answer.cluster_authorized_operations == NOT_ASKED


async def test_metadata_changes_are_visible_at_once(tmp_path):
    async with running(tmp_path) as server, client_of(server) as client:
        first = await create_topic(client, "t")
        assert (await ask(client, "t")).topics[0].topic_id == first
        await delete_topic(client, "t")
        assert codes(await ask(client, "t")) == {"t": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        second = await create_topic(client, "t", 2)
        (topic,) = (await ask(client, "t")).topics
        assert (topic.topic_id, len(topic.partitions)) == (second, 2)
        topic_update = {"name": "t", "count": 3, "assignments": None}
        request = {"topics": [topic_update], "timeout_ms": 1_000}
        await client.ask(ApiKey.CREATE_PARTITIONS, 3, request)
        assert len((await ask(client, "t")).topics[0].partitions) == 3


async def test_many_topics_and_many_partitions_are_returned_in_full(tmp_path):
    with memory_directory(tmp_path) as directory:
        async with running(directory) as server, client_of(server) as client:
            topics = [
                {"name": f"t{number}", "num_partitions": 1, "replication_factor": 1}
                for number in range(600)
            ]
            request = {"topics": topics, "timeout_ms": 30_000}
            await client.ask(ApiKey.CREATE_TOPICS, 7, request)
            await create_topic(client, "large", 1_500)
            for version in (0, 1, 12, 12):
                everything: dict[str, Any] = {"topics": [] if version == 0 else None}
                answer = await client.ask(ApiKey.METADATA, version, everything)
                assert len(answer.topics) == 601
                sizes = {topic.name: len(topic.partitions) for topic in answer.topics}
                assert (sizes["large"], sizes["t7"]) == (1_500, 1)
            # Such a long request is parsed in a thread.
            names = [f"t{number}" for number in range(600)] + ["x" * 240] * 300
            answer = await ask(client, *names)
            assert [topic.name for topic in answer.topics] == [*names[:600], "x" * 240]
            assert answer.topics[-1].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_advertised_address_replaces_the_connection_address(tmp_path):
    settings = {
        "listeners": "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
        "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        "advertised.listeners": "INSIDE://inside.example:7,OUTSIDE://outside.example:8",
        "inter.broker.listener.name": "INSIDE",
    }

    async with running(tmp_path, settings=settings) as server, client_of(server) as client:
        (node,) = (await ask(client)).brokers
        assert (node.host, node.port) == ("inside.example", 7)
