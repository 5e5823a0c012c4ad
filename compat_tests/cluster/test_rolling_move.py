"""A cluster's brokers are replaced by wirebrokers and back, one by one, under load."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer

from compat_tests.cluster.nodes import JavaBroker, MemberBroker
from compat_tests.cluster.replicated_load import WAIT_S, Load, create, isrs, read
from tests.support.tools.background import InBackground
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from compat_tests.cluster.conftest import StartCluster
    from compat_tests.cluster.nodes import Cluster

pytestmark = pytest.mark.java

SETTINGS = {
    "replica.lag.time.max.ms": "4000",
    "offsets.topic.replication.factor": "2",
    "offsets.topic.num.partitions": "4",
    # Only protocols that both kinds coordinate.
    "group.coordinator.rebalance.protocols": "classic",
}


class Reader(InBackground):
    """A group's consumer that reads continuously and keeps its records in order."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        super().__init__()
        self.values: list[str] = []
        self._consumer = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "group.id": "reader",
                "auto.offset.reset": "earliest",
                "topic.metadata.refresh.interval.ms": 1000,
            }
        )
        self._consumer.subscribe([topic])

    def _finish(self) -> None:
        self._consumer.close()

    def _run(self) -> None:
        while not self._is_over.is_set():
            message = self._consumer.poll(0.2)
            if message is not None and message.error() is None:
                self.values.append((message.value() or b"").decode())


def become(cluster: Cluster, node_id: int, kind: type[JavaBroker | MemberBroker]) -> None:
    """Replace a broker by one of the other kind, with the same folder and port."""
    old_broker = cluster.brokers[node_id]
    old_broker.stop()
    new_broker = kind(cluster, node_id)
    new_broker.port = old_broker.port
    cluster.brokers[node_id] = new_broker
    new_broker.start()
    eventually(lambda: isrs(cluster, ["t"])["t"] == {1, 2}, timeout_s=WAIT_S)


def test_cluster_under_load_moves_from_apache_kafka_and_back(start_cluster: StartCluster) -> None:
    cluster = start_cluster(settings=SETTINGS)
    cluster.java_broker(1)
    cluster.wirebroker(2)
    create(cluster, {"t": [1, 2]})
    eventually(lambda: isrs(cluster, ["t"])["t"] == {1, 2}, timeout_s=WAIT_S)
    with Reader(cluster, "t") as reader:
        with Load(cluster, ["t"]) as load:
            load.go_on()
            for node_id, kind in (
                (1, MemberBroker),  # only wirebrokers
                (2, JavaBroker),
                (2, MemberBroker),
                (1, JavaBroker),  # as in the beginning
            ):
                become(cluster, node_id, kind)
                load.go_on()
        assert not load.failed
        acknowledged = load.acknowledged["t"]
        eventually(lambda: acknowledged <= set(reader.values), timeout_s=WAIT_S)
    values = read(cluster, "t")
    assert len(values) == len(set(values))
    assert acknowledged <= set(values)
    # The group may read uncommitted records again, but skips none.
    order = {value: index for index, value in enumerate(values)}
    assert set(reader.values) == set(order)
