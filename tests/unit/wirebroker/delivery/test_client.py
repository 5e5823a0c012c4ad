"""The headers that the helpers set, as the service reads them."""

from __future__ import annotations

import datetime
from types import SimpleNamespace

import pytest

from tests.unit.wirebroker.delivery.delivery_kit import NOW, RULES
from wirebroker.base.dead_letter_headers import read_dead_letter_headers
from wirebroker.delivery.client import dead_letter, later, retry
from wirebroker.delivery.model.entry import EntryCommand, PendingEntry
from wirebroker.delivery.model.records import ReceivedRecord
from wirebroker.delivery.model.routing import route


def as_received(sent):
    return ReceivedRecord(
        sent["topic"], 0, 0, NOW, sent["key"], sent["value"], tuple(sent["headers"])
    )


def routed(received) -> PendingEntry:
    entry = route(received, RULES, NOW)
    assert isinstance(entry, PendingEntry)
    return entry


class ConfluentMessage:
    """Fields are methods, as in confluent-kafka."""

    def __init__(self, **fields) -> None:
        for name, value in fields.items():
            setattr(self, name, lambda value=value: value)


FIELDS = {
    "topic": "orders",
    "partition": 4,
    "offset": 99,
    "key": b"k",
    "value": b"v",
    "headers": [("trace", b"a1")],
}


def test_later_sets_what_the_service_reads():
    at = datetime.datetime.fromtimestamp(NOW / 1000, datetime.UTC) + datetime.timedelta(hours=1)
    sent = later(
        "orders",
        b"v",
        key=b"k",
        headers=[("trace", b"a1")],
        at=at,
        partition=2,
        delivery_id="x",
        expires_after=datetime.timedelta(hours=2),
    )
    entry = routed(as_received(sent))
    assert (entry.target, entry.due_ms, entry.partition) == ("orders", NOW + 3_600_000, 2)
    assert (entry.delivery_id, entry.expires_ms) == ("x", NOW + 7_200_000)
    assert entry.headers[0] == ("trace", b"a1")
    cancel = later("orders", None, delivery_id="x")
    assert isinstance(route(as_received(cancel), RULES, NOW), EntryCommand)


def test_later_refuses_a_time_without_zone():
    with pytest.raises(ValueError, match="no time zone"):
        later("orders", b"v", at=datetime.datetime(2027, 1, 1))  # noqa: DTZ001 - refused


@pytest.mark.parametrize("kind", [SimpleNamespace, ConfluentMessage])
def test_retries_keep_the_origin_and_count_attempts(kind):
    sent = retry(kind(**FIELDS), KeyError("price"), group="billing", backoff="1s,2s")
    entry = routed(as_received(sent))
    assert (entry.target, entry.due_ms, entry.attempt) == ("orders.retry.billing", NOW + 1_000, 1)
    returned = kind(
        **FIELDS
        | {"topic": entry.target, "partition": 0, "offset": 3, "headers": list(entry.headers)}
    )
    again = retry(returned, ValueError("still"), group="billing", backoff="1s,2s")
    entry = routed(as_received(again))
    assert (entry.due_ms, entry.attempt) == (NOW + 2_000, 2)
    told = read_dead_letter_headers(entry.headers)
    assert (told["topic"], told["partition"], told["offset"]) == ("orders", "4", "99")
    assert (told["message"], told["delivery.count"]) == ("still", "2")


@pytest.mark.parametrize("kind", [SimpleNamespace, ConfluentMessage])
def test_dead_letters_go_to_the_topic_of_the_source(kind):
    sent = dead_letter(kind(**FIELDS), RuntimeError(), group="billing")
    assert (sent["topic"], sent["value"]) == ("orders.dead-letters", b"v")
    told = read_dead_letter_headers(sent["headers"])
    assert (told["offset"], told["group"], told["message"]) == ("99", "billing", "RuntimeError")


def test_a_dead_letter_of_a_retried_record_without_an_origin_goes_to_the_topic_of_the_source():
    """Another client sent it to be retried, with the headers of retries alone."""
    returned = SimpleNamespace(**FIELDS | {"topic": "orders.retry.billing"})
    sent = dead_letter(returned, RuntimeError(), group="billing")
    assert sent["topic"] == "orders.dead-letters"
    assert read_dead_letter_headers(sent["headers"])["topic"] == "orders.retry.billing"


def test_the_text_of_an_error_is_bounded():
    sent = retry(SimpleNamespace(**FIELDS), ValueError("ä" * 10_000), group="billing")
    assert read_dead_letter_headers(sent["headers"])["message"] == "ä" * 1_000
