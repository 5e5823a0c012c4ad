"""Each request to a remote controller is sent as Kafka's own message."""

import asyncio
import contextlib
import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.brokers.controller_process import CLUSTER_ID, CONTROLLER_ID, controller_process
from tests.unit.wirebroker.api.api_kit import answer_soon
from wirebroker.api.modules import load_handlers
from wirebroker.base.clock import SystemClock
from wirebroker.codecs.api_keys import API_VERSIONS, ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.config import Config
from wirebroker.coordinator.controller.image.cluster_image import Endpoint
from wirebroker.net.client.active_controller import ActiveController
from wirebroker.net.client.settings import ClientSettings, PeerAddress
from wirebroker.net.client.tcp_dialer import TcpDialer
from wirebroker.quorum.channel.broker_lifecycle import BrokerLifecycle
from wirebroker.quorum.channel.producer_id_supply import ProducerIdSupply
from wirebroker.quorum.channel.remote_channel import RemoteChannel
from wirebroker.quorum.image.metadata_follower import MetadataFollower

load_handlers()

NO_QUOTAS = SimpleNamespace(has_quotas=False)


@contextlib.asynccontextmanager
async def channel_to(port, *, timeout_s=20.0):
    clock = SystemClock()
    controllers = ActiveController(
        [PeerAddress("127.0.0.1", port)],
        dialer=TcpDialer(),
        settings=ClientSettings(client_id="broker-1"),
        clock=clock,
        random=random.Random(1),
    )
    channel = RemoteChannel(controllers, SystemClock(), timeout_s=timeout_s)
    try:
        yield channel
    finally:
        await channel.close()


async def joined(channel):
    """Return broker 1, registered with the controller and unfenced."""
    clock = SystemClock()
    # The metadata is not fetched here: it reports that it has followed everything.
    metadata = MetadataFollower(clock)
    image: Any = SimpleNamespace(offset=1 << 40, features={}, brokers={})
    metadata.image = image
    lifecycle = BrokerLifecycle(channel, metadata, node_id=1)
    await lifecycle.register(
        cluster_id=CLUSTER_ID,
        endpoints=[Endpoint("PLAINTEXT", "localhost", 9092, 0)],
        log_directories=[bytes([7]) * 16],
    )
    await lifecycle.unfence()
    return SimpleNamespace(
        node_id=1,
        config=Config({"log.dirs": "data"}),
        clock=clock,
        controller=channel,
        metadata=metadata,
        lifecycle=lifecycle,
        quotas=NO_QUOTAS,
    )


def new_topic(name, **fields):
    return {"name": name, "num_partitions": 2, "replication_factor": 1, **fields}


REQUESTS: list[tuple[ApiKey, dict[str, Any], Callable[[Any], Any], Any]] = [
    (
        ApiKey.CREATE_TOPICS,
        {"topics": [new_topic("b"), new_topic("a")]},
        lambda answer: [(each.name, each.error_code) for each in answer.topics],
        [("b", 0), ("a", ErrorCode.TOPIC_ALREADY_EXISTS)],
    ),
    (
        ApiKey.CREATE_PARTITIONS,
        {"topics": [{"name": "a", "count": 3, "assignments": None}], "timeout_ms": 1000},
        lambda answer: [(each.name, each.error_code) for each in answer.results],
        [("a", 0)],
    ),
    (
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        {
            "resources": [
                {
                    "resource_type": 2,
                    "resource_name": "a",
                    "configs": [{"name": "retention.ms", "config_operation": 0, "value": "7"}],
                },
                {"resource_type": 4, "resource_name": "9", "configs": []},
            ]
        },
        lambda answer: [(each.resource_name, each.error_code) for each in answer.responses],
        [("a", 0), ("9", ErrorCode.INVALID_REQUEST)],
    ),
    (
        ApiKey.ALTER_CONFIGS,
        {"resources": [{"resource_type": 2, "resource_name": "a", "configs": []}]},
        lambda answer: [(each.resource_name, each.error_code) for each in answer.responses],
        [("a", 0)],
    ),
    (
        ApiKey.ELECT_LEADERS,
        {"election_type": 0, "topic_partitions": [{"topic": "a", "partitions": [0]}]},
        lambda answer: [
            each.error_code for each in answer.replica_election_results[0].partition_result
        ],
        [ErrorCode.ELECTION_NOT_NEEDED],
    ),
    (
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        {"topics": [{"name": "a", "partitions": [{"partition_index": 0, "replicas": [1]}]}]},
        lambda answer: [each.error_code for each in answer.responses[0].partitions],
        [0],
    ),
    (ApiKey.LIST_PARTITION_REASSIGNMENTS, {"topics": None}, lambda answer: answer.topics, []),
    (
        ApiKey.UPDATE_FEATURES,
        {
            "feature_updates": [
                {"feature": "transaction.version", "max_version_level": 1, "upgrade_type": 2}
            ]
        },
        lambda answer: answer.error_code,
        0,
    ),
    (
        ApiKey.DESCRIBE_QUORUM,
        {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]},
        lambda answer: answer.topics[0].partitions[0].leader_id,
        CONTROLLER_ID,
    ),
    (
        ApiKey.ADD_RAFT_VOTER,
        {
            "cluster_id": None,
            "voter_id": 7,
            "voter_directory_id": bytes([7]) * 16,
            "listeners": [{"name": "CONTROLLER", "host": "localhost", "port": 9093}],
        },
        lambda answer: answer.error_code,
        ErrorCode.REQUEST_TIMED_OUT,
    ),
    (
        ApiKey.REMOVE_RAFT_VOTER,
        {
            "cluster_id": None,
            "voter_id": CONTROLLER_ID,
            "voter_directory_id": bytes([7]) * 16,
        },
        lambda answer: answer.error_code,
        ErrorCode.VOTER_NOT_FOUND,
    ),
    (
        ApiKey.UNREGISTER_BROKER,
        {"broker_id": 77},
        lambda answer: answer.error_code,
        ErrorCode.BROKER_ID_NOT_REGISTERED,
    ),
    (
        ApiKey.DELETE_TOPICS,
        {"topics": [{"name": "a", "topic_id": bytes(16)}], "timeout_ms": 1000},
        lambda answer: [(each.name, each.error_code) for each in answer.responses],
        [("a", 0)],
    ),
]


