"""One instance of the service with its own topics, a producer and the command line."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from typing import TYPE_CHECKING, Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.delivery.delivery_process import DeliveryProcess, committed_records
from tests.support.tools.ports import free_port
from tests.support.tools.waiting import eventually
from wirebroker.base.dead_letter_headers import read_dead_letter_headers

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.support.brokers.brokers import Broker

PATIENCE_S = 90.0


class Service:
    """One instance with its own topics, and a producer."""

    def __init__(self, broker: Broker, folder: Path, topic: str) -> None:
        self.bootstrap = broker.bootstrap
        self.orders = f"orders-{topic}"
        self.deliver = f"deliver-{topic}"
        self.retry = f"retry-{topic}"
        self.group = f"delivery-{topic}"
        self.metrics_port = free_port()
        self.admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        self.create(self.orders)
        self.settings: dict[str, object] = {
            "wirebroker.delivery.topics": self.deliver,
            "wirebroker.delivery.retry.topics": self.retry,
            "wirebroker.delivery.targets": "orders-*",
            "wirebroker.delivery.group": self.group,
            "wirebroker.delivery.metrics.port": self.metrics_port,
        }
        self.process = DeliveryProcess(self.bootstrap, folder / "instance", self.settings)
        self._producer = Producer({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def create(self, name: str, **config: str) -> None:
        new = NewTopic(name, num_partitions=2, replication_factor=1, config=config)
        self.admin.create_topics([new])[name].result(60)

    def has_topic(self, name: str) -> bool:
        return name in self.admin.list_topics(timeout=60).topics

    def send(
        self, value: bytes | None, topic: str = "", key: bytes | None = b"k", **headers: object
    ) -> None:
        texts: Any = {
            name.replace("_", "-"): text if isinstance(text, bytes) else str(text)
            for name, text in headers.items()
        }
        self._producer.produce(topic or self.deliver, value, key, headers=texts)
        assert self._producer.flush(60) == 0

    def wait_for(self, topic: str, count: int) -> list[Any]:
        found: list[Any] = []

        def has_all() -> bool:
            found[:] = committed_records(self.bootstrap, topic)
            return len(found) >= count

        eventually(has_all, timeout_s=PATIENCE_S, poll_s=0.3)
        return found

    def verb(self, *words: str) -> Any:
        command = [sys.executable, "-m", "wirebroker", "delivery", *words, "--group", self.group]
        command += ["--output", "json", "--bootstrap", self.bootstrap]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
        return json.loads(done.stdout)

    def metrics(self) -> str:
        address = f"http://127.0.0.1:{self.metrics_port}/metrics"
        with urllib.request.urlopen(address, timeout=10) as response:
            return response.read().decode()


def told(message: Any) -> Mapping[str, str]:
    return read_dead_letter_headers(message.headers())
