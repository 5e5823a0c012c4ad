"""A wirebroker joins Apache Kafka's controllers, serves, stops and returns."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.clients.java import CONFIGS, TOPICS, run
from compat_tests.cluster.nodes import CLUSTER_ID, JavaBroker, JoiningBroker
from compat_tests.support.raw_requests import Requests
from tests.support.brokers.brokers import BrokerError
from tests.support.tools.ports import HOST
from tests.support.tools.waiting import eventually
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compat_tests.cluster.conftest import StartCluster
    from compat_tests.cluster.nodes import Cluster

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
    replicas = [list(each) for each in assignment]
    made = NewTopic(topic, len(replicas), replica_assignment=replicas)
    for future in admin.create_topics([made], operation_timeout=WAIT_S).values():
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
    found = consumer.consume(count, timeout=WAIT_S)
    consumer.close()
    return [(message.value() or b"").decode() for message in found]


def values(begin: int, end: int) -> list[str]:
    return [f"value {number}" for number in range(begin, end)]


def test_a_member_serves_stops_is_killed_and_comes_back(start_cluster: StartCluster) -> None:
    cluster = start_cluster()
    ours = cluster.wirebroker(2)
    run(ours.bootstrap, TOPICS, "--create", "--topic", "first", "--partitions", "3")
    line = "Leader: 2\tReplicas: 2\tIsr: 2"
    described = (TOPICS, "--describe", "--topic", "first")
    eventually(lambda: run(ours.bootstrap, *described).count(line) == 3)
    produce(cluster, "first", values(0, 100))
    ours.restart()
    produce(cluster, "first", values(100, 200))
    ours.kill9()
    ours.start()
    produce(cluster, "first", values(200, 300))
    assert read(cluster, "first", 300) == values(0, 300)
    # Configs set at one broker apply at all.
    entity = ("--entity-type", "topics", "--entity-name", "first")
    run(ours.bootstrap, CONFIGS, "--alter", *entity, "--add-config", "retention.ms=1234567")
    eventually(
        lambda: "retention.ms=1234567" in run(ours.bootstrap, CONFIGS, "--describe", *entity)
    )

    java = cluster.java_broker(1)
    create(cluster, "theirs", [[1]])
    create(cluster, "ours", [[2]])
    produce(cluster, "theirs", values(0, 10))
    produce(cluster, "ours", values(0, 10))
    assert read(cluster, "theirs", 10) == read(cluster, "ours", 10) == values(0, 10)
    java.stop()
    admin = AdminClient({"bootstrap.servers": ours.bootstrap})
    eventually(lambda: list(admin.list_topics(timeout=WAIT_S).brokers) == [2])
    # Unregister it for good, once.
    requests = Requests((HOST, ours.port))
    asked = (ApiKey.UNREGISTER_BROKER, 0, {"broker_id": 1})
    assert requests.try_ask(*asked).error_code == ErrorCode.NONE
    assert requests.try_ask(*asked).error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    requests.close()


def test_a_snapshot_is_loaded_and_the_log_goes_on_behind_it(start_cluster: StartCluster) -> None:
    cluster = start_cluster(settings=SMALL_LOGS)
    ours = cluster.wirebroker(2)
    for number in range(20):
        create(cluster, f"topic-{number}", [[2]] * 20)
    (controller,) = cluster.controllers.values()
    log = controller.data_dir / "__cluster_metadata-0"
    # Apache Kafka deletes log segments before a snapshot once a minute.
    eventually(lambda: not (log / f"{0:020d}.log").exists(), timeout_s=90)
    other = cluster.wirebroker(3)
    assert "loading metadata snapshot" in other.log.read_text()
    create(cluster, "behind-it", [[3]])
    produce(cluster, "behind-it", values(0, 10))
    other.kill9()
    other.start()
    assert read(cluster, "behind-it", 10) == values(0, 10)
    admin = AdminClient({"bootstrap.servers": other.bootstrap})
    topics = admin.list_topics(timeout=WAIT_S).topics.keys() - {"__consumer_offsets"}
    assert topics == {"behind-it", *(f"topic-{number}" for number in range(20))}
    assert (ours.data_dir / "__cluster_metadata-0").is_dir()


def test_the_active_controller_dies_and_nobody_is_fenced(start_cluster: StartCluster) -> None:
    cluster = start_cluster(controllers=3)
    ours = cluster.wirebroker(2)
    create(cluster, "before", [[2]])
    for controller in cluster.controllers.values():
        controller.kill9()
        produce(cluster, "before", values(0, 10))
        create(cluster, f"without-{controller.node_id}", [[2]])
        controller.start()
    assert "was fenced" not in ours.log.read_text()
    assert len(read(cluster, "before", 30)) == 30


def test_a_directory_of_another_cluster_is_refused(start_cluster: StartCluster) -> None:
    cluster = start_cluster()
    data = cluster.folder / "elsewhere"
    data.mkdir()
    (data / "meta.properties").write_text(
        "version=1\ncluster.id=AAAAAAAAAAAAAAAAAAAAAA\nnode.id=2\n"
    )
    (place,) = cluster.places.values()
    command = [sys.executable, "-m", "wirebroker", "join", f"127.0.0.1:{place}", "--port", "0"]
    done = subprocess.run(
        [*command, "--data-dir", str(data)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    line = done.stderr.splitlines()[-1]  # after the progress output
    assert "belongs to cluster AAAAAAAAAAAAAAAAAAAAAA" in line
    assert CLUSTER_ID in line


def test_no_broker_has_the_id_of_a_voter(start_cluster: StartCluster) -> None:
    cluster = start_cluster()
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
    places = {"controller.quorum.bootstrap.servers": f"127.0.0.1:{port}"}
    theirs = JavaBroker(cluster, voter, {**places, "controller.quorum.voters": ""})
    theirs.directory = cluster.folder / "theirs"
    theirs.directory.mkdir()
    with pytest.raises(BrokerError, match="inconsistent with current leader"):
        theirs.start()


def test_a_new_directory_takes_the_lowest_free_id(start_cluster: StartCluster) -> None:
    cluster = start_cluster()
    cluster.wirebroker(1)
    (place,) = cluster.places.values()
    other = JoiningBroker(cluster.folder / "joined", f"127.0.0.1:{place}")
    cluster.brokers[2] = other
    other.start()
    assert "node.id=2\n" in (other.data_dir / "meta.properties").read_text()
    create(cluster, "on-both", [[1], [2]])
    produce(cluster, "on-both", values(0, 10))
    other.restart()
    assert read(cluster, "on-both", 10) == values(0, 10)


def test_a_node_is_moved_from_apache_kafka_and_back(start_cluster: StartCluster) -> None:
    cluster = start_cluster()
    theirs = cluster.java_broker(2)
    create(cluster, "moved", [[2]])
    produce(cluster, "moved", values(0, 100))
    theirs.stop()
    ours = cluster.wirebroker(2)
    assert read(cluster, "moved", 100) == values(0, 100)
    produce(cluster, "moved", values(100, 200))
    create(cluster, "made-here", [[2]])
    produce(cluster, "made-here", values(0, 10))
    ours.stop()
    cluster.java_broker(2)
    assert read(cluster, "moved", 200) == values(0, 200)
    assert read(cluster, "made-here", 10) == values(0, 10)
