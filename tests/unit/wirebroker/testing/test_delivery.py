"""`broker.delivery`: the service on the test broker's clock."""

from __future__ import annotations

import socket

import pytest

from wirebroker.testing import Broker


@pytest.fixture
def broker():
    with Broker() as running:
        running.create_topic("orders")
        running.delivery.start(targets=["orders*"])
        yield running


def values(broker, topic="orders"):
    return [record.value for record in broker.records(topic)]


def later(broker, value, after, **headers):
    names = {name.replace("_", "-"): text for name, text in headers.items()}
    broker.produce(
        "deliver", value, headers={"deliver-to": "orders", "deliver-after": after} | names
    )


def test_records_are_delivered_when_the_clock_reaches_their_time(broker):
    broker.clock.freeze()
    later(broker, "one", "1h")
    later(broker, "two", "2h")
    broker.clock.advance(minutes=59, seconds=59)
    assert values(broker) == []
    assert broker.delivery.pending_count() == 2
    broker.clock.advance(seconds=1)
    assert values(broker) == [b"one"]
    broker.clock.advance(hours=1)
    assert values(broker) == [b"one", b"two"]


def test_records_without_a_delay_arrive_by_themselves(broker):
    broker.produce("deliver", "now", headers={"deliver-to": "orders"})
    assert broker.wait_for("orders", 1)[0].value == b"now"


def test_pending_records_survive_a_kill_and_are_gone_after_a_reset(broker):
    later(broker, "one", "1h", deliver_id="x")
    assert broker.delivery.pending_count() == 1
    broker.kill()
    broker.start()
    later(broker, "two", "1h", deliver_id="x")
    broker.clock.advance(hours=2)
    assert values(broker) == [b"two"]
    broker.reset()
    broker.delivery.start()
    assert broker.delivery.pending_count() == 0


def test_pending_records_are_part_of_a_snapshot(broker):
    later(broker, "one", "1h")
    broker.delivery.settle()
    snapshot = broker.snapshot()
    broker.clock.advance(hours=1)
    assert values(broker) == [b"one"]
    broker.restore(snapshot)
    broker.delivery.settle()
    assert values(broker) == [b"one"]


def test_a_target_that_is_not_allowed_becomes_a_dead_letter(broker):
    broker.produce("deliver", "x", headers={"deliver-to": "secrets"})
    broker.delivery.settle()
    assert values(broker, "deliver.dead-letters") == [b"x"]


def test_retries_come_back_after_their_pauses(broker):
    broker.create_topic("orders.retry.billing")
    broker.clock.freeze()
    headers = {"retry-topic": "orders.retry.billing", "retry-backoff": "10s"}
    broker.produce("retry", "failed", headers=headers)
    broker.clock.advance(seconds=10)
    (record,) = broker.records("orders.retry.billing")
    broker.produce("retry", record.value, headers=record.headers)
    broker.delivery.settle()
    assert values(broker, "orders.dead-letters") == [b"failed"]


def test_a_broker_is_closed_if_its_service_cannot_be_stopped(monkeypatch) -> None:
    broker = Broker()
    broker.start()
    host, _, port = broker.bootstrap_servers.rpartition(":")

    def fail() -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(broker.delivery, "stop", fail)
    with pytest.raises(RuntimeError, match="no"):
        broker.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), timeout=10)
