"""The three nodes of deploy/compose/three-nodes.yaml, started without an engine."""

from __future__ import annotations

import re
import signal
import subprocess
from functools import partial
from typing import TYPE_CHECKING, Final

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.container.start_scripts import environment_of, image_at
from tests.support.brokers import brokers
from tests.support.harness.project_files import ROOT
from tests.support.tools.ports import free_ports
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILE: Final = ROOT / "deploy" / "compose" / "three-nodes.yaml"
NODES: Final = ("kafka-1", "kafka-2", "kafka-3")
SETTING: Final = re.compile(r"^ +((?:KAFKA|CLUSTER)_\w+): (?:>-\n +)?(.*)$", re.MULTILINE)
WAIT_S: Final = 60
# As in the tests of clusters, so that a lost broker is noticed within three seconds.
SHORT: Final = {
    "KAFKA_BROKER_SESSION_TIMEOUT_MS": "3000",
    "KAFKA_BROKER_HEARTBEAT_INTERVAL_MS": "500",
}


def variables(node: str) -> dict[str, str]:
    """Return a service's environment: that of all nodes, and its own."""
    common, _, services = FILE.read_text().partition("\nservices:\n")
    (own,) = re.findall(rf"^  {node}:\n((?:    .*\n)+)", services, re.MULTILINE)
    return dict(SETTING.findall(common)) | dict(SETTING.findall(own))


class Node:
    """One service of the file, with local ports."""

    def __init__(self, folder: Path, name: str, ports: dict[str, tuple[int, int, int]]) -> None:
        inside, outside, controller = ports[name]
        self.port = outside
        settings = variables(name) | SHORT
        for node, (node_inside, node_outside, node_controller) in ports.items():
            number = NODES.index(node)
            for place, port in (
                (f"{node}:19092", node_inside),
                (f"localhost:{9092 + number}", node_outside),
                (f"{node}:19093", node_controller),
            ):
                settings = {
                    key: text.replace(place, f"127.0.0.1:{port}") for key, text in settings.items()
                }
        settings["KAFKA_LISTENERS"] = (
            f"INSIDE://127.0.0.1:{inside},OUTSIDE://127.0.0.1:{outside},"
            f"CONTROLLER://127.0.0.1:{controller}"
        )
        settings["KAFKA_WIREBROKER_HTTP_LISTENERS"] = "127.0.0.1:0"
        self._root = image_at(folder / name)
        self._environment = environment_of(self._root, settings)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self._root / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._root / "etc/kafka/docker/run"],
                cwd=self._root / "work",
                env=self._environment,
                stdout=log,
                stderr=log,
            )

    def kill(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[dict[str, Node]]:
    ports = free_ports(9)
    assigned = {name: (*ports[3 * i : 3 * i + 3],) for i, name in enumerate(NODES)}
    started = {name: Node(tmp_path, name, assigned) for name in NODES}  # type: ignore[arg-type]
    try:
        for node in started.values():
            node.start()
        yield started
    finally:
        for node in started.values():
            node.kill()


@pytest.mark.long
@pytest.mark.timeout(600)
def test_any_one_of_three_nodes_may_be_lost(nodes: dict[str, Node]) -> None:
    for node in nodes.values():
        eventually(partial(brokers.answers, node.port), timeout_s=WAIT_S)
    bootstrap = ",".join(f"127.0.0.1:{node.port}" for node in nodes.values())
    admin = AdminClient({"bootstrap.servers": bootstrap})
    eventually(lambda: len(admin.list_topics(timeout=10).brokers) == 3, timeout_s=WAIT_S)
    admin.create_topics([NewTopic("orders", 3)])["orders"].result(WAIT_S)
    for name, node in nodes.items():
        node.kill()
        topic = f"without-{name}"
        eventually(partial(_is_created, admin, topic), timeout_s=WAIT_S)
        producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
        for partition in range(3):
            producer.produce("orders", name, partition=partition)
        assert producer.flush(WAIT_S) == 0
        node.start()
        eventually(lambda: _is_in_sync(admin, "orders"), timeout_s=WAIT_S)


def _is_created(admin: AdminClient, topic: str) -> bool:
    # Two replicas: the third node is down.
    admin.create_topics([NewTopic(topic, 1, 2)], operation_timeout=10)[topic].exception(WAIT_S)
    return topic in admin.list_topics(timeout=10).topics


def _is_in_sync(admin: AdminClient, topic: str) -> bool:
    partitions = admin.list_topics(topic, timeout=10).topics[topic].partitions.values()
    return all(len(partition.isrs) == 3 for partition in partitions)
