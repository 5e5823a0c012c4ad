"""Methods of `WirebrokerContainer` and `KafkaContainer` work with a real engine."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from wirebroker.config import StartError
from wirebroker.testing.testcontainers import KafkaContainer, WirebrokerContainer

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def container(images):
    with WirebrokerContainer(images["8.0.0"]) as broker:
        yield broker


def test_container_offers_records_requests_clock_and_faults(container):
    container.create_topic("orders", config={"retention.ms": 3_600_000})
    fault = container.faults.error("PRODUCE", "NOT_LEADER_OR_FOLLOWER").times(1)
    producer = Producer(container.client_config("confluent") | {"client.id": "shop"})
    producer.produce("orders", b"a book")
    assert producer.flush(30) == 0
    assert fault.acted == 1
    assert len(container.requests("PRODUCE", client_id="shop")) == 2
    container.assert_produced("orders", "a book")
    container.clock.advance(hours=2)
    assert container.records("orders") == []
    container.faults.clear()


def test_restarted_container_keeps_address_and_data(container):
    container.produce("kept", "one")
    address = container.bootstrap_servers
    for end in (container.stop, container.kill):
        end()
        container.start()
        assert container.bootstrap_servers == address
        assert [record.value for record in container.records("kept")] == [b"one"]


def test_snapshot_is_restored_and_starts_another_container(container, images):
    container.produce("snapped", "one")
    snapshot = container.snapshot()
    container.produce("snapped", "two")
    container.restore(snapshot)
    assert [record.value for record in container.records("snapped")] == [b"one"]
    with WirebrokerContainer(images["8.0.0"], snapshot=snapshot) as other:
        assert [record.value for record in other.records("snapped")] == [b"one"]


def test_reset_clears_data_and_restarts_only_for_config_changes(container):
    container.produce("gone", "one")
    address = container.bootstrap_servers
    producer = Producer(container.client_config("confluent"))
    container.reset()
    assert container.topics() == {}
    assert container.bootstrap_servers == address
    assert container.log_lines()
    producer.produce("new", b"one")
    assert producer.flush(30) == 0
    container.assert_produced("new", "one")
    container.reset(config={"num.partitions": 2})
    container.produce("new", "one")
    assert container.topics() == {"new": 2}
    container.reset()
    assert container.topics() == {}


def test_start_failure_is_reported(images):
    with pytest.raises(StartError, match=r"num\.partitions"):
        WirebrokerContainer(images["8.0.0"], config={"num.partitions": -7}).start()
    with pytest.raises(StartError, match="does not start"):
        WirebrokerContainer("wirebroker-that-is-not-there:1").start()


def test_kafka_container_works_as_container(images):
    with (
        KafkaContainer(images["8.0.0"]).with_kraft().with_env("KAFKA_NUM_PARTITIONS", "3") as kafka
    ):
        assert kafka.is_container
        assert kafka.broker is not None
        kafka.broker.produce("orders", "a book")
        assert kafka.broker.topics() == {"orders": 3}
        host, port = kafka.get_container_host_ip(), kafka.get_exposed_port(9093)
        assert kafka.get_bootstrap_server() == f"{host}:{port}"
