"""`KafkaContainer` without an engine: a process with the methods of testcontainers' class."""

from __future__ import annotations

import pytest

from wirebroker.config import StartError
from wirebroker.testing import testcontainers
from wirebroker.testing.hosts import engine
from wirebroker.testing.testcontainers import KafkaContainer, WirebrokerContainer

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"


def test_without_an_engine_a_process_is_used_transparently(monkeypatch):
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


def test_unstarted_container_has_no_address():
    kafka = KafkaContainer(engine=False)
    kafka.stop()
    with pytest.raises(RuntimeError, match="not started"):
        kafka.get_bootstrap_server()


def test_container_start_failure_is_reported(monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    assert "no container engine responds" in (engine.why_no_engine() or "")
    with pytest.raises(StartError, match="no container engine responds"):
        WirebrokerContainer().start()


def test_container_has_no_local_directory():
    with pytest.raises(RuntimeError, match="take a snapshot"):
        _ = WirebrokerContainer().directory


def test_listeners_of_a_container_cannot_be_set():
    with pytest.raises(ValueError, match="sets its listeners itself"):
        WirebrokerContainer(config={"listeners": "PLAINTEXT://:9"}).start()


def test_all_exports_exist():
    for name in testcontainers.__all__:
        assert hasattr(testcontainers, name)
