"""The compose files start with the image, are reachable from the host, and survive a kill."""

from __future__ import annotations

import contextlib
import os
import ssl
import subprocess
import urllib.request
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer, TopicCollection
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.containers.harness import engine_output
from tests.support.harness.project_files import ROOT
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

# Three simultaneous brokers on a busy machine.
START_S = 120


@pytest.fixture(scope="session")
def compose() -> list[str]:
    """Return the compose command: the engine's plugin, or the separate program."""
    for command in ([os.environ.get("ENGINE", "docker"), "compose"], ["docker-compose"]):
        with contextlib.suppress(OSError):
            if (
                subprocess.run([*command, "version"], capture_output=True, check=False).returncode
                == 0
            ):
                return command
    pytest.skip("there is no compose: neither `docker compose` nor docker-compose")


@pytest.fixture
def started(compose, images) -> Iterator[Callable[[str], Callable[..., str]]]:
    compose_runs: list[Callable[..., str]] = []

    def start(file: str) -> Callable[..., str]:
        project = f"wirebroker-test-{os.getpid()}"
        path = str(ROOT / "deploy" / "compose" / file)

        def run(*arguments: str) -> str:
            return subprocess.run(
                [*compose, "--project-name", project, "--file", path, *arguments],
                env={
                    **os.environ,
                    "WIREBROKER_IMAGE": images["8.0.0"],
                    "CONSOLE_PASSWORD": "a long password",
                },
                capture_output=True,
                text=True,
                check=True,
            ).stdout

        compose_runs.append(run)
        run("up", "--detach")
        _until_healthy(run)
        return run

    yield start
    for run in compose_runs:
        run("down", "--volumes")


def _until_healthy(run: Callable[..., str]) -> None:
    def all_are() -> bool:
        return all(map(_is_healthy, run("ps", "--quiet").split()))

    try:
        eventually(all_are, timeout_s=START_S, poll_s=0.5)
    except AssertionError:
        pytest.fail(run("logs", "--tail", "20"))


def _is_healthy(container: str) -> bool:
    return engine_output("inspect", "--format", "{{.State.Health.Status}}", container) == "healthy"


def produced(bootstrap: str, topic: str, *values: bytes) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(60) == 0


def consumed(bootstrap: str, topic: str, count: int) -> set[bytes]:
    config = {"bootstrap.servers": bootstrap, "group.id": "g", "auto.offset.reset": "earliest"}
    consumer = Consumer(config)
    consumer.subscribe([topic])
    messages = [consumer.poll(60) for _ in range(count)]
    consumer.close()
    return {message.value() or b"" for message in messages if message is not None}


def test_single_node_keeps_its_data_across_restart(started):
    run = started("single-node.yaml")
    produced("localhost:9092", "orders", b"a book")
    run("restart")
    assert consumed("localhost:9092", "orders", 1) == {b"a book"}
    # Its own programs use the same name as other services.
    listed = run("exec", "-T", "kafka", "wirebroker", "topic", "list", "-b", "kafka:19092")
    assert "orders" in listed
    for script in ("kafka-topics", "/opt/kafka/bin/kafka-topics.sh"):
        arguments = [script, "--bootstrap-server", "kafka:19092", "--list"]
        assert "orders" in run("exec", "-T", "kafka", *arguments).splitlines()


def test_a_console_shows_the_broker_beside_it(started):
    run = started("console.yaml")
    produced("localhost:9092", "orders", b"a book")
    listed = run("exec", "-T", "console", "wirebroker", "topic", "list", "-b", "kafka:19092")
    assert "orders" in listed
    context = ssl._create_unverified_context()
    with urllib.request.urlopen("https://localhost:8989/", context=context) as response:
        assert b'name="password"' in response.read()


def test_three_nodes_tolerate_the_loss_of_any_one(started):
    run = started("three-nodes.yaml")
    bootstrap = "localhost:9092,localhost:9093,localhost:9094"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("orders", 3)])["orders"].result(30)
    expected = {b"first"}
    produced(bootstrap, "orders", *expected)
    (topic,) = admin.describe_topics(TopicCollection(["orders"])).values()
    assert {len(partition.isr) for partition in topic.result(30).partitions} == {3}
    for node in ("kafka-1", "kafka-2", "kafka-3"):
        run("kill", node)
        # A controller and leaders are elected among the other two.
        admin.create_topics([NewTopic(f"without-{node}", 3, 2)])[f"without-{node}"].result(60)
        expected.add(node.encode())
        produced(bootstrap, "orders", node.encode())
        run("start", node)
        _until_healthy(run)
        _until_in_sync(admin, "orders")
    assert consumed(bootstrap, "orders", 4) == expected


def _until_in_sync(admin: AdminClient, topic: str) -> None:
    def all_are() -> bool:
        (described,) = admin.describe_topics(TopicCollection([topic])).values()
        return {len(partition.isr) for partition in described.result(30).partitions} == {3}

    eventually(all_are, timeout_s=START_S, poll_s=0.5)
