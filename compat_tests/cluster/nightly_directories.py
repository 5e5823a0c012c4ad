"""Brokers of either kind start without one of their directories, under either kind of controller.

The other broker leads the missing partitions, the rest stay available; once the directory is back
its replicas catch up. New replicas are not placed in cordoned directories.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
)

from compat_tests.cluster.nodes import FIRST_CONTROLLER
from compat_tests.cluster.own_controller import own_cluster
from compat_tests.cluster.test_log_directories import (
    PARTITIONS,
    QUICK,
    WAIT_S,
    held,
    in_sync,
    produce,
    spread,
    two_directories,
    until_led_by,
)
from compat_tests.support.raw_requests import BROKER_RESOURCE, SET, Requests
from tests.support.tools.ports import HOST
from tests.support.tools.waiting import eventually
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from compat_tests.cluster.conftest import StartCluster
    from compat_tests.cluster.nodes import Cluster
    from tests.support.brokers.brokers import Broker

pytestmark = [pytest.mark.java, pytest.mark.long]


def isrs(cluster: Cluster, topic: str, indexes: Collection[int]) -> list[set[int]]:
    metadata = AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics(topic, timeout=10)
    return [set(metadata.topics[topic].partitions[index].isrs) for index in indexes]


def start_without_a_directory(cluster: Cluster, broker: Broker, node_id: int, other: int) -> None:
    topic = f"kept-by-{node_id}"
    first_indexes, second_indexes = spread(cluster, topic, broker, node_id, other)
    first, second = broker.data_dirs
    broker.stop()
    renamed_directory = second.rename(second.with_name(f"away-{node_id}"))
    second.write_text("no directory")
    broker.start()
    eventually(
        lambda: isrs(cluster, topic, first_indexes) == [{1, 2}] * len(first_indexes),
        timeout_s=WAIT_S,
    )
    eventually(
        lambda: isrs(cluster, topic, second_indexes) == [{other}] * len(second_indexes),
        timeout_s=WAIT_S,
    )
    until_led_by(cluster, topic, second_indexes, other)
    assert held(first, topic) == first_indexes
    produce(cluster, topic)
    broker.stop()
    second.unlink()
    renamed_directory.rename(second)
    broker.start()
    eventually(lambda: in_sync(cluster, topic), timeout_s=WAIT_S)
    assert (held(first, topic), held(second, topic)) == (first_indexes, second_indexes)
    produce(cluster, topic)


def cordon(cluster: Cluster, node_id: int, value: str) -> None:
    operation = AlterConfigOpType.SET
    entry = ConfigEntry("cordoned.log.dirs", value, incremental_operation=operation)
    resource = ConfigResource(ConfigResource.Type.BROKER, str(node_id), incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": cluster.brokers[node_id].bootstrap})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(WAIT_S)


def told_by_controller(cluster: Cluster, node_id: int, value: str) -> ErrorCode:
    """Set a broker's cordoned directories at a controller; return the response."""
    config = {"name": "cordoned.log.dirs", "config_operation": SET, "value": value}
    resource = {"resource_type": BROKER_RESOURCE, "resource_name": str(node_id)}
    body = {"resources": [{**resource, "configs": [config]}], "validate_only": False}
    requests = Requests((HOST, cluster.places[FIRST_CONTROLLER]))
    try:
        answer = requests.try_ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, body)
    finally:
        requests.close()
    return ErrorCode(answer.responses[0].error_code)


def refuses(cluster: Cluster, replicas: int) -> bool:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    new_topic = NewTopic("tried", 1, replication_factor=replicas)
    (future,) = admin.create_topics([new_topic], validate_only=True).values()
    try:
        future.result(WAIT_S)
    except KafkaException as error:
        return bool(error.args[0].code() == KafkaError.INVALID_REPLICATION_FACTOR)
    return False


def keep_new_replicas_away(cluster: Cluster, node_id: int, other: int) -> None:
    """Cordon a broker, check that it gets no new replicas, and undo it."""
    assert not refuses(cluster, 2)
    # Controllers do not know a broker's directories: they can uncordon, but not cordon.
    assert told_by_controller(cluster, node_id, "*") is ErrorCode.INVALID_CONFIG
    cordon(cluster, node_id, "*")
    eventually(lambda: refuses(cluster, 2), timeout_s=WAIT_S)
    assert told_by_controller(cluster, node_id, "*,/tmp") is ErrorCode.INVALID_CONFIG
    assert told_by_controller(cluster, node_id, " * ") is ErrorCode.NONE
    assert told_by_controller(cluster, node_id, "") is ErrorCode.NONE
    eventually(lambda: not refuses(cluster, 2), timeout_s=WAIT_S)
    cordon(cluster, node_id, "*")
    eventually(lambda: refuses(cluster, 2), timeout_s=WAIT_S)
    topic = f"not-on-{node_id}"
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    (future,) = admin.create_topics([NewTopic(topic, 6, replication_factor=1)]).values()
    future.result(WAIT_S)
    until_led_by(cluster, topic, range(PARTITIONS), other)
    cordon(cluster, other, "*")
    eventually(lambda: refuses(cluster, 1), timeout_s=WAIT_S)
    for broker_id in (node_id, other):
        cordon(cluster, broker_id, "")
    eventually(lambda: not refuses(cluster, 2), timeout_s=WAIT_S)


@pytest.mark.timeout(600)
def test_lost_directories_under_kafka_controller(start_cluster: StartCluster) -> None:
    cluster = start_cluster(settings=QUICK)
    java = cluster.java_broker(1, two_directories(cluster, 1))
    wirebroker = cluster.wirebroker(2, two_directories(cluster, 2))
    start_without_a_directory(cluster, java, 1, 2)
    start_without_a_directory(cluster, wirebroker, 2, 1)
    keep_new_replicas_away(cluster, 2, 1)


@pytest.mark.timeout(600)
def test_lost_directories_under_own_controller(tmp_path: Path) -> None:
    cluster = own_cluster(tmp_path, QUICK)
    try:
        java = cluster.java_broker(1, two_directories(cluster, 1))
        wirebroker = cluster.wirebroker(2, two_directories(cluster, 2))
        start_without_a_directory(cluster, java, 1, 2)
        start_without_a_directory(cluster, wirebroker, 2, 1)
        keep_new_replicas_away(cluster, 1, 2)
    finally:
        cluster.stop()
