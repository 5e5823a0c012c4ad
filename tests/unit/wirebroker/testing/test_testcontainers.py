"""`KafkaContainer` without an engine: a process with the methods of testcontainers' class."""

from __future__ import annotations

import pytest

from wirebroker.config import StartError
from wirebroker.testing import testcontainers
from wirebroker.testing.hosts import engine
from wirebroker.testing.testcontainers import KafkaContainer, WirebrokerContainer

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"


def test_without_an_engine_it_is_a_process_and_programs_cannot_tell(monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    prepared = KafkaContainer("any/image:8.0.0").with_kraft().with_cluster_id(CLUSTER_ID)
    with prepared.with_env("KAFKA_NUM_PARTITIONS", "3") as kafka:
        assert not kafka.is_container
        assert kafka.broker is not None
        kafka.broker.produce("orders", "a book")
        assert kafka.broker.topics() == {"orders": 3}
        host, port = kafka.get_container_host_ip(), kafka.get_exposed_port(9093)
        assert kafka.get_bootstrap_server() == f"{host}:{port}"
        assert kafka.broker.bootstrap_servers == kafka.get_bootstrap_server()
        with pytest.raises(ValueError, match="port 9094 is not exposed: 9093 is"):
            kafka.get_exposed_port(9094)
        output, log = kafka.get_logs()
        assert output == b""
        assert b"created topic orders" in log
        snapshot = kafka.broker.directory / "meta.properties"
        assert f"cluster.id={CLUSTER_ID}" in snapshot.read_text()


def test_what_was_not_started_has_no_address():
    kafka = KafkaContainer(engine=False)
    kafka.stop()
    with pytest.raises(RuntimeError, match="not started"):
        kafka.get_bootstrap_server()


def test_what_keeps_a_container_from_starting_is_said(monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    assert "no container engine answers" in (engine.why_no_engine() or "")
    with pytest.raises(StartError, match="no container engine answers"):
        WirebrokerContainer().start()


def test_the_data_of_a_container_is_not_here():
    with pytest.raises(RuntimeError, match="take a snapshot"):
        _ = WirebrokerContainer().directory


def test_listeners_of_a_container_are_its_own():
    with pytest.raises(ValueError, match="listeners of its own"):
        WirebrokerContainer(config={"listeners": "PLAINTEXT://:9"}).start()


def test_every_export_is_there():
    for name in testcontainers.__all__:
        assert hasattr(testcontainers, name)
