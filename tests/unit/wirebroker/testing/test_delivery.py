"""`broker.delivery`: the service on the test broker's clock."""

from __future__ import annotations

import socket

import pytest

from wirebroker.base.dead_letter_headers import read_dead_letter_headers
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


def letter_reasons(broker):
    letters = broker.records("deliver.dead-letters")
    return [read_dead_letter_headers(letter.headers)["message"] for letter in letters]


@pytest.mark.parametrize("days", [8, 400])
def test_a_long_move_delivers_records_that_retention_deletes_meanwhile(broker, days):
    for after in ("1m", "7d"):
        later(broker, after, after)
    broker.clock.advance(days=days)
    assert values(broker) == [b"1m", b"7d"]
    assert broker.delivery.pending_count() == 0


def test_a_long_move_delivers_records_before_they_expire(broker):
    later(broker, "in time", "1m", expires_after="2m")
    later(broker, "last", "50m", expires_after="50m")
    broker.clock.advance(hours=1)
    assert values(broker) == [b"in time", b"last"]
    assert letter_reasons(broker) == []


def test_a_record_expires_while_the_service_is_stopped(broker):
    later(broker, "late", "1m", expires_after="2m")
    assert broker.delivery.pending_count() == 1
    broker.delivery.stop()
    broker.clock.advance(hours=1)
    broker.delivery.start(targets=["orders*"])
    assert values(broker) == []
    (reason,) = letter_reasons(broker)
    assert reason.startswith("expired")


def test_a_record_over_the_targets_size_becomes_a_dead_letter_and_others_arrive_once(broker):
    broker.create_topic("orders-small", config={"max.message.bytes": 1_000})
    broker.clock.freeze()
    for value in ("one", "x" * 5_000, "two", "y" * 900_000, "three"):
        later(broker, value, "1m", deliver_to="orders-small")
    broker.clock.advance(minutes=1)
    assert values(broker, "orders-small") == [b"one", b"two", b"three"]
    letters = [record.value for record in broker.records("deliver.dead-letters")]
    assert letters == [b"x" * 5_000, b"y" * 900_000]
    assert all("refused the record" in reason for reason in letter_reasons(broker))
    assert broker.delivery.pending_count() == 0


def test_a_refused_dead_letter_goes_to_that_of_the_input_topic(broker):
    for topic in ("orders.retry.billing", "orders.dead-letters"):
        broker.create_topic(topic, config={"max.message.bytes": 1_000})
    headers = {"retry-topic": "orders.retry.billing", "retry-backoff": "1s"}
    broker.produce("retry", "x" * 5_000, headers=headers)
    broker.clock.advance(seconds=2)
    assert values(broker, "orders.dead-letters") == []
    assert values(broker, "retry.dead-letters") == [b"x" * 5_000]


def test_a_target_that_can_match_no_topic_is_refused(broker):
    with pytest.raises(ValueError, match="'t\\?' is neither a topic name nor a prefix"):
        broker.delivery.start(targets=["t?"])
    broker.clock.advance(hours=1)


def test_the_clock_moves_although_the_service_fails(broker, monkeypatch) -> None:
    broker.clock.freeze()
    before_ms = broker.clock.now_ms()

    def fail() -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(broker.clock, "around_move", fail)
    with pytest.raises(RuntimeError, match="no"):
        broker.clock.advance(hours=1)
    assert broker.clock.now_ms() == before_ms + 3_600_000


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
