"""wirebroker's own connections (wirebroker/net/client) to Apache Kafka's broker and controller."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.brokers import java_start
from tests.support.brokers.brokers import HOST, ApacheKafka
from tests.support.records.batches import batch, values_in
from wirebroker.base.clock import SystemClock
from wirebroker.codecs.api_keys import SPOKEN_VERSIONS, ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.messages import request_message, response_message
from wirebroker.net.client.active_controller import ActiveController
from wirebroker.net.client.connection import PeerConnection
from wirebroker.net.client.node import Node
from wirebroker.net.client.settings import ClientSettings, PeerAddress
from wirebroker.net.client.tcp_dialer import TcpDialer

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.java

TOPIC_ID_OF_METADATA = bytes(15) + b"\x01"
SETTINGS = ClientSettings(client_id="wirebroker-tests")


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    folder = tmp_path_factory.mktemp("kafka")
    with ApacheKafka(folder, java_options=java_start.options()) as broker:
        yield broker


def controller_address(kafka: ApacheKafka) -> PeerAddress:
    text = (kafka.directory / "server.properties").read_text()
    (voters,) = [
        line.partition("=")[2]
        for line in text.splitlines()
        if line.startswith("controller.quorum.voters=")
    ]
    return PeerAddress(HOST, int(voters.rpartition(":")[2]))


def node_of(address: PeerAddress) -> Node:
    return Node(
        address,
        dialer=TcpDialer(),
        settings=SETTINGS,
        clock=SystemClock(),
        random=random.Random(1),
    )


def controller_of(kafka: ApacheKafka) -> ActiveController:
    return ActiveController(
        [controller_address(kafka)],
        dialer=TcpDialer(),
        settings=SETTINGS,
        clock=SystemClock(),
        random=random.Random(1),
    )


async def create_topic(controller: ActiveController, name: str) -> bytes:
    topic = {"name": name, "num_partitions": 1, "replication_factor": 1}
    created = await controller.request(
        ApiKey.CREATE_TOPICS, {"topics": [topic], "timeout_ms": 10_000}, timeout_s=30
    )
    assert created.topics[0].error_code == 0, created
    topic_id: bytes = created.topics[0].topic_id
    return topic_id


async def test_client_finds_controller_and_sends_request(kafka: ApacheKafka) -> None:
    controller = controller_of(kafka)
    await create_topic(controller, "made-by-the-controller")
    assert controller.controller_id == 1
    assert controller.cluster_id == "MkU3OEVBNTcwNTJENDM2Qk"
    heartbeat = {"broker_id": 17, "broker_epoch": 1, "want_fence": True}
    answer = await controller.request(ApiKey.BROKER_HEARTBEAT, heartbeat, timeout_s=30)
    assert answer.error_code in {
        ErrorCode.BROKER_ID_NOT_REGISTERED,
        ErrorCode.STALE_BROKER_EPOCH,
    }
    await controller.close()


async def test_client_fetches_metadata_log_from_controller(kafka: ApacheKafka) -> None:
    node = node_of(controller_address(kafka))
    partition = {
        "partition": 0,
        "current_leader_epoch": 0,
        "fetch_offset": 0,
        "last_fetched_epoch": 0,
        "log_start_offset": 0,
        "partition_max_bytes": 1 << 20,
    }
    topics = [{"topic_id": TOPIC_ID_OF_METADATA, "partitions": [partition]}]
    fields: dict[str, Any] = {
        "replica_state": {"replica_id": 17, "replica_epoch": -1},
        "topics": topics,
    }
    fields |= {"max_wait_ms": 500, "max_bytes": 1 << 20}
    answer = await node.request(ApiKey.FETCH, fields)
    (fetched,) = answer.responses[0].partitions
    if fetched.error_code:  # the first epoch is outdated; the response has the current one
        assert fetched.error_code == ErrorCode.FENCED_LEADER_EPOCH
        partition["current_leader_epoch"] = fetched.current_leader.leader_epoch
        answer = await node.request(ApiKey.FETCH, fields)
        (fetched,) = answer.responses[0].partitions
    assert fetched.error_code == 0
    assert isinstance(fetched.records, memoryview)
    assert len(fetched.records) > 500
    await node.close()


async def test_client_fetches_produced_records(kafka: ApacheKafka) -> None:
    controller = controller_of(kafka)
    topic_id = await create_topic(controller, "produced-by-us")
    await controller.close()
    node = node_of(PeerAddress(HOST, kafka.port))
    records = batch(b"a" * 300_000, b"b" * 300_000)
    data = {"topic_id": topic_id, "partition_data": [{"index": 0, "records": records}]}
    produce = {"acks": -1, "timeout_ms": 10_000, "topic_data": [data]}
    async with asyncio.timeout(60):
        while True:  # its leader learns of it later
            produced = await node.request(ApiKey.PRODUCE, produce)
            code = produced.responses[0].partition_responses[0].error_code
            if code == 0:
                break
            assert code in {
                ErrorCode.UNKNOWN_TOPIC_ID,
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
            }
    fetch_partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    topics = [{"topic_id": topic_id, "partitions": [fetch_partition]}]
    fetched = await node.request(ApiKey.FETCH, {"max_bytes": 1 << 20, "topics": topics})
    fetched_records = fetched.responses[0].partitions[0].records
    assert values_in(bytes(fetched_records)) == [b"a" * 300_000, b"b" * 300_000]
    await node.close()


async def test_known_request_versions_equal_those_of_controller(
    kafka: ApacheKafka,
) -> None:
    connection = await PeerConnection.open(
        controller_address(kafka), dialer=TcpDialer(), settings=SETTINGS, clock=SystemClock()
    )
    for row in connection.versions.answer.api_keys:
        key = ApiKey(row.api_key)
        assert SPOKEN_VERSIONS[key][:2] == (row.min_version, row.max_version), key
        for message in (request_message(key), response_message(key)):
            assert set(range(row.min_version, row.max_version + 1)) <= set(message.versions), key
    await connection.close()
