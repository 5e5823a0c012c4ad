"""A wirebroker joins Apache Kafka's controllers, serves, stops and returns."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.clients.java import CONFIGS, TOPICS, run
from compat_tests.cluster.nodes import CLUSTER_ID, Cluster, JavaBroker, JoiningBroker
from compat_tests.support.raw_requests import Requests
from tests.support.brokers.brokers import BrokerError
from tests.support.tools.ports import HOST
from tests.support.tools.waiting import eventually
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from compat_tests.cluster.conftest import StartCluster

pytestmark = pytest.mark.java

WAIT_S = 30
# So small that after some topics a controller has snapshots and deletes earlier log segments.
SMALL_LOGS = {
    "metadata.log.max.record.bytes.between.snapshots": "4000",
    "internal.metadata.log.segment.bytes": "4096",
    "metadata.max.retention.bytes": "4096",
}


def create(cluster: Cluster, topic: str, assignment: Sequence[Sequence[int]]) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    replicas = [list(broker_ids) for broker_ids in assignment]
    new_topic = NewTopic(topic, len(replicas), replica_assignment=replicas)
    for future in admin.create_topics([new_topic], operation_timeout=WAIT_S).values():
        future.result(WAIT_S)


def produce(cluster: Cluster, topic: str, values: Sequence[str]) -> None:
    failed: list[object] = []

    def delivered(error: object, _message: object) -> None:
        if error is not None:
            failed.append(error)

    producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True})
    for value in values:
        producer.produce(topic, value, partition=0, on_delivery=delivered)
    assert producer.flush(WAIT_S) == 0
    assert not failed


def read(cluster: Cluster, topic: str, count: int) -> list[str]:
    consumer = Consumer(
        {"bootstrap.servers": cluster.bootstrap, "group.id": "reader", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    messages = consumer.consume(count, timeout=WAIT_S)
    consumer.close()
    return [(message.value() or b"").decode() for message in messages]


def values(begin: int, end: int) -> list[str]:
    return [f"value {number}" for number in range(begin, end)]


@pytest.fixture(scope="module")
def idle_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster of one controller, to which several tests bring their own brokers."""
    cluster = Cluster(tmp_path_factory.mktemp("idle"))
    try:
        cluster.start_controllers()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def old_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster with many topics, whose controller deletes log segments."""
    cluster = Cluster(tmp_path_factory.mktemp("old"), settings=SMALL_LOGS)
    try:
        cluster.start_controllers()
        cluster.wirebroker(2)
        for number in range(20):
            create(cluster, f"topic-{number}", [[2]] * 20)
        yield cluster
    finally:
        cluster.stop()


def test_directory_of_another_cluster_is_rejected(idle_cluster: Cluster) -> None:
    cluster = idle_cluster
    data = cluster.folder / "elsewhere"
    data.mkdir()
    (data / "meta.properties").write_text(
        "version=1\ncluster.id=AAAAAAAAAAAAAAAAAAAAAA\nnode.id=2\n"
    )
    (port,) = cluster.places.values()
    command = [sys.executable, "-m", "wirebroker", "join", f"127.0.0.1:{port}", "--port", "0"]
    done = subprocess.run(
        [*command, "--data-dir", str(data)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    line = done.stderr.splitlines()[-1]  # after the progress output
    assert "belongs to cluster AAAAAAAAAAAAAAAAAAAAAA" in line
    assert CLUSTER_ID in line


def test_broker_with_id_of_voter_is_rejected(idle_cluster: Cluster) -> None:
    cluster = idle_cluster
    ((voter, port),) = cluster.places.items()
    data = cluster.folder / "new"
    command = [sys.executable, "-m", "wirebroker", "join", f"127.0.0.1:{port}", "--port", "0"]
    command += ["--node-id", str(voter), "--data-dir", str(data)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    line = done.stderr.splitlines()[-1]
    assert f"{voter} is the node id of one of the cluster's controllers" in line
    assert not data.exists()
    # With only these settings, Apache Kafka's broker ends once it knows the leader.
    bootstrap_servers = {"controller.quorum.bootstrap.servers": f"127.0.0.1:{port}"}
    java = JavaBroker(cluster, voter, {**bootstrap_servers, "controller.quorum.voters": ""})
    java.directory = cluster.folder / "theirs"
    java.directory.mkdir()
    with pytest.raises(BrokerError, match="inconsistent with current leader"):
        java.start()


def test_member_serves_before_and_after_stop_and_kill(start_cluster: StartCluster) -> None:
    cluster = start_cluster()
    wirebroker = cluster.wirebroker(2)
    run(wirebroker.bootstrap, TOPICS, "--create", "--topic", "first", "--partitions", "3")
    line = "Leader: 2\tReplicas: 2\tIsr: 2"
    described = (TOPICS, "--describe", "--topic", "first")
    eventually(lambda: run(wirebroker.bootstrap, *described).count(line) == 3)
    produce(cluster, "first", values(0, 100))
    wirebroker.restart()
    produce(cluster, "first", values(100, 200))
    wirebroker.kill9()
    wirebroker.start()
    produce(cluster, "first", values(200, 300))
    assert read(cluster, "first", 300) == values(0, 300)
    # Configs set at one broker apply at all.
    entity = ("--entity-type", "topics", "--entity-name", "first")
    run(wirebroker.bootstrap, CONFIGS, "--alter", *entity, "--add-config", "retention.ms=1234567")
    eventually(
        lambda: "retention.ms=1234567" in run(wirebroker.bootstrap, CONFIGS, "--describe", *entity)
    )

    java = cluster.java_broker(1)
    create(cluster, "theirs", [[1]])
    create(cluster, "ours", [[2]])
    produce(cluster, "theirs", values(0, 10))
    produce(cluster, "ours", values(0, 10))
    assert read(cluster, "theirs", 10) == read(cluster, "ours", 10) == values(0, 10)
    java.stop()
    admin = AdminClient({"bootstrap.servers": wirebroker.bootstrap})
    eventually(lambda: list(admin.list_topics(timeout=WAIT_S).brokers) == [2])
    # Unregister it for good, once.
    requests = Requests((HOST, wirebroker.port))
    unregistration = (ApiKey.UNREGISTER_BROKER, 0, {"broker_id": 1})
    assert requests.try_ask(*unregistration).error_code == ErrorCode.NONE
    assert requests.try_ask(*unregistration).error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    requests.close()


@pytest.mark.nightly  # the unit tests of net/client/test_active_controller.py find the next one
def test_killed_active_controller_fences_no_broker(start_cluster: StartCluster) -> None:
    cluster = start_cluster(controllers=3)
    wirebroker = cluster.wirebroker(2)
    create(cluster, "before", [[2]])
    for controller in cluster.controllers.values():
        controller.kill9()
        produce(cluster, "before", values(0, 10))
        create(cluster, f"without-{controller.node_id}", [[2]])
        controller.start()
    assert "was fenced" not in wirebroker.log.read_text()
    assert len(read(cluster, "before", 30)) == 30


def test_new_directory_gets_lowest_free_id(idle_cluster: Cluster) -> None:
    cluster = idle_cluster
    cluster.wirebroker(1)
    (port,) = cluster.places.values()
    other = JoiningBroker(cluster.folder / "joined", f"127.0.0.1:{port}")
    cluster.brokers[2] = other
    other.start()
    assert "node.id=2\n" in (other.data_dir / "meta.properties").read_text()
    create(cluster, "on-both", [[1], [2]])
    produce(cluster, "on-both", values(0, 10))
    other.restart()
    assert read(cluster, "on-both", 10) == values(0, 10)


@pytest.mark.nightly  # test_rolling_move.py moves two directories with each change
def test_node_directory_moves_from_apache_kafka_and_back(start_cluster: StartCluster) -> None:
    cluster = start_cluster()
    java = cluster.java_broker(2)
    create(cluster, "moved", [[2]])
    produce(cluster, "moved", values(0, 100))
    java.stop()
    wirebroker = cluster.wirebroker(2)
    assert read(cluster, "moved", 100) == values(0, 100)
    produce(cluster, "moved", values(100, 200))
    create(cluster, "made-here", [[2]])
    produce(cluster, "made-here", values(0, 10))
    wirebroker.stop()
    cluster.java_broker(2)
    assert read(cluster, "moved", 200) == values(0, 200)
    assert read(cluster, "made-here", 10) == values(0, 10)


@pytest.mark.nightly  # waits a minute; quorum/log/test_metadata_snapshot.py loads snapshots
def test_member_loads_snapshot_and_following_log(old_cluster: Cluster) -> None:
    cluster = old_cluster
    (controller,) = cluster.controllers.values()
    log = controller.data_dir / "__cluster_metadata-0"
    # Apache Kafka deletes log segments before a snapshot once a minute.
    eventually(lambda: not (log / f"{0:020d}.log").exists(), timeout_s=90)
    other = cluster.wirebroker(3)
    # It begins with a snapshot that it has fetched.
    own_log = other.data_dir / "__cluster_metadata-0"
    assert not (own_log / f"{0:020d}.log").exists()
    assert list(own_log.glob("*.checkpoint"))
    create(cluster, "behind-it", [[3]])
    produce(cluster, "behind-it", values(0, 10))
    other.kill9()
    other.start()
    assert read(cluster, "behind-it", 10) == values(0, 10)
    admin = AdminClient({"bootstrap.servers": other.bootstrap})
    topics = admin.list_topics(timeout=WAIT_S).topics.keys() - {"__consumer_offsets"}
    assert topics == {"behind-it", *(f"topic-{number}" for number in range(20))}
    assert (cluster.brokers[2].data_dir / "__cluster_metadata-0").is_dir()
