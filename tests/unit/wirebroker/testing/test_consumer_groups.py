"""Consumer groups (KIP-848) in the testing kit: listed, disturbed by faults, timed by the clock."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer

from tests.support.protocol.raw_client import BlockingClient
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirebroker.testing import Broker

PATIENCE_S = 30.0


@pytest.fixture
def client(broker: Broker) -> Iterator[BlockingClient]:
    host, port = broker.bootstrap_servers.split(":")
    with contextlib.closing(BlockingClient((host, int(port)))) as connected:
        yield connected


def heartbeat(client: BlockingClient, epoch: int = 0) -> Any:
    """Send a heartbeat of the member `m` of the group `g`."""
    request: dict[str, Any] = {"group_id": "g", "member_id": "m", "member_epoch": epoch}
    if epoch == 0:
        request |= {"rebalance_timeout_ms": 60_000, "topic_partitions": []}
        request["subscribed_topic_names"] = ["orders"]
    return client.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, request)


def test_groups_of_several_kinds_are_listed(broker: Broker, client: BlockingClient) -> None:
    broker.create_topic("orders")
    assert heartbeat(client).error_code == 0
    partition = {"partition_index": 0, "committed_offset": 0}
    topics = [{"name": "orders", "partitions": [partition]}]
    client.ask(ApiKey.OFFSET_COMMIT, 8, {"group_id": "simple", "topics": topics})
    assert [(group.name, group.kind, group.state) for group in broker.groups()] == [
        ("g", "consumer", "Stable"),
        ("simple", "classic", "Empty"),
    ]


def test_the_clock_ends_sessions_of_consumer_groups(broker: Broker, client: BlockingClient) -> None:
    broker.create_topic("orders")
    epoch = heartbeat(client).member_epoch
    broker.clock.advance(seconds=40)
    assert heartbeat(client, epoch).error_code == 0
    broker.clock.advance(seconds=46)
    assert [(group.name, group.state) for group in broker.groups()] == [("g", "Empty")]
    assert heartbeat(client, epoch).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_faults_disturb_requests_of_consumer_groups(broker: Broker, client: BlockingClient) -> None:
    broker.create_topic("orders")
    with broker.faults.error("CONSUMER_GROUP_HEARTBEAT", "COORDINATOR_NOT_AVAILABLE").times(1):
        assert heartbeat(client).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert heartbeat(client).error_code == 0
    with broker.faults.error("CONSUMER_GROUP_DESCRIBE", "GROUP_AUTHORIZATION_FAILED"):
        answer = client.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, {"group_ids": ["g"]})
    assert answer.groups[0].error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED


def test_a_consumer_rejoins_after_faults(broker: Broker) -> None:
    broker.produce("orders", "one")
    fault = broker.faults.error("CONSUMER_GROUP_HEARTBEAT", "NOT_COORDINATOR").times(1)
    config = broker.client_config("confluent") | {
        "group.id": "billing",
        "group.protocol": "consumer",
        "auto.offset.reset": "earliest",
    }
    consumer = Consumer(config)
    consumer.subscribe(["orders"])
    message = consumer.poll(PATIENCE_S)
    assert message is not None
    assert message.value() == b"one"
    assert fault.acted == 1
    consumer.close()
    broker.assert_consumed("orders", "billing")
