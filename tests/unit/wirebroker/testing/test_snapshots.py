"""Snapshots and restores of the kit's brokers."""

from __future__ import annotations

import contextlib
import json
import threading

import confluent_kafka
import pytest

from tests.support.http.kit_http import ask_over_http, process_of
from tests.support.protocol.raw_client import BlockingClient
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.config.sources.sources import load_config
from wirebroker.testing import Broker
from wirebroker.testing.test_mode.restartable import RestartableBroker


@pytest.fixture(scope="module")
def quick():
    """A running broker, for tests that do not depend on its process."""
    with Broker() as broker:
        yield broker


def values(broker, topic="orders"):
    return [record.value for record in broker.records(topic)]


def consumer_of(broker, **settings):
    config = {"group.id": "billing", "auto.offset.reset": "earliest", "session.timeout.ms": 6000}
    consumer = confluent_kafka.Consumer(broker.client_config("confluent") | config | settings)
    consumer.subscribe(["orders"])
    return consumer


def next_value(consumer):
    while True:
        message = consumer.poll(20)
        assert message is not None, "nothing came"
        # The client reports closed connections as errors and reconnects.
        if not message.error():
            return message.value()


def test_restore_drops_later_data_and_brings_back_earlier(broker):
    broker.create_topic("orders", partitions=2, config={"retention.ms": 1234567})
    broker.produce("orders", "one", key="k", headers={"trace": "a1"})
    before, address = broker.records("orders"), broker.bootstrap_servers
    snapshot = broker.snapshot()
    broker.produce("orders", "two")
    broker.create_topic("payments")

    for _ in range(2):
        broker.restore(snapshot)
        assert broker.topics() == {"orders": 2}
        assert broker.records("orders") == before
        assert broker.bootstrap_servers == address
        broker.produce("orders", "three")


def test_members_rejoin_and_offsets_are_restored(broker):
    for number in range(3):
        broker.produce("orders", str(number))
    consumer = consumer_of(broker, **{"enable.auto.commit": False})
    try:
        assert next_value(consumer) == b"0"
        consumer.commit(asynchronous=False)
        snapshot = broker.snapshot()
        assert [next_value(consumer), next_value(consumer)] == [b"1", b"2"]
        consumer.commit(asynchronous=False)
        assert broker.committed("billing") == {("orders", 0): 3}

        broker.restore(snapshot)
        assert broker.committed("billing") == {("orders", 0): 1}
        broker.produce("orders", "later")  # offset 3 again, the consumer's position
        assert next_value(consumer) == b"later"
        consumer.commit(asynchronous=False)
        assert broker.committed("billing") == {("orders", 0): 4}
    finally:
        consumer.close()


def test_crashed_or_stopped_broker_can_be_snapshot_and_restored(broker):
    broker.produce("orders", "one")
    broker.crash()
    crashed = broker.snapshot()
    broker.start()
    broker.produce("orders", "two")
    broker.stop()
    stopped = broker.snapshot()
    broker.restore(crashed)
    broker.start()
    assert values(broker) == [b"one"]
    broker.restore(stopped)
    assert values(broker) == [b"one", b"two"]


def test_new_broker_starts_from_and_resets_to_a_snapshot(quick, tmp_path):
    quick.reset()
    quick.produce("orders", "one")
    snapshot = quick.snapshot(tmp_path / "suite" / "prepared")
    quick.reset()
    assert snapshot.directory == tmp_path / "suite" / "prepared"
    with Broker(snapshot=tmp_path / "suite" / "prepared") as other:
        other.produce("orders", "two")
        assert values(other) == [b"one", b"two"]
        other.reset()
        assert values(other) == [b"one"]
    with Broker.spawn(snapshot=snapshot) as other:
        spawned = other.snapshot(tmp_path / "again")
        assert values(other) == [b"one"]
        other.produce("orders", "two")
        process, address = process_of(other), other.bootstrap_servers
        other.reset()
        assert values(other) == [b"one"]
        assert process_of(other) == process
        assert other.bootstrap_servers != address
    with Broker(snapshot=spawned) as other:
        assert values(other) == [b"one"]


def test_snapshot_keeps_transaction_and_producer_state(quick):
    quick.reset()
    config = quick.client_config("confluent")
    producer = confluent_kafka.Producer(config | {"transactional.id": "billing"})
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce("orders", b"one")
    producer.flush(10)
    open_transaction = quick.snapshot()
    producer.commit_transaction(10)
    committed = quick.snapshot()

    quick.restore(open_transaction)
    assert quick.records("orders", read_committed=True) == []
    # Its producer restarts, which aborts the unfinished transaction.
    confluent_kafka.Producer(config | {"transactional.id": "billing"}).init_transactions(10)
    quick.produce("orders", "two")
    quick.assert_produced("orders", "two", read_committed=True)
    quick.restore(committed)
    quick.assert_produced("orders", "one", read_committed=True)


def test_closed_segments_are_shared_and_the_active_one_is_not(quick):
    quick.reset()
    quick.create_topic("orders", config={"segment.bytes": 1 << 20, "segment.jitter.ms": 0})
    for _ in range(5):
        quick.produce("orders", b"x" * 600_000)
    directory = quick.snapshot().directory
    *closed, active = sorted((directory / "orders-0").glob("*.log"))
    assert len(closed) == 4
    for segment in closed:
        assert segment.samefile(quick.directory / "orders-0" / segment.name)
    assert not active.samefile(quick.directory / "orders-0" / active.name)
    quick.restore(directory)
    assert len(values(quick)) == 5
    assert closed[0].samefile(quick.directory / "orders-0" / closed[0].name)


