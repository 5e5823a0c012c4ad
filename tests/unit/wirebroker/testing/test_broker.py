"""The kit's brokers, in this process and in a separate one."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import logging
import os
import signal
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import confluent_kafka
import pytest

from tests.support.http.kit_http import process_of
from tests.support.protocol.raw_client import BlockingClient
from wirebroker.base.clock import SystemClock
from wirebroker.client.records.partitioning import partition_for
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.config import ConfigError, StartError
from wirebroker.net.client.settings import PeerAddress
from wirebroker.testing import Broker, KafkaError
from wirebroker.testing.broker.held_ports import ReservedPorts
from wirebroker.testing.hosts import child_process


@pytest.fixture(scope="module")
def shared():
    with Broker() as broker:
        yield broker


@pytest.fixture(params=[False, True], ids=["same process", "own process"])
def fragile(request):
    """A broker of either kind that the test may end."""
    with Broker(own_process=request.param) as broker:
        yield broker


def values(records):
    return [record.value for record in records]


def address_of(broker):
    host, port = broker.bootstrap_servers.split(":")
    return host, int(port)


def client_of(broker):
    return contextlib.closing(BlockingClient(address_of(broker)))


# -- records --


def test_record_is_read_as_it_was_produced(broker):
    moment = datetime.datetime(2026, 11, 22, 12, 0, 0, 500_000, tzinfo=datetime.UTC)
    headers = [("trace", "a1"), ("trace", b"\xff"), ("none", None)]
    sent = broker.produce("orders", "ü", key=b"k", headers=headers, timestamp=moment)
    (read,) = broker.records("orders")
    assert read == sent
    assert (read.topic, read.partition, read.offset) == ("orders", 0, 0)
    assert (read.key, read.value) == (b"k", "ü".encode())
    assert read.headers == (("trace", b"a1"), ("trace", b"\xff"), ("none", None))
    assert read.timestamp == 1_795_348_800_500


def test_record_has_log_append_time_if_the_topic_says_so(broker):
    broker.create_topic("orders", config={"message.timestamp.type": "LogAppendTime"})
    sent = broker.produce("orders", "one", timestamp=1000)
    assert sent.timestamp > 1000
    assert broker.records("orders") == [sent]


def test_a_tombstone_has_no_value(broker):
    broker.create_topic("prices", config={"cleanup.policy": "compact"})
    broker.produce("prices", None, key="book")
    assert values(broker.records("prices")) == [None]


def test_records_are_returned_partition_by_partition(broker):
    broker.create_topic("orders", partitions=3)
    for number in range(7):
        broker.produce("orders", str(number))
    broker.produce("orders", "last", partition=1)
    found = broker.records("orders")
    assert values(found) == [b"0", b"3", b"6", b"1", b"4", b"last", b"2", b"5"]
    assert [record.offset for record in found] == [0, 1, 2, 0, 1, 2, 0, 1]


def test_key_determines_the_partition(broker):
    broker.create_topic("orders", partitions=5)
    partitions = {broker.produce("orders", "x", key="customer-7").partition for _ in range(3)}
    assert partitions == {partition_for(b"customer-7", 5)}


def test_records_beyond_one_fetch_are_read(broker):
    large = b"x" * 600_000
    for _ in range(5):
        broker.produce("orders", large)
    assert [len(value) for value in values(broker.records("orders"))] == [600_000] * 5


def test_deleted_records_are_not_read(broker):
    for number in range(3):
        broker.produce("orders", str(number))
    topics = [{"name": "orders", "partitions": [{"partition_index": 0, "offset": 2}]}]
    with client_of(broker) as client:
        client.ask(ApiKey.DELETE_RECORDS, 2, {"topics": topics, "timeout_ms": 10_000})
    assert values(broker.records("orders")) == [b"2"]


def test_refused_requests_raise_kafka_errors(broker):
    with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_OR_PARTITION: there is no topic orders"):
        broker.records("orders")
    with pytest.raises(KafkaError, match="INVALID_TOPIC_EXCEPTION"):
        broker.produce("no/topic", "x")
    broker.create_topic("orders", config={"max.message.bytes": 100})
    with pytest.raises(KafkaError, match="MESSAGE_TOO_LARGE"):
        broker.produce("orders", "x" * 200)
    with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        broker.produce("orders", "x", partition=1)
    with pytest.raises(KafkaError, match="TOPIC_ALREADY_EXISTS"):
        broker.create_topic("orders")
    with pytest.raises(KafkaError, match="INVALID_CONFIG"):
        broker.create_topic("prices", config={"cleanup.policy": "wash"})


def test_topic_is_not_created_if_config_forbids_it():
    with Broker(config={"auto.create.topics.enable": False}) as broker:
        with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_OR_PARTITION"):
            broker.produce("orders", "x")
        assert broker.topics() == {}


# -- transactions --


def test_read_committed_omits_aborted_and_open_transactions(broker):
    broker.create_topic("orders")
    config = broker.client_config("confluent") | {"transactional.id": "billing"}
    producer = confluent_kafka.Producer(config)
    producer.init_transactions(30)
    for value in (b"aborted", b"committed", b"open"):
        producer.begin_transaction()
        producer.produce("orders", value)
        assert producer.flush(30) == 0
        if value == b"aborted":
            producer.abort_transaction(30)
        elif value == b"committed":
            producer.commit_transaction(30)
    assert values(broker.records("orders")) == [b"aborted", b"committed", b"open"]
    assert values(broker.records("orders", read_committed=True)) == [b"committed"]
    assert values(broker.wait_for("orders", 1, read_committed=True)) == [b"committed"]
    with pytest.raises(TimeoutError, match=r"orders has 1 of 2 records after 0\.05 s"):
        broker.wait_for("orders", 2, timeout=0.05, read_committed=True)


# -- waiting --


def test_wait_for_waits_for_topic_and_last_record(broker):
    def produce():
        for number in range(3):
            broker.produce("orders", str(number))

    thread = threading.Thread(target=produce)
    thread.start()
    found = broker.wait_for("orders", 3, timeout=60)
    thread.join()
    assert values(found) == [b"0", b"1", b"2"]


def test_timed_out_wait_reports_existing_records(broker):
    with pytest.raises(TimeoutError, match=r"there is no topic orders after 0\.02 s"):
        broker.wait_for("orders", 1, timeout=0.02)
    broker.produce("orders", "one")
    with pytest.raises(TimeoutError, match="orders has 1 of 2 records after 0 s"):
        broker.wait_for("orders", 2, timeout=0)
    assert values(broker.wait_for("orders", 1, timeout=0)) == [b"one"]


def test_wait_fails_when_the_broker_is_killed(broker):
    broker.produce("orders", "one")
    errors = []
    is_waiting = threading.Event()

    def wait():
        is_waiting.set()
        try:
            broker.wait_for("orders", 2, timeout=60)
        except (ConnectionError, RuntimeError) as error:
            errors.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    assert is_waiting.wait(60)
    broker.kill()
    thread.join(60)
    assert len(errors) == 1
    broker.start()


# -- life cycle --


def test_acknowledged_records_survive_stop_and_kill_at_same_address(fragile):
    address = fragile.bootstrap_servers
    fragile.produce("orders", "one")
    fragile.stop()
    with pytest.raises(RuntimeError, match="is not running"):
        fragile.records("orders")
    assert "not running" in repr(fragile)
    fragile.start()
    fragile.produce("orders", "two")
    fragile.kill()
    fragile.start()
    fragile.start()  # it is running already
    assert values(fragile.records("orders")) == [b"one", b"two"]
    assert fragile.bootstrap_servers == address
    assert address in repr(fragile)


def test_reset_removes_everything(fragile):
    address, directory = fragile.bootstrap_servers, fragile.directory
    fragile.create_topics({"orders": 3, "payments": 1})
    fragile.produce("orders", "one")
    fragile.reset(config={"num.partitions": 2})
    assert fragile.topics() == {}
    assert fragile.committed("billing") == {}
    assert fragile.bootstrap_servers != address
    assert fragile.directory != directory
    fragile.produce("orders", "one")
    assert fragile.topics() == {"orders": 2}
    fragile.reset()
    fragile.produce("orders", "one")
    assert fragile.topics() == {"orders": 1}


def test_reset_keeps_its_own_process_unless_configs_change():
    with Broker.spawn() as broker:
        process, address = process_of(broker), broker.bootstrap_servers
        broker.clock.advance(days=7)
        fault = broker.faults.error("METADATA", "LEADER_NOT_AVAILABLE")
        with client_of(broker) as client:
            client.ask(ApiKey.METADATA, 12, {"topics": None})
        assert broker.requests()
        broker.reset()
        assert process_of(broker) == process
        assert broker.bootstrap_servers != address
        assert (fault.acted, broker.requests(), broker.topics()) == (0, [], {})
        assert abs(broker.clock.now_ms() - SystemClock().now_ms()) < 3_600_000
        broker.kill()
        broker.start()
        broker.reset(config={"num.partitions": 2})
        broker.produce("orders", "one")
        assert broker.topics() == {"orders": 2}
        assert process_of(broker) != process


def test_reset_replaces_a_hanging_or_ended_process(monkeypatch):
    monkeypatch.setattr(child_process, "_RESET_S", 0.1)
    with Broker.spawn() as broker:
        for end in (signal.SIGSTOP, signal.SIGKILL):
            process = process_of(broker)
            os.kill(process, end)
            broker.reset()
            assert process_of(broker) != process
            broker.produce("orders", "one")
            assert broker.topics() == {"orders": 1}


def test_internal_topics_exist_from_the_start(fragile):
    """Otherwise the first client gets a retriable error, and librdkafka retries a second later."""
    for begin in (fragile.start, fragile.reset):
        begin()
        fragile.create_topic("orders")  # is created after the earlier changes
        found = fragile._life.ask(lambda client: client.metadata())
        names = {topic.name for topic in found.topics}
        assert names == {"orders", "__consumer_offsets", "__transaction_state"}
        assert fragile.topics() == {"orders": 1}


def test_a_reset_closes_connections(broker):
    address = address_of(broker)
    with client_of(broker) as client:
        client.ask(ApiKey.METADATA, 12, {"topics": None})
        broker.reset()
        with pytest.raises((ConnectionError, AssertionError), match=r"closed|reset|Broken"):
            client.ask(ApiKey.METADATA, 12, {"topics": None})
    with pytest.raises(ConnectionRefusedError):
        BlockingClient(address)


def test_port_left_by_a_broker_is_not_reused():
    with Broker() as broker:
        left = [address_of(broker)]
        broker.reset()
        left.append(address_of(broker))
        broker.reset()
        for host, port in left:
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection((host, port), timeout=5)
            with socket.socket() as other, pytest.raises(OSError, match="in use"):
                other.bind((host, port))
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(left[0])
        other.listen()


def test_held_ports_are_limited():
    held = ReservedPorts()
    with socket.socket() as some:
        some.bind(("127.0.0.1", 0))
        held.hold(PeerAddress(*some.getsockname()))
        assert not held._sockets
    for _ in range(201):
        held.hold(PeerAddress("127.0.0.1", 0))
    assert len(held._sockets) == 200
    held.release()
    assert not held._sockets


def test_close_removes_files_and_threads(fragile):
    folder = fragile.directory.parent
    assert folder.is_dir()
    threads = threading.active_count()
    snapshot = fragile.snapshot(folder.with_suffix(".kept"))
    fragile.close()
    assert not folder.exists()
    assert threading.active_count() <= threads
    for use in (
        fragile.start,
        fragile.reset,
        fragile.snapshot,
        lambda: fragile.restore(snapshot),
    ):
        with pytest.raises(RuntimeError, match="was closed"):
            use()
    snapshot.remove()
    assert not folder.exists()
    assert threading.active_count() <= threads


@pytest.mark.parametrize("own_process", [False, True])
def test_directory_named_by_configs_is_not_emptied(tmp_path, own_process):
    broker = Broker(config={"metadata.log.dir": str(tmp_path)}, own_process=own_process)
    with pytest.raises(RuntimeError, match="is not reset"):
        broker.reset()
    broker.close()


def test_given_directory_is_kept(tmp_path):
    with Broker(directory=tmp_path / "data") as broker:
        broker.produce("orders", "one")
        with pytest.raises(RuntimeError, match="is not reset"):
            broker.reset()
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()
    with Broker(directory=str(tmp_path / "data")) as broker:
        assert values(broker.records("orders")) == [b"one"]


async def test_broker_works_as_an_async_context_manager():
    async with Broker() as broker:
        await asyncio.to_thread(broker.produce, "orders", "one")
        found = await asyncio.to_thread(broker.wait_for, "orders", 1)
    assert values(found) == [b"one"]


@pytest.mark.parametrize("own_process", [False, True])
def test_start_failure_is_reported(own_process, shared):
    _, port = address_of(shared)
    with pytest.raises((ConfigError, StartError), match=r"num\.partitoins"):
        Broker(config={"num.partitoins": 2}, own_process=own_process).start()
    with pytest.raises(StartError, match=f"127.0.0.1:{port}"):
        Broker(port=port, own_process=own_process).start()
    with pytest.raises((ConfigError, StartError), match="authorizer"):
        Broker(config={"authorizer.class.name": "Some"}, own_process=own_process).start()


def test_using_an_unstarted_broker_is_an_error():
    broker = Broker()
    with pytest.raises(RuntimeError, match="was not started"):
        _ = broker.bootstrap_servers
    with pytest.raises(RuntimeError, match="is not running"):
        broker.topics()
    broker.stop()
    broker.kill()
    broker.close()


def test_environment_variables_do_not_affect_the_broker(monkeypatch, fragile):
    monkeypatch.setenv("KAFKA_NUM_PARTITIONS", "7")
    monkeypatch.setenv("KAFKA_LISTENERS", "PLAINTEXT://127.0.0.1:1")
    fragile.stop()
    fragile.start()
    fragile.produce("orders", "one")
    assert fragile.topics() == {"orders": 1}


def test_client_config_has_the_format_of_each_client(shared):
    address = shared.bootstrap_servers
    assert shared.client_config("confluent") == {"bootstrap.servers": address}
    assert shared.client_config("kafka-python") == {"bootstrap_servers": address}
    assert shared.client_config("aiokafka") == {"bootstrap_servers": address}
    assert shared.client_config("spark") == {"kafka.bootstrap.servers": address}
    with pytest.raises(ValueError, match="no client is called 'pulsar'"):
        shared.client_config("pulsar")


# -- the log --


def test_log_lines_begin_at_the_start(fragile):
    fragile.produce("orders", "one")
    assert any("created topic orders" in line for line in fragile.log_lines())
    assert len(fragile.log_lines(most=1)) == 1
    assert fragile.log_lines(most=0) == []
    fragile.reset()
    assert not any("created topic" in line for line in fragile.log_lines())


def test_log_messages_still_reach_the_program(broker, caplog):
    logger = logging.getLogger("wirebroker.tests")
    logger.info("for the report alone")
    logger.warning("for everybody")
    assert [record.getMessage() for record in caplog.records] == ["for everybody"]
    with caplog.at_level(logging.INFO, "wirebroker"):
        logger.info("asked for")
    assert caplog.records[-1].getMessage() == "asked for"
    said = "\n".join(broker.log_lines())
    assert all(each in said for each in ("for the report alone", "for everybody", "asked for"))


def test_logging_is_restored_after_the_last_broker(broker):
    logger = logging.getLogger("wirebroker")
    inside = logger.level
    with Broker():
        pass
    assert logger.level == inside
    broker.stop()
    assert logger.level == logging.NOTSET
    broker.start()


def test_a_program_without_handlers_still_gets_warnings(broker, capsys, monkeypatch):
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    logging.getLogger("wirebroker.tests").warning("mind this")
    assert "mind this" in capsys.readouterr().err
    assert "mind this" in broker.log_lines()[-1]


@pytest.mark.parametrize("names", [("start", "start"), ("stop", "close"), ("close", "close")])
def test_lifecycle_methods_may_be_called_by_several_threads(names):
    threads = threading.active_count()
    for _ in range(3):
        broker = Broker()
        if "start" not in names:
            broker.start()
        with ThreadPoolExecutor(2) as pool:
            for call in [pool.submit(getattr(broker, name)) for name in names]:
                call.result()
        broker.close()
    assert threading.active_count() <= threads
