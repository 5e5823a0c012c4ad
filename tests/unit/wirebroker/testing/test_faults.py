"""Injected faults: their effects on clients and on the broker."""

from __future__ import annotations

import time

import confluent_kafka
import pytest

from tests.support.protocol.message_values import versions_of
from tests.support.protocol.sample_requests import SampleRequests
from tests.support.protocol.served_keys import served_keys
from wirebroker.base.clock import SystemClock
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.messages import decode_request, decode_response, encode_request
from wirebroker.codecs.records.batch import build_batch
from wirebroker.testing import Broker, KafkaError
from wirebroker.testing.faults.refusals import can_be_refused, refusal_of


@pytest.fixture
def broker(broker):
    broker.create_topics({"orders": 1, "payments": 1})
    return broker


def values(records):
    return [record.value for record in records]


def produce(client, topic="orders", acks=-1):
    records = bytes(build_batch([(None, b"one", ())], timestamp_ms=SystemClock().now_ms()))
    data = [{"name": topic, "partition_data": [{"index": 0, "records": records}]}]
    body = {"acks": acks, "timeout_ms": 1000, "topic_data": data}
    answer = client.ask(ApiKey.PRODUCE, 9, body)
    (row,) = answer.responses[0].partition_responses
    return ErrorCode(row.error_code)


def test_error_is_injected_the_given_number_of_times(broker, client):
    fault = broker.faults.error("PRODUCE", "NOT_LEADER_OR_FOLLOWER", topic="orders").times(2)
    assert produce(client, "payments") == ErrorCode.NONE
    assert [produce(client) for _ in range(3)] == [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NONE,
    ]
    assert fault.acted == 2
    assert values(broker.records("orders")) == [b"one"]


def test_producer_recovers_from_a_temporary_error(broker):
    broker.faults.error(ApiKey.PRODUCE, ErrorCode.NOT_LEADER_OR_FOLLOWER).times(1)
    producer = confluent_kafka.Producer(broker.client_config("confluent"))
    producer.produce("orders", b"one")
    assert producer.flush(30) == 0
    assert len(broker.requests(api="PRODUCE")) == 2
    broker.assert_produced("orders", "one")


