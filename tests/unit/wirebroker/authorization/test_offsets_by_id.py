"""Offsets by topic id: denied, unknown and recreated topics (KIP-516)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.brokers.servers import client_of, running
from wirebroker.base.clock import pause
from wirebroker.codecs.acls import DENY, EVERYBODY, LITERAL, Operation, Resource
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.config.rows.authorizer import STANDARD

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.protocol.raw_client import RawClient

SETTINGS = {
    "authorizer.class.name": STANDARD,
    "allow.everyone.if.no.acl.found": "true",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
}
DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
UNKNOWN_ID = b"?" * 16


async def new_topic(client: RawClient, name: str) -> bytes:
    topic = {"name": name, "num_partitions": 1, "replication_factor": 1}
    answer = await client.ask(ApiKey.CREATE_TOPICS, 7, {"topics": [topic], "timeout_ms": 30_000})
    assert answer.topics[0].error_code == ErrorCode.NONE
    topic_id: bytes = answer.topics[0].topic_id
    return topic_id


async def delete_topic(client: RawClient, name: str) -> None:
    body = {"topics": [{"name": name}], "timeout_ms": 30_000}
    answer = await client.ask(ApiKey.DELETE_TOPICS, 6, body)
    assert answer.responses[0].error_code == ErrorCode.NONE


async def deny(client: RawClient, operation: int, name: str) -> None:
    rule = {
        "resource_type": Resource.TOPIC,
        "resource_name": name,
        "resource_pattern_type": LITERAL,
        "principal": EVERYBODY,
        "host": "*",
        "operation": operation,
        "permission_type": DENY,
    }
    answer = await client.ask(ApiKey.CREATE_ACLS, 3, {"creations": [rule]})
    assert answer.results[0].error_code == ErrorCode.NONE


async def commit(client: RawClient, *topic_ids: bytes, offset: int = 1) -> list[tuple[bytes, int]]:
    partitions = [{"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}]
    topics = [{"topic_id": topic_id, "partitions": partitions} for topic_id in topic_ids]
    body: dict[str, Any] = {
        "group_id": "g",
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "topics": topics,
    }
    answer = await client.ask(ApiKey.OFFSET_COMMIT, 10, body)
    return [(topic.topic_id, topic.partitions[0].error_code) for topic in answer.topics]


async def find_coordinator(client: RawClient) -> None:
    """Let the internal topic be created."""
    body = {"key_type": 0, "coordinator_keys": ["g"]}
    for _ in range(100):
        answer = await client.ask(ApiKey.FIND_COORDINATOR, 4, body)
        if answer.coordinators[0].error_code == ErrorCode.NONE:
            return
        await pause(0.02)
    raise AssertionError("there is no coordinator")


async def committed(client: RawClient, *topic_ids: bytes) -> list[tuple[bytes, int, int]]:
    topics = [{"topic_id": topic_id, "partition_indexes": [0]} for topic_id in topic_ids]
    body = {"groups": [{"group_id": "g", "topics": topics}]}
    answer = await client.ask(ApiKey.OFFSET_FETCH, 10, body)
    return [
        (topic.topic_id, partition.error_code, partition.committed_offset)
        for topic in answer.groups[0].topics
        for partition in topic.partitions
    ]


async def test_failed_topics_have_the_order_of_the_request(tmp_path: Path):
    async with running(tmp_path, settings=SETTINGS) as server, client_of(server) as client:
        await find_coordinator(client)
        first, second, third = [await new_topic(client, name) for name in ("t", "u", "v")]
        await deny(client, Operation.READ, "u")
        results = await commit(client, first, second, UNKNOWN_ID, third)
        # As in Kafka, the stored ones come last.
        assert results == [
            (second, DENIED),
            (UNKNOWN_ID, ErrorCode.UNKNOWN_TOPIC_ID),
            (first, ErrorCode.NONE),
            (third, ErrorCode.NONE),
        ]
        await deny(client, Operation.DESCRIBE, "u")
        assert await committed(client, second, UNKNOWN_ID, first) == [
            (first, ErrorCode.NONE, 1),
            (second, DENIED, -1),
            (UNKNOWN_ID, ErrorCode.UNKNOWN_TOPIC_ID, -1),
        ]


async def test_offsets_of_a_recreated_topic_belong_to_its_id(tmp_path: Path):
    async with running(tmp_path, settings=SETTINGS) as server, client_of(server) as client:
        await find_coordinator(client)
        old = await new_topic(client, "t")
        assert await commit(client, old, offset=7) == [(old, ErrorCode.NONE)]
        await delete_topic(client, "t")
        new = await new_topic(client, "t")
        unknown = ErrorCode.UNKNOWN_TOPIC_ID
        assert await commit(client, old, offset=8) == [(old, unknown)]
        assert await committed(client, old, new) == [(new, ErrorCode.NONE, -1), (old, unknown, -1)]
        assert await commit(client, new, offset=9) == [(new, ErrorCode.NONE)]
        assert await committed(client, new) == [(new, ErrorCode.NONE, 9)]