def test_snapshot_has_acknowledged_records_during_writes(quick):
    quick.reset()
    quick.create_topics({"orders": 1, "large": 1})
    acknowledged, is_over = [0], threading.Event()

    def produce():
        while not is_over.is_set():
            quick.produce("large", b"x" * 300_000)  # is appended by a thread
            acknowledged[0] = quick.produce("orders", str(acknowledged[0])).offset + 1

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        snapshots = []
        for _ in range(5):
            quick.wait_for("orders", acknowledged[0] + 1)
            snapshots.append((acknowledged[0], quick.snapshot()))
    finally:
        is_over.set()
        thread.join()
    for count, snapshot in snapshots:
        quick.restore(snapshot)
        stored = values(quick)
        assert len(stored) >= count
        assert stored == [str(number).encode() for number in range(len(stored))]
        assert len(quick.records("large")) - len(stored) in {0, 1}


def test_restore_does_not_change_clock_and_faults(quick):
    quick.reset()
    quick.clock.set(4_000_000_000_000)
    fault = quick.faults.error("PRODUCE", "NOT_LEADER_OR_FOLLOWER")
    quick.produce("orders", "one")
    quick.restore(quick.snapshot())
    assert quick.produce("orders", "two").timestamp >= 4_000_000_000_000
    assert quick.clock.now.year == 2096
    fault.remove()


def test_invalid_snapshot_operations_are_refused(quick, tmp_path):
    quick.reset()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")
    with pytest.raises(ValueError, match="is not empty"):
        quick.snapshot(tmp_path / "full")
    with pytest.raises(ValueError, match=r"is not a data directory: it has no meta.properties"):
        quick.restore(tmp_path)
    with pytest.raises(ValueError, match="is not a data directory"):
        Broker(snapshot=tmp_path)
    with pytest.raises(ValueError, match="give a directory or a snapshot"):
        Broker(snapshot=quick.snapshot(), directory=tmp_path / "data")
    assert (tmp_path / "full" / "file").read_text() == "mine"
    assert quick.topics() == {}


def post(broker, path, **arguments):
    body = json.dumps(arguments).encode()
    return ask_over_http(broker, f"/test/v1/{path}", data=body, method="POST")


async def test_reset_removes_only_files_written_by_brokers(tmp_path):
    flags = {"metadata.log.dir": str(tmp_path / "data" / "metadata")}
    config = load_config(
        file=None, environment={}, flags=flags, data_directory=str(tmp_path / "data"), port=0
    )
    broker = RestartableBroker(config)
    await broker.start()
    try:
        own = tmp_path / "data" / "lost+found" / "own"
        own.parent.mkdir()
        own.touch()
        (tmp_path / "data" / "notes.txt").touch()
        cluster_id = broker.cluster_id
        await broker.reset()
        assert broker.cluster_id != cluster_id
    finally:
        await broker.stop()
    assert own.exists()
    assert (tmp_path / "data" / "notes.txt").exists()


def test_snapshots_work_over_http():
    with Broker.spawn() as broker:
        broker.produce("orders", "one")
        status, body = post(broker, "snapshots", name="prepared")
        assert status == 200
        assert body["directory"].endswith("-snapshots/prepared")
        broker.produce("orders", "two")
        assert post(broker, "crash") == (200, None)
        assert ask_over_http(broker, "/test/v1/clock")[0] == 200
        assert post(broker, "crash") == (400, {"error": "the broker is not running"})
        assert post(broker, "start") == (200, None)
        assert values(broker) == [b"one", b"two"]
        assert post(broker, "start") == (400, {"error": "the broker is running"})
        assert post(broker, "snapshots/restore", name="prepared") == (200, None)
        assert values(broker) == [b"one"]
        assert len(ask_over_http(broker, "/test/v1/requests")[1]) == 0

        for name in ("../prepared", ".hidden", "", "a/b", "x" * 101):
            assert post(broker, "snapshots", name=name)[0] == 400
            assert post(broker, "snapshots/restore", name=name)[0] == 400
        assert (
            post(broker, "snapshots", name="prepared")[1]["error"]
            == "snapshot prepared already exists"
        )
        assert "not a data directory" in post(broker, "snapshots/restore", name="other")[1]["error"]
        assert post(broker, "snapshots")[1] == {"error": "name is missing"}

        assert post(broker, "crash") == (200, None)
        status, address = post(broker, "reset")
        assert (status, address["host"]) == (200, "127.0.0.1")
        with contextlib.closing(BlockingClient((address["host"], address["port"]))) as client:
            answer = client.ask(ApiKey.METADATA, 12, {"topics": None})
        assert all(topic.is_internal for topic in answer.topics)
        assert post(broker, "snapshots/restore", name="prepared") == (200, None)
        broker.kill()
        broker.start()
        assert values(broker) == [b"one"]
        # A clean stop after a crash, with nothing left to stop.
        assert post(broker, "crash") == (200, None)
        broker.stop()
        broker.start()
        assert values(broker) == [b"one"]
