"""Kafka's tools and newer groups with a cluster of both kinds of brokers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer

from compat_tests.clients.java import CONFIGS, TOPICS, attempt, run
from compat_tests.cluster.test_membership import WAIT_S, create, produce, read, values
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from compat_tests.cluster.conftest import StartCluster
    from tests.support.brokers.brokers import Broker

pytestmark = pytest.mark.java

_TOOLS = "org.apache.kafka.tools"
REASSIGN = f"{_TOOLS}.reassign.ReassignPartitionsCommand"
QUORUM = f"{_TOOLS}.MetadataQuorumCommand"
ELECTION = f"{_TOOLS}.LeaderElectionCommand"
LOG_DIRS = f"{_TOOLS}.LogDirsCommand"
SHARE_CONSUMER = f"{_TOOLS}.consumer.ConsoleShareConsumer"


def roles(broker: Broker) -> dict[str, str]:
    rows = run(broker.bootstrap, QUORUM, "describe", "--replication").splitlines()[1:]
    return {row.split()[0]: row.split()[-1] for row in rows if row.strip()}


def is_described(broker: Broker, topic: str, line: str) -> bool:
    """Return whether the tool prints this line, which may fail while a broker catches up."""
    _, printed = attempt(broker.bootstrap, TOPICS, "--describe", "--topic", topic)
    return line in printed


def held(broker: Broker, topic: str) -> dict[int, int]:
    output = run(broker.bootstrap, LOG_DIRS, "--describe", "--topic-list", topic)
    broker_entries = json.loads(output.splitlines()[-1])["brokers"]
    return {entry["broker"]: len(entry["logDirs"][0]["partitions"]) for entry in broker_entries}


def test_kafka_tools_work_with_wirebroker_in_cluster(start_cluster: StartCluster) -> None:
    cluster = start_cluster()
    cluster.java_broker(1)
    wirebroker = cluster.wirebroker(2)
    create(cluster, "moving", [[1]])
    produce(cluster, "moving", values(0, 100))
    eventually(lambda: roles(wirebroker) == {"101": "Leader", "1": "Observer", "2": "Observer"})

    plan = {"topic": "moving", "partition": 0, "replicas": [2]}
    file = cluster.folder / "plan.json"
    file.write_text(json.dumps({"version": 1, "partitions": [plan]}))
    plan_of = ("--reassignment-json-file", str(file))
    run(wirebroker.bootstrap, REASSIGN, "--execute", *plan_of, "--throttle", "10000000")
    eventually(
        lambda: (
            "is completed"
            in run(
                wirebroker.bootstrap, REASSIGN, "--verify", "--reassignment-json-file", str(file)
            )
        )
    )
    eventually(lambda: is_described(wirebroker, "moving", "Leader: 2\tReplicas: 2\tIsr: 2"))
    eventually(lambda: held(wirebroker, "moving") == {1: 0, 2: 1})
    assert read(cluster, "moving", 100) == values(0, 100)

    create(cluster, "led", [[1, 2]])
    eventually(lambda: is_described(wirebroker, "led", "Isr: 1,2"))
    plan = {"topic": "led", "partition": 0, "replicas": [2, 1]}
    file.write_text(json.dumps({"version": 1, "partitions": [plan]}))
    run(wirebroker.bootstrap, REASSIGN, "--execute", *plan_of)
    preferred = ("--election-type", "preferred", "--topic", "led", "--partition", "0")
    assert "led-0" in run(wirebroker.bootstrap, ELECTION, *preferred)
    eventually(lambda: is_described(wirebroker, "led", "Leader: 2\tReplicas: 2,1"))


@pytest.mark.nightly
def test_share_and_consumer_groups_read_partitions_led_by_wirebroker(
    start_cluster: StartCluster,
) -> None:
    cluster = start_cluster()
    java = cluster.java_broker(1)
    # Create these groups' internal topics while there is no other broker.
    create(cluster, "before", [[1]])
    produce(cluster, "before", values(0, 1))
    share = ("--timeout-ms", "8000", "--group")
    run(java.bootstrap, SHARE_CONSUMER, "--topic", "before", *share, "early")
    newer = {"group.protocol": "consumer", "auto.offset.reset": "earliest"}
    servers = {"bootstrap.servers": java.bootstrap}
    assert _consumed({**servers, **newer, "group.id": "g"}, "before", 1) == values(0, 1)

    cluster.wirebroker(2)
    create(cluster, "ours", [[2]])
    produce(cluster, "ours", values(0, 50))
    servers = {"bootstrap.servers": cluster.bootstrap}
    assert _consumed({**servers, **newer, "group.id": "g"}, "ours", 50) == values(0, 50)
    # A share group whose members connect to a wirebroker first reads from a Java leader.
    group = ("--entity-type", "groups", "--entity-name", "early")
    earliest = ("--alter", "--add-config", "share.auto.offset.reset=earliest")
    run(java.bootstrap, CONFIGS, *group, *earliest)
    create(cluster, "theirs", [[1]])
    produce(cluster, "theirs", values(0, 50))
    bootstrap = f"{cluster.brokers[2].bootstrap},{java.bootstrap}"
    output = run(bootstrap, SHARE_CONSUMER, "--topic", "theirs", *share, "early")
    assert output.splitlines()[:50] == values(0, 50)


def _consumed(settings: dict[str, str], topic: str, count: int) -> list[str]:
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    messages = consumer.consume(count, timeout=WAIT_S)
    consumer.commit(asynchronous=False)
    consumer.close()
    return [(message.value() or b"").decode() for message in messages]