def test_consumer_recovers_from_fetch_and_metadata_errors(broker):
    broker.produce("orders", "one")
    broker.faults.error("METADATA", "LEADER_NOT_AVAILABLE", topic="orders").times(1)
    broker.faults.error("FETCH", "NOT_LEADER_OR_FOLLOWER", topic="orders").times(1)
    broker.faults.error("FIND_COORDINATOR", "COORDINATOR_NOT_AVAILABLE").times(1)
    broker.faults.error("JOIN_GROUP", "COORDINATOR_LOAD_IN_PROGRESS").times(1)
    settings = {"group.id": "billing", "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer(broker.client_config("confluent") | settings)
    consumer.subscribe(["orders"])
    message = None
    while message is None or message.error():
        message = consumer.poll(1)
    assert message.value() == b"one"
    consumer.close()


@pytest.mark.parametrize(("when", "stored"), [("before_append", []), ("after_append", [b"one"])])
def test_connection_is_closed_before_or_after_the_append(broker, client, when, stored):
    broker.faults.disconnect("PRODUCE", when=when)
    with pytest.raises((ConnectionError, AssertionError), match="closed"):
        produce(client)
    assert values(broker.records("orders")) == stored


def test_delay_precedes_the_request_handling(broker, client):
    broker.faults.delay("PRODUCE", seconds=0.2)
    before = time.monotonic()
    assert produce(client) == ErrorCode.NONE
    assert time.monotonic() - before >= 0.2


def test_throttle_fault_sets_the_throttle_time(broker, client):
    broker.faults.throttle("METADATA", seconds=7)
    answer = client.ask(ApiKey.METADATA, 12, {"topics": None})
    assert answer.throttle_time_ms == 7000
    assert {"orders", "payments"} <= {topic.name for topic in answer.topics}


def test_black_hole_sends_no_response(broker):
    config = broker.client_config("confluent") | {"client.id": "shop", "message.timeout.ms": 500}
    fault = broker.faults.blackhole("PRODUCE", client_id="shop")
    failures = []
    producer = confluent_kafka.Producer(config)
    producer.produce("orders", b"one", on_delivery=lambda error, _: failures.append(error))
    producer.flush(30)
    assert failures[0] is not None
    assert broker.records("orders") == []
    fault.remove()
    producer = confluent_kafka.Producer(config | {"message.timeout.ms": 30000})
    producer.produce("orders", b"two")
    assert producer.flush(30) == 0


def test_full_disk_refuses_writes_and_serves_reads(broker):
    broker.produce("orders", "one")
    with broker.faults.disk_full(), pytest.raises(KafkaError, match="KAFKA_STORAGE_ERROR"):
        broker.produce("orders", "two")
    assert values(broker.records("orders")) == [b"one"]


def test_faults_end_with_a_reset(broker):
    broker.faults.error("METADATA", "LEADER_NOT_AVAILABLE")
    assert len(broker._life.instruct("faults", {})) == 1
    broker.reset()
    assert broker._life.instruct("faults", {}) == []


def test_invalid_fault_is_refused(broker):
    with pytest.raises(ValueError, match=r"no error is called NOT_LEADER; did you mean"):
        broker.faults.error("PRODUCE", "NOT_LEADER")
    with pytest.raises(ValueError, match="no request is called"):
        broker.faults.disconnect("PRODUKE")
    with pytest.raises(ValueError, match="when must be one of"):
        broker.faults.disconnect("PRODUCE", when="sometimes")
    with pytest.raises(ValueError, match="delay_ms must be 1 to"):
        broker.faults.delay("PRODUCE", seconds=0)
    with pytest.raises(ValueError, match="a whole number of at least 0, not -1000"):
        broker.faults.delay("PRODUCE", seconds=-1)


def test_failed_sync_takes_directory_offline_until_next_start():
    with Broker(config={"wirebroker.durability": "fsync"}) as broker:
        broker.produce("orders", "one")
        fault = broker.faults.fail_fsync()
        with pytest.raises(KafkaError):
            broker.produce("orders", "two")
        fault.remove()
        broker.kill()
        broker.start()
        assert b"one" in values(broker.records("orders"))


def errors_in(value):
    if isinstance(value, dict):
        for name, item in value.items():
            if name.endswith("error_code"):
                yield item
            else:
                yield from errors_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from errors_in(item)


@pytest.mark.parametrize(
    "key",
    sorted(set(served_keys(wirebroker_client_metrics="true")) - {ApiKey.METADATA}),
    ids=lambda key: key.name,
)
def test_every_version_of_every_response_reports_the_error(key):
    assert can_be_refused(key)
    for version in versions_of(key):
        request = encode_request(key, version, SampleRequests(bytes([7] * 16)).body(key, version))
        body = decode_request(key, version, request)
        for code in set(ErrorCode) - {ErrorCode.NONE}:
            answer = refusal_of(key, version, body, code)
            first_bytes = key == ApiKey.API_VERSIONS and code == ErrorCode.UNSUPPORTED_VERSION
            decoded = decode_response(key, 0 if first_bytes else version, answer)
            assert set(errors_in(decoded.as_dict())) - {0} == {code}, (version, code)


@pytest.mark.parametrize("version", versions_of(ApiKey.FETCH))
def test_a_fetch_error_comes_with_empty_records(version):
    # librdkafka drops a response whose records are null.
    request = encode_request(
        ApiKey.FETCH, version, SampleRequests(bytes([7] * 16)).body(ApiKey.FETCH, version)
    )
    body = decode_request(ApiKey.FETCH, version, request)
    answer = refusal_of(ApiKey.FETCH, version, body, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    (topic,) = decode_response(ApiKey.FETCH, version, answer).responses
    (partition,) = topic.partitions
    assert (partition.error_code, partition.records) == (6, b"")


@pytest.mark.parametrize(
    ("version", "names", "error", "found"),
    [
        (12, ["orders"], "LEADER_NOT_AVAILABLE", (0, [5])),
        (13, ["orders"], "LEADER_NOT_AVAILABLE", (0, [5])),
        (13, [], "UNKNOWN_SERVER_ERROR", (-1, [])),
        (13, ["orders"], "REBOOTSTRAP_REQUIRED", (129, [0])),
        (12, ["orders"], "REBOOTSTRAP_REQUIRED", (0, [129])),
    ],
    ids=str,
)
def test_a_metadata_error_names_brokers_too(  # noqa: PLR0917 - a table
    broker, client, version, names, error, found
):
    broker.faults.error("METADATA", error)
    topics = [{"name": name} for name in names]
    answer = client.ask(ApiKey.METADATA, version, {"topics": topics})
    assert (answer.error_code, [topic.error_code for topic in answer.topics]) == found
    assert len(answer.brokers) == 1


@pytest.mark.parametrize(
    ("error", "at_top"), [("INVALID_FETCH_SESSION_EPOCH", 71), ("NOT_LEADER_OR_FOLLOWER", 70)]
)
def test_session_fetch_gets_only_session_errors_at_the_top(broker, client, error, at_top):
    """Other errors need the partitions, which the client then has to name again."""
    request = {"max_bytes": 1000, "topics": [{"topic": "orders", "partitions": [{"partition": 0}]}]}
    session = client.ask(ApiKey.FETCH, 12, request | {"session_epoch": 0}).session_id
    broker.faults.error("FETCH", error)
    again = {"max_bytes": 1000, "session_id": session, "session_epoch": 1, "topics": []}
    assert client.ask(ApiKey.FETCH, 12, again).error_code == at_top
