"""`assert_produced` and `assert_consumed`: accepted records and failure messages."""

from __future__ import annotations

import re

import confluent_kafka
import pytest

from wirebroker.testing import Broker, KafkaError
from wirebroker.testing.clients.differences import as_fields, difference
from wirebroker.testing.clients.topic_record import TopicRecord


@pytest.fixture(scope="module")
def shared():
    with Broker() as broker:
        yield broker


def records(*values):
    return [
        TopicRecord(topic="t", partition=0, offset=offset, timestamp=0, key=b"k", value=value)
        for offset, value in enumerate(values)
    ]


def differs(expected, actual, *, any_order=False):
    return difference([as_fields(value) for value in expected], actual, any_order=any_order)


def test_matching_records_have_no_difference():
    assert differs(["a", b"b", None], records(b"a", b"b", None)) is None
    assert differs([{"key": "k", "value": "a", "offset": 0}], records(b"a")) is None
    assert differs(["b", "a"], records(b"a", b"b"), any_order=True) is None
    assert differs(["a", {"value": "a", "offset": 0}], records(b"a", b"a"), any_order=True) is None
    assert differs([{"headers": {}}, {"headers": []}], records(b"a", b"b")) is None


def test_a_difference_is_shown_line_by_line():
    assert differs(["a", "x", "c"], records(b"a", b"b", b"c", b"d")).splitlines() == [
        "            value=b'a' key=b'k' (t-0@0)",
        "- expected  value=b'x'",
        "+ stored    value=b'b' key=b'k' (t-0@1)",
        "            value=b'c' key=b'k' (t-0@2)",
        "+ stored    value=b'd' key=b'k' (t-0@3)",
    ]
    assert differs(["a", "c"], records(b"a", b"b"), any_order=True).splitlines() == [
        "- missing   value=b'c'",
        "+ surplus   value=b'b' key=b'k' (t-0@1)",
    ]
    assert "- expected" in differs(["b", "a"], records(b"a", b"b"))


def test_unknown_record_field_is_refused():
    with pytest.raises(ValueError, match="a record has no topik"):
        as_fields({"topik": "t"})


def test_assert_produced_waits_for_and_compares_records(broker):
    with pytest.raises(AssertionError, match="there is no topic orders"):
        broker.assert_produced("orders", "a", timeout=0)
    broker.produce("orders", "a", headers={"trace": "1"})
    broker.produce("orders", "b")
    broker.assert_produced("orders", {"value": "a", "headers": {"trace": "1"}}, "b")
    broker.assert_produced("orders", "b", "a", any_order=True)
    with pytest.raises(AssertionError) as caught:
        broker.assert_produced("orders", "a", "b", "c", timeout=0)
    assert str(caught.value).startswith("orders does not have the expected records:\n")
    assert "- expected  value=b'c'" in str(caught.value)
    with pytest.raises(AssertionError, match=r"\+ stored    value=b'b'"):
        broker.assert_produced("orders", "a")


def test_assert_consumed_checks_committed_offsets(broker):
    for value in ("a", "b"):
        broker.produce("orders", value)
    message = "billing has not consumed all of orders:\n  orders-0: nothing is committed, 2 of 2"
    with pytest.raises(AssertionError, match=re.escape(message)):
        broker.assert_consumed("orders", "billing", timeout=0)
    config = broker.client_config("confluent")
    consumer = confluent_kafka.Consumer(config | {"group.id": "billing"})
    position = confluent_kafka.TopicPartition("orders", 0, 1)
    consumer.commit(offsets=[position], asynchronous=False)
    with pytest.raises(AssertionError, match="committed up to offset 1, 1 of 2 are left"):
        broker.assert_consumed("orders", "billing", timeout=0)
    position.offset = 2
    consumer.commit(offsets=[position], asynchronous=False)
    broker.assert_consumed("orders", "billing")
    consumer.close()
    with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        broker.assert_consumed("nothing", "billing", timeout=0)
