"""The channel to Apache Kafka's controller (quorum/channel/remote_channel.py): join and forward."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from compat_tests.connections.test_our_client import controller_of, kafka
from wirebroker.base.clock import SystemClock
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.messages import request_message
from wirebroker.coordinator.controller.image.cluster_image import Endpoint
from wirebroker.coordinator.controller.requests.request import Requester
from wirebroker.quorum.channel.broker_lifecycle import BrokerLifecycle
from wirebroker.quorum.channel.producer_id_supply import ProducerIdSupply
from wirebroker.quorum.channel.remote_channel import RemoteChannel

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.support.brokers.brokers import ApacheKafka

__all__ = ["kafka"]  # a fixture

pytestmark = pytest.mark.java

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
NODE_ID = 17
# All features that Apache Kafka finalizes when it formats a directory.
FEATURES = dict.fromkeys(
    ("metadata.version", "transaction.version", "group.version", "share.version"), 1
) | dict.fromkeys(("streams.version", "eligible.leader.replicas.version"), 1)


@contextlib.asynccontextmanager
async def member(broker: ApacheKafka) -> AsyncIterator[tuple[RemoteChannel, BrokerLifecycle]]:
    channel = RemoteChannel(controller_of(broker), SystemClock())
    metadata: Any = SimpleNamespace(image=SimpleNamespace(offset=1 << 40, features=FEATURES))
    lifecycle = BrokerLifecycle(channel, metadata, node_id=NODE_ID)
    await lifecycle.register(
        cluster_id=CLUSTER_ID,
        endpoints=[Endpoint("PLAINTEXT", "localhost", 9, 0)],
        log_directories=[bytes([7]) * 16],
    )
    await lifecycle.unfence()
    try:
        yield channel, lifecycle
    finally:
        await lifecycle.shut_down()
        answer = await channel.ask(ApiKey.UNREGISTER_BROKER, {"broker_id": NODE_ID})
        assert answer.error_code == 0
        await channel.close()


async def test_broker_registers_forwards_requests_and_leaves(kafka: ApacheKafka) -> None:
    async with member(kafka) as (channel, lifecycle):
        assert lifecycle.broker_epoch > 0
        supply = ProducerIdSupply(channel, lifecycle)
        await supply.until_ready()
        first = supply.take()
        assert supply.take() == first + 1
        stale = {
            "broker_id": NODE_ID,
            "broker_epoch": lifecycle.broker_epoch + 1,
            "topics": [{"topic_id": bytes([1]) * 16, "partitions": [{"partition_index": 0}]}],
        }
        answer = await channel.ask(ApiKey.ALTER_PARTITION, stale)
        assert answer.error_code == ErrorCode.STALE_BROKER_EPOCH
        topic = {
            "name": "forwarded",
            "num_partitions": -1,
            "replication_factor": -1,
            "assignments": [{"partition_index": 0, "broker_ids": [1, NODE_ID]}],
        }
        requester = Requester(client_id="somebody", host="192.0.2.7")
        for version in (4, 7):  # before and after the flexible versions
            body = request_message(ApiKey.CREATE_TOPICS).struct_class(
                topics=[topic], timeout_ms=10_000
            )
            answer = await channel.forward(ApiKey.CREATE_TOPICS, version, body, requester)
            expected = ErrorCode.NONE if version == 4 else ErrorCode.TOPIC_ALREADY_EXISTS
            assert [created_topic["error_code"] for created_topic in answer["topics"]] == [expected]
