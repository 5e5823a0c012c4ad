"""Topics and configs through the admin clients of confluent-kafka, kafka-python and aiokafka."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin import NewTopic as AioNewTopic
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
)
from kafka import KafkaAdminClient
from kafka import errors as python_errors
from kafka.admin import ConfigFilterType
from kafka.admin import ConfigResource as PythonResource
from kafka.admin import ConfigResourceType as PythonResourceType

from compat_tests.clients.message import WAIT_S
from compat_tests.support import topics
from tests.support.tools.waiting import eventually
from wirebroker.base import clock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.brokers.brokers import Broker

ERROR = KafkaError


of_confluent, of_kafka_python, of_aiokafka = (
    pytest.mark.shows("admin", client) for client in ("confluent-kafka", "kafka-python", "aiokafka")
)


@pytest.fixture(scope="module")
def admin(broker: Broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


@pytest.fixture(scope="module")
def python_admin(broker: Broker) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    yield client
    client.close()


def confluent_error(futures: dict[str, Any], name: str) -> int:
    with pytest.raises(KafkaException) as raised:
        futures[name].result(WAIT_S)
    return int(raised.value.args[0].code())


def entries(admin: AdminClient, topic: str) -> dict[str, Any]:
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    return admin.describe_configs([resource])[resource].result(WAIT_S)


def alter(admin: AdminClient, topic: str, *changes: tuple[str, AlterConfigOpType, str]) -> None:
    resource = ConfigResource(
        ConfigResource.Type.TOPIC,
        topic,
        incremental_configs=[
            ConfigEntry(name, value, incremental_operation=operation)
            for name, operation, value in changes
        ],
    )
    admin.incremental_alter_configs([resource])[resource].result(WAIT_S)


def partition_count(admin: AdminClient, topic: str) -> int:
    return len(admin.list_topics(topic, timeout=WAIT_S).topics[topic].partitions)


@of_confluent
def test_confluent_creates_a_topic_with_a_leader_for_each_partition(
    admin: AdminClient, topic: str
) -> None:
    new = NewTopic(topic, 4, 1, config={"cleanup.policy": "compact"})
    admin.create_topics([new])[topic].result(WAIT_S)
    eventually(lambda: partition_count(admin, topic) == 4)
    metadata = admin.list_topics(topic, timeout=WAIT_S).topics[topic]
    assert metadata.error is None
    assert sorted(metadata.partitions) == [0, 1, 2, 3]
    for partition in metadata.partitions.values():
        assert partition.error is None
        assert partition.replicas == partition.isrs == [partition.leader]


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (("{topic}", 1, 1, {}), ERROR.TOPIC_ALREADY_EXISTS),
        (("a b", 1, 1, {}), ERROR.TOPIC_EXCEPTION),
        (("{topic}2", 0, 1, {}), ERROR.INVALID_PARTITIONS),
        (("{topic}2", 1, 5, {}), ERROR.INVALID_REPLICATION_FACTOR),
        (("{topic}2", 1, 1, {"retention.ms": "soon"}), ERROR.INVALID_CONFIG),
        (("{topic}2", 1, 1, {"no.such.config": "1"}), ERROR.INVALID_CONFIG),
    ],
    ids=["exists", "bad name", "no partitions", "too many replicas", "bad config", "no config"],
)
@of_confluent
def test_confluent_gets_reason_for_rejected_topic_creation(
    admin: AdminClient, broker: Broker, topic: str, new: tuple[Any, ...], expected: int
) -> None:
    topics.create(broker.bootstrap, topic)
    template, partitions, replicas, configs = new
    name = template.format(topic=topic)
    futures = admin.create_topics([NewTopic(name, partitions, replicas, config=configs)])
    assert confluent_error(futures, name) == expected


@of_confluent
def test_confluent_validate_only_creates_no_topic(admin: AdminClient, topic: str) -> None:
    admin.create_topics([NewTopic(topic, 1, 1)], validate_only=True)[topic].result(WAIT_S)
    assert topic not in topics.names(admin)


@of_confluent
def test_confluent_adds_partitions_but_cannot_remove_them(
    admin: AdminClient, broker: Broker, topic: str
) -> None:
    topics.create(broker.bootstrap, topic, partitions=2)
    admin.create_partitions([NewPartitions(topic, 5)])[topic].result(WAIT_S)
    eventually(lambda: partition_count(admin, topic) == 5)
    futures = admin.create_partitions([NewPartitions(topic, 3)])
    assert confluent_error(futures, topic) == ERROR.INVALID_PARTITIONS
    futures = admin.create_partitions([NewPartitions(topic + "2", 3)])
    assert confluent_error(futures, topic + "2") == ERROR.UNKNOWN_TOPIC_OR_PART


@of_confluent
def test_confluent_deletes_topic_only_once(admin: AdminClient, broker: Broker, topic: str) -> None:
    topics.create(broker.bootstrap, topic)
    admin.delete_topics([topic])[topic].result(WAIT_S)
    eventually(lambda: topic not in topics.names(admin))
    assert confluent_error(admin.delete_topics([topic]), topic) == ERROR.UNKNOWN_TOPIC_OR_PART


@of_confluent
def test_confluent_describes_config_sources(admin: AdminClient, broker: Broker, topic: str) -> None:
    topics.create(broker.bootstrap, topic, configs={"retention.ms": "3600000"})
    configs = entries(admin, topic)
    assert configs["retention.ms"].value == "3600000"
    assert configs["retention.ms"].source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    assert not configs["retention.ms"].is_default
    assert configs["segment.bytes"].value == "1073741824"
    assert configs["segment.bytes"].source == ConfigSource.DEFAULT_CONFIG.value
    assert configs["segment.bytes"].is_default


@of_confluent
def test_confluent_sets_appends_subtracts_and_deletes_config(
    admin: AdminClient, broker: Broker, topic: str
) -> None:
    topics.create(broker.bootstrap, topic, configs={"cleanup.policy": "delete"})
    alter(admin, topic, ("max.message.bytes", AlterConfigOpType.SET, "2000000"))
    alter(admin, topic, ("cleanup.policy", AlterConfigOpType.APPEND, "compact"))
    eventually(lambda: entries(admin, topic)["cleanup.policy"].value == "delete,compact")
    assert entries(admin, topic)["max.message.bytes"].value == "2000000"
    alter(
        admin,
        topic,
        ("cleanup.policy", AlterConfigOpType.SUBTRACT, "delete"),
        ("max.message.bytes", AlterConfigOpType.DELETE, ""),
    )
    eventually(lambda: entries(admin, topic)["cleanup.policy"].value == "compact")
    assert entries(admin, topic)["max.message.bytes"].value == "1048588"


@of_confluent
def test_confluent_gets_reason_for_rejected_config_change(
    admin: AdminClient, broker: Broker, topic: str
) -> None:
    topics.create(broker.bootstrap, topic)
    with pytest.raises(KafkaException) as raised:
        alter(admin, topic, ("segment.bytes", AlterConfigOpType.SET, "many"))
    assert raised.value.args[0].code() == ERROR.INVALID_CONFIG
    with pytest.raises(KafkaException) as raised:
        alter(admin, topic + "2", ("segment.bytes", AlterConfigOpType.SET, "2000000"))
    assert raised.value.args[0].code() == ERROR.UNKNOWN_TOPIC_OR_PART
    with pytest.raises(KafkaException) as raised:
        entries(admin, topic + "2")
    assert raised.value.args[0].code() == ERROR.UNKNOWN_TOPIC_OR_PART


@of_confluent
def test_confluent_describes_the_cluster(admin: AdminClient, broker: Broker) -> None:
    cluster = admin.describe_cluster(request_timeout=WAIT_S).result()
    assert len(cluster.cluster_id) == 22
    assert [(node.host, node.port) for node in cluster.nodes] == [("127.0.0.1", broker.port)]
    assert cluster.controller.id == cluster.nodes[0].id


@of_kafka_python
def test_kafka_python_creates_grows_lists_and_deletes_a_topic(
    python_admin: KafkaAdminClient, topic: str
) -> None:
    python_admin.create_topics({topic: {"num_partitions": 2, "replication_factor": 1}})
    eventually(lambda: topic in python_admin.list_topics())
    python_admin.create_partitions({topic: 3})
    eventually(lambda: len(python_admin.describe_topics([topic])[0]["partitions"]) == 3)
    with pytest.raises(python_errors.TopicAlreadyExistsError):
        python_admin.create_topics({topic: {"num_partitions": 2, "replication_factor": 1}})
    with pytest.raises(python_errors.InvalidPartitionsError):
        python_admin.create_partitions({topic: 3})
    python_admin.delete_topics([topic])
    eventually(lambda: topic not in python_admin.list_topics())
    with pytest.raises(python_errors.UnknownTopicOrPartitionError):
        python_admin.delete_topics([topic])


@of_kafka_python
def test_kafka_python_changes_and_describes_configs(
    python_admin: KafkaAdminClient, broker: Broker, topic: str
) -> None:
    topics.create(broker.bootstrap, topic)

    def resource(configs: dict[str, Any] | None) -> PythonResource:
        return PythonResource(PythonResourceType.TOPIC, topic, configs)

    def value() -> str:
        resources = [resource(None)]
        answer = python_admin.describe_configs(resources, config_filter=ConfigFilterType.ALL)
        return str(answer["topic"][topic]["retention.ms"]["value"])

    python_admin.alter_configs([resource({"retention.ms": "1000"})])
    eventually(lambda: value() == "1000")
    python_admin.alter_configs([resource({"retention.ms": ("DELETE", None)})])
    eventually(lambda: value() == "604800000")
    answer = python_admin.alter_configs([resource({"retention.ms": "soon"})])
    assert "InvalidConfigurationError" in answer["topic"][topic]


@of_aiokafka
async def test_aiokafka_creates_describes_and_deletes_a_topic(broker: Broker, topic: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
    await admin.start()
    try:
        await admin.create_topics([AioNewTopic(topic, 2, 1)])
        async with asyncio.timeout(WAIT_S):
            while topic not in await admin.list_topics():
                await clock.next_turn()
        (described,) = await admin.describe_topics([topic])
        assert len(described["partitions"]) == 2
        await admin.delete_topics([topic])
        async with asyncio.timeout(WAIT_S):
            while topic in await admin.list_topics():
                await clock.next_turn()
    finally:
        await admin.close()
