"""Three brokers of a separate controller restart in turn while clients create topics."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.cluster.own_controller import own_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from compat_tests.cluster.nodes import Cluster

NODES = (1, 2, 3)
PATIENCE_S = 60.0
SETTINGS = {
    "default.replication.factor": "3",
    "auto.create.topics.enable": "true",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = own_cluster(tmp_path, SETTINGS)
    try:
        for node_id in NODES:
            cluster.wirebroker(node_id)
        yield cluster
    finally:
        cluster.stop()


class Creator:
    """Creates topics with three replicas, one after another, until it is stopped.

    Attributes:
        stopping: Set while a broker is shutting down: Kafka refuses a third replica then.
        created: The number of created topics.
        refused: Errors of creations that began and ended while no broker was shutting down.
    """

    def __init__(self, bootstrap: str) -> None:
        self.stopping = threading.Event()
        self.created = 0
        self.refused: list[str] = []
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Creator:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def create(self, name: str) -> None:
        topic = NewTopic(name, 1, 3)
        for future in self._admin.create_topics([topic], operation_timeout=30).values():
            future.result(PATIENCE_S)

    def _run(self) -> None:
        number = 0
        while not self._is_over.is_set():
            number += 1
            was_stopping = self.stopping.is_set()
            try:
                self.create(f"always-{number}")
                self.created += 1
            except KafkaException as error:
                code = error.args[0].code()
                # The broker that received the request has stopped.
                if code in {KafkaError._TRANSPORT, KafkaError._TIMED_OUT}:
                    continue
                is_expected_error = code == KafkaError.INVALID_REPLICATION_FACTOR
                if not (is_expected_error and (was_stopping or self.stopping.is_set())):
                    self.refused.append(str(error))


@pytest.mark.long
def test_clients_create_topics_during_rolling_restart(cluster: Cluster) -> None:
    with Creator(cluster.bootstrap) as creator:
        for node_id in NODES:
            creator.create(f"led-{node_id}")
            creator.stopping.set()
            cluster.brokers[node_id].stop()
            creator.stopping.clear()
            before = creator.created
            creator.create(f"while-{node_id}-is-away")
            auto_create(cluster, f"auto-{node_id}")
            if node_id == NODES[0]:
                begin_transactions(cluster)
            cluster.brokers[node_id].start()
            assert creator.created > before
    assert not creator.refused


def auto_create(cluster: Cluster, topic: str) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    producer.produce(topic, b"value")
    assert producer.flush(PATIENCE_S) == 0


def begin_transactions(cluster: Cluster) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": "first"})
    producer.init_transactions(PATIENCE_S)