def test_each_admin_request_is_answered_by_a_controller_in_another_process(tmp_path):
    async def run(port):
        async with channel_to(port) as channel:
            broker = await joined(channel)
            create = {"topics": [new_topic("a")]}
            first = await answer_soon(broker, ApiKey.CREATE_TOPICS, 7, **create)
            assert [topic.error_code for topic in first.topics] == [0]
            return [
                extract(await answer_soon(broker, key, API_VERSIONS[key].max_version, **body))
                for key, body, extract, _ in REQUESTS
            ]

    with controller_process(tmp_path) as (_, port):
        answers = asyncio.run(run(port))
    for (key, _, _, expected), answer in zip(REQUESTS, answers, strict=True):
        assert answer == expected, key.name


def test_broker_requests_are_answered_by_a_remote_controller(tmp_path):
    async def run(port):
        async with channel_to(port) as channel:
            broker = await joined(channel)
            supply = ProducerIdSupply(channel, broker.lifecycle)
            await supply.until_ready()
            assert supply.take() == 0
            await channel.ask(ApiKey.CREATE_TOPICS, {"topics": [new_topic("a")]})
            epoch = broker.lifecycle.broker_epoch
            stale = {"broker_id": 1, "broker_epoch": epoch + 1}
            answer = await channel.ask(ApiKey.ALLOCATE_PRODUCER_IDS, stale)
            assert answer.error_code == ErrorCode.STALE_BROKER_EPOCH
            topics = [{"topic_id": bytes(16), "partitions": [{"partition_index": 0}]}]
            answer = await channel.ask(ApiKey.ALTER_PARTITION, {**stale, "topics": topics})
            assert answer.error_code == ErrorCode.STALE_BROKER_EPOCH
            with pytest.raises(KafkaError) as raised:
                await joined(channel)  # another incarnation while this one is alive
            assert raised.value.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION
            await broker.lifecycle.shut_down()
            answer = await channel.ask(ApiKey.UNREGISTER_BROKER, {"broker_id": 1})
            assert answer.error_code == 0

    with controller_process(tmp_path) as (_, port):
        asyncio.run(run(port))


def test_restarted_controller_is_found_again(tmp_path):
    async def run():
        with controller_process(tmp_path) as (process, port):
            async with channel_to(port) as channel:
                broker = await joined(channel)
                answer = await answer_soon(
                    broker, ApiKey.CREATE_TOPICS, 7, topics=[new_topic("kept")]
                )
                assert answer.topics[0].error_code == 0
                process.kill()
                process.wait()
                body = {"topics": [new_topic("kept"), new_topic("late")]}
                creation = asyncio.create_task(answer_soon(broker, ApiKey.CREATE_TOPICS, 7, **body))
                with controller_process(tmp_path, port):
                    answer = await creation
        return [topic.error_code for topic in answer.topics]

    assert asyncio.run(run()) == [ErrorCode.TOPIC_ALREADY_EXISTS, 0]


def test_without_a_controller_the_request_times_out(tmp_path):
    async def run(port):
        async with channel_to(port, timeout_s=0.3) as channel:
            broker = SimpleNamespace(
                node_id=1, clock=SystemClock(), controller=channel, quotas=NO_QUOTAS
            )
            answer = await answer_soon(broker, ApiKey.CREATE_TOPICS, 7, topics=[new_topic("a")])
            with pytest.raises(KafkaError):
                await channel.ask(ApiKey.UNREGISTER_BROKER, {"broker_id": 1})
            return answer.topics[0].error_code

    with controller_process(tmp_path) as (process, port):
        process.kill()
        process.wait()
        assert asyncio.run(run(port)) == ErrorCode.REQUEST_TIMED_OUT
