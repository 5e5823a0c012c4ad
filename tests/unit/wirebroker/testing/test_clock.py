"""Simulated time: everything due has happened when the call returns."""

from __future__ import annotations

import datetime

import confluent_kafka
import pytest

from wirebroker.base.clock import SystemClock
from wirebroker.testing import Broker
from wirebroker.testing.test_mode.movable_clock import MovableClock


def values(records):
    return [record.value for record in records]


def test_wall_and_monotonic_clock_advance_together():
    clock = MovableClock()
    wall, monotonic = clock.now_ms(), clock.monotonic()
    clock.advance(60_000)
    assert clock.now_ms() - wall >= 60_000
    assert clock.monotonic() - monotonic >= 60
    clock.set_to(wall + 120_000)
    assert wall + 120_000 <= clock.now_ms() < wall + 180_000
    before = clock.monotonic()
    clock.set_to(wall)
    assert wall <= clock.now_ms() < wall + 60_000
    assert clock.monotonic() >= before


def test_unfrozen_clock_continues_where_it_stopped():
    clock = MovableClock()
    clock.freeze()
    wall, monotonic = clock.now_ms(), clock.monotonic()
    while MovableClock().monotonic() - monotonic < 0.01:
        assert (clock.now_ms(), clock.monotonic()) == (wall, monotonic)
    clock.advance(1000)
    assert clock.now_ms() == wall + 1000
    other = MovableClock()
    other.restore(clock.state())
    assert other.now_ms() == wall + 1000
    clock.resume()
    assert clock.monotonic() >= monotonic + 1
    assert clock.now_ms() >= wall + 1000


def test_reset_clock_shows_the_machine_time():
    machine, clock = MovableClock(), MovableClock()
    clock.advance(7 * 86_400_000)
    clock.set_to(1000)
    clock.freeze()
    clock.advance(5000)
    monotonic = clock.monotonic()
    clock.reset()
    assert abs(clock.now_ms() - machine.now_ms()) < 60_000
    assert clock.monotonic() >= monotonic
    clock.advance(60_000)
    assert clock.now_ms() - machine.now_ms() >= 59_000


def test_clock_reset_does_not_undo_timeouts(broker):
    broker.create_topic("orders", config={"retention.ms": 3_600_000})
    broker.produce("orders", "old")
    broker.clock.advance(hours=2)
    broker.clock.reset()
    assert abs(broker.clock.now_ms() - SystemClock().now_ms()) < 60_000
    assert values(broker.records("orders")) == []
    broker.produce("orders", "new")
    broker.clock.advance(minutes=30)
    assert values(broker.records("orders")) == [b"new"]


@pytest.mark.parametrize("by_ms", [-1, 10**15])
def test_clock_moves_neither_back_nor_without_bound(by_ms):
    with pytest.raises(ValueError, match="a hundred years"):
        MovableClock().advance(by_ms)


def test_retention_runs_at_once_and_keeps_new_records(broker):
    broker.create_topic("orders", config={"retention.ms": 3_600_000})
    broker.produce("orders", "old")
    broker.clock.advance(minutes=59)
    assert values(broker.records("orders")) == [b"old"]
    broker.clock.advance(minutes=2)
    assert broker.records("orders") == []
    sent = broker.produce("orders", "new")
    assert abs(sent.timestamp - broker.clock.now_ms()) < 60_000
    broker.clock.advance(minutes=30)
    assert values(broker.records("orders")) == [b"new"]


def test_offsets_of_a_group_without_members_expire(broker):
    broker.produce("orders", "one")
    consumer = confluent_kafka.Consumer(broker.client_config("confluent") | {"group.id": "billing"})
    position = confluent_kafka.TopicPartition("orders", 0, 1)
    consumer.commit(offsets=[position], asynchronous=False)
    consumer.close()
    broker.clock.advance(days=6)
    assert broker.committed("billing") == {("orders", 0): 1}
    broker.clock.advance(days=1, minutes=1)
    assert broker.committed("billing") == {}


def test_a_transaction_that_takes_too_long_is_aborted(broker):
    broker.create_topic("orders")
    config = broker.client_config("confluent") | {
        "transactional.id": "billing",
        "transaction.timeout.ms": 60_000,
    }
    producer = confluent_kafka.Producer(config)
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("orders", b"open")
    assert producer.flush(30) == 0
    broker.produce("orders", "behind")
    assert broker.records("orders", read_committed=True) == []
    broker.clock.advance(seconds=61)
    assert values(broker.records("orders", read_committed=True)) == [b"behind"]


def test_silent_group_member_is_removed(broker):
    broker.create_topic("orders")
    config = broker.client_config("confluent") | {"group.id": "billing"}
    consumer = confluent_kafka.Consumer(config)
    consumer.subscribe(["orders"])
    while not consumer.assignment():
        consumer.poll(0.1)
    broker.forget_requests()
    broker.clock.advance(minutes=10)
    # The member learns of it with its next heartbeat and rejoins.
    while not broker.requests(api="JOIN_GROUP"):
        consumer.poll(0.1)
    consumer.close()
    broker.clock.advance(minutes=10)


def test_superseded_records_are_compacted(broker):
    settings = {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": 0.01,
        "min.compaction.lag.ms": 3_600_000,
        "segment.ms": 60_000,
    }
    broker.create_topic("prices", config=settings)
    for value in ("1", "2", "3"):
        broker.produce("prices", value, key="book")
    broker.clock.advance(minutes=2)
    broker.produce("prices", "4", key="book")  # in a separate segment
    assert values(broker.records("prices")) == [b"1", b"2", b"3", b"4"]
    broker.clock.advance(hours=1)
    assert values(broker.records("prices")) == [b"3", b"4"]


def test_moved_clock_survives_a_restart_and_ends_with_a_reset(broker):
    broker.clock.set(datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC))
    broker.stop()
    broker.start()
    assert broker.clock.now.year == 2100
    broker.create_topic("orders", config={"message.timestamp.type": "LogAppendTime"})
    sent = broker.produce("orders", "one")
    assert datetime.datetime.fromtimestamp(sent.timestamp / 1000, datetime.UTC).year == 2100
    broker.clock.freeze()
    assert broker.produce("orders", "x").timestamp == broker.produce("orders", "x").timestamp
    broker.clock.resume()
    broker.reset()
    assert broker.clock.now.year < 2100


def test_connections_survive_advancing_the_clock():
    with Broker(config={"connections.max.idle.ms": 1000}) as broker:
        producer = confluent_kafka.Producer(broker.client_config("confluent"))
        producer.produce("orders", b"one")
        assert producer.flush(30) == 0
        broker.clock.advance(days=30)
        assert not any("idle" in line for line in broker.log_lines())


def test_invalid_time_is_refused(broker):
    with pytest.raises(ValueError, match="a hundred years"):
        broker.clock.advance(days=-1)
    with pytest.raises(ValueError, match="cannot be set to -1 ms since 1970"):
        broker.clock.set(-1)
