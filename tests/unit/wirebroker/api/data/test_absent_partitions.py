"""Requests to a broker without a replica: NOT_LEADER_OR_FOLLOWER."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.brokers.servers import client_of, controller_of, running
from tests.support.coordinators.kit import topic, topic_id
from tests.support.protocol.requests import fetch_request, produce_request
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.operation import ControllerResult

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.support.protocol.raw_client import RawClient

NOT_HERE = ErrorCode.NOT_LEADER_OR_FOLLOWER
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
UNKNOWN_ID = ErrorCode.UNKNOWN_TOPIC_ID
ELSEWHERE: dict[str, Any] = {"replicas": [2], "isr": [2], "leader": 2}


def of_name(key: ApiKey, name: str, index: int) -> dict[str, Any]:
    """Return a request about one partition, by the topic's name."""
    match key:
        case ApiKey.PRODUCE:
            return produce_request({(name, index): None})
        case ApiKey.FETCH:
            return fetch_request({(name, index): 0})
        case ApiKey.LIST_OFFSETS:
            partition = {"partition_index": index, "timestamp": -1}
            return {"replica_id": -1, "topics": [{"name": name, "partitions": [partition]}]}
        case ApiKey.OFFSET_FOR_LEADER_EPOCH:
            return {"topics": [{"topic": name, "partitions": [{"partition": index}]}]}
        case ApiKey.DELETE_RECORDS:
            partition = {"partition_index": index, "offset": 0}
            return {"topics": [{"name": name, "partitions": [partition]}], "timeout_ms": 1}
        case _:
            return {"topics": [{"name": name, "partition_indexes": [index]}]}


def error_in(reply: Any) -> int:
    topics = getattr(reply, "responses", None) or reply.topics
    partitions = getattr(topics[0], "partition_responses", None) or topics[0].partitions
    return int(partitions[0].error_code)


@asynccontextmanager
async def asked(path: Path) -> AsyncIterator[RawClient]:
    """Connect to broker 1 of a cluster with a topic whose replicas are all on broker 2."""
    async with running(path) as server, client_of(server) as client:

        def operation(image: Any, moment: Any) -> Any:
            del image, moment
            yield
            return ControllerResult(None, topic("a", 1, **ELSEWHERE))

        await controller_of(server).submit(operation)
        yield client


@pytest.mark.parametrize(
    ("key", "version"),
    [
        (ApiKey.PRODUCE, 12),
        (ApiKey.FETCH, 12),
        (ApiKey.LIST_OFFSETS, 8),
        (ApiKey.OFFSET_FOR_LEADER_EPOCH, 4),
        (ApiKey.DELETE_RECORDS, 2),
        (ApiKey.DESCRIBE_PRODUCERS, 0),
    ],
)
async def test_partition_on_another_broker_is_not_unknown(tmp_path, key, version):
    async with asked(tmp_path) as client:
        for name, index, error in (("a", 0, NOT_HERE), ("a", 7, UNKNOWN), ("nobody", 0, UNKNOWN)):
            reply = await client.ask(key, version, of_name(key, name, index))
            assert ErrorCode(error_in(reply)) is error


@pytest.mark.parametrize("key", [ApiKey.PRODUCE, ApiKey.FETCH])
async def test_partition_by_topic_id_on_another_broker_is_not_unknown(tmp_path, key):
    async with asked(tmp_path) as client:
        for number, index, error in ((1, 0, NOT_HERE), (1, 7, UNKNOWN), (9, 0, UNKNOWN_ID)):
            if key is ApiKey.PRODUCE:
                topic_data = {"topic_id": topic_id(number), "partition_data": [{"index": index}]}
                body: dict[str, Any] = {"acks": -1, "timeout_ms": 1, "topic_data": [topic_data]}
            else:
                body = fetch_request({(topic_id(number), index): 0})
            assert ErrorCode(error_in(await client.ask(key, 13, body))) is error
