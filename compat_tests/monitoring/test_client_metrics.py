"""Stock clients push their metrics (KIP-714) as they do by default, and the broker shows them."""

from __future__ import annotations

import subprocess
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer

from tests.support.brokers import java_start
from tests.support.brokers.brokers import Wirebroker, java_tool
from tests.support.http.scrape_pages import Samples, read_page
from tests.support.tools.ports import free_port
from tests.support.tools.waiting import eventually
from wirebroker.cli import main as cli

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PREFIX = "wirebroker_client_"
# A client's first push comes after a part of the interval.
PATIENCE_S = 60.0


class Watched:
    """A broker and its page of metrics."""

    def __init__(self, bootstrap: str, http: str) -> None:
        self.bootstrap = bootstrap
        self._http = http

    def page(self) -> Samples:
        with urllib.request.urlopen(f"http://{self._http}/metrics") as reply:
            return read_page(reply.read().decode())

    def pushed(self, software: str) -> dict[str, float]:
        """Return the values of the clients of this software, by name."""
        return {
            name: value
            for (name, labels), value in self.page().items()
            if name.startswith(PREFIX) and ("client_software_name", software) in labels
        }


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    http = f"127.0.0.1:{free_port()}"
    settings = {"wirebroker.http.listeners": http, "wirebroker.client.metrics": "true"}
    folder: Path = tmp_path_factory.mktemp("telemetry")
    with Wirebroker(folder, settings) as broker:
        words = ["--alter", "--name", "all", "--metrics", "org.apache.kafka.", "--interval", "200"]
        assert (
            cli.run(["kafka-client-metrics", "--bootstrap-server", broker.bootstrap, *words]) == 0
        )
        yield Watched(broker.bootstrap, http)


def test_metrics_of_librdkafka(watched: Watched) -> None:
    software = "confluent-kafka-python"
    config: dict[str, Any] = {"bootstrap.servers": watched.bootstrap, "client.id": "rd"}
    producer = Producer(config)
    consumer = Consumer(config | {"group.id": "g", "auto.offset.reset": "earliest"})
    producer.produce("rd", b"value")
    assert producer.flush(PATIENCE_S) == 0
    consumer.subscribe(["rd"])
    assert consumer.poll(PATIENCE_S) is not None

    names = {f"{PREFIX}{kind}_connection_creation_total" for kind in ("producer", "consumer")}
    eventually(lambda: names <= watched.pushed(software).keys(), timeout_s=PATIENCE_S)
    consumer.close()
    del producer, consumer
    eventually(lambda: not watched.pushed(software), timeout_s=PATIENCE_S)


@pytest.mark.java
def test_metrics_of_java(watched: Watched) -> None:
    software = "apache-kafka-java"
    tool = java_tool("-Xmx128m", "org.apache.kafka.tools.ConsoleProducer", java_start.options())
    command = [*tool, "--bootstrap-server", watched.bootstrap, "--topic", "java"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as producer:
        assert producer.stdin
        producer.stdin.write(b"one\ntwo\n")
        producer.stdin.flush()
        eventually(
            lambda: watched.pushed(software).get(f"{PREFIX}producer_record_send_total") == 2,
            timeout_s=PATIENCE_S,
        )
        producer.stdin.close()
        assert producer.wait(PATIENCE_S) == 0
    eventually(lambda: not watched.pushed(software), timeout_s=PATIENCE_S)
