"""Records that cannot be delivered, and instances that restart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from compat_tests.delivery.running_service import PATIENCE_S, told
from tests.support.tools.waiting import eventually
from wirebroker.client.records.partitioning import partition_for
from wirebroker.delivery.service.index_directory import INDEX_FILES

if TYPE_CHECKING:
    from compat_tests.delivery.running_service import Service

# Of the records' size; brokers refuse more than a MiB.
LARGE_BYTES = 900_000
YEAR_9999 = "9999-12-31T23:59:59Z"


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ({"deliver_id": "x" * 257}, "an id has 1 to 256 bytes"),
        ({"deliver_to": "x" * LARGE_BYTES}, "is not a topic name"),
        ({"deliver_at": "9" * LARGE_BYTES}, "is not a time"),
        ({"deliver_at": YEAR_9999}, "wirebroker.delivery.max.delay.ms"),
        ({"deliver_after": "1h", "expires_after": "1s"}, "it expires before it is due"),
        ({"deliver_partition": "9"}, "has no partition 9: it has 2"),
        ({"deliver_to": b"\xff"}, "deliver-to is not UTF-8"),
        ({"deliver_afer": "5m"}, "there is no header deliver-afer"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_bad_header_makes_a_dead_letter_with_the_reason(
    service: Service, headers: dict[str, Any], reason: str
) -> None:
    service.send(b"bad", **{"deliver_to": service.orders} | headers)
    service.send(b"good", deliver_to=service.orders)
    (letter,) = service.wait_for(f"{service.deliver}.dead-letters", 1)
    assert letter.value() == b"bad"
    assert reason in told(letter)["message"]
    assert [record.value() for record in service.wait_for(service.orders, 1)] == [b"good"]


def test_a_record_with_large_headers_arrives_unchanged(service: Service) -> None:
    service.send(b"large", deliver_to=service.orders, deliver_after="200ms", note="n" * LARGE_BYTES)
    (record,) = service.wait_for(service.orders, 1)
    assert dict(record.headers())["note"] == b"n" * LARGE_BYTES


def test_a_record_that_expires_while_the_service_is_stopped_becomes_a_dead_letter(
    service: Service,
) -> None:
    service.process.stop()
    service.send(b"late", deliver_to=service.orders, deliver_after="1ms", expires_after="1ms")
    service.send(b"valid", deliver_to=service.orders, deliver_after="1ms", expires_after="1h")
    with service.process:
        assert [record.value() for record in service.wait_for(service.orders, 1)] == [b"valid"]
        (letter,) = service.wait_for(f"{service.deliver}.dead-letters", 1)
    assert letter.value() == b"late"
    assert told(letter)["message"].startswith("expired: ")


def test_a_record_arrives_in_its_partition_or_the_one_that_java_chooses(service: Service) -> None:
    keys = [b"customer-%d" % number for number in range(8)]
    for key in keys:
        service.send(b"by key", key=key, deliver_to=service.orders)
    service.send(b"given", deliver_to=service.orders, deliver_partition="1")
    found = {
        (record.key(), record.value()): record.partition()
        for record in service.wait_for(service.orders, len(keys) + 1)
    }
    assert found == {
        **{(key, b"by key"): partition_for(key, 2) for key in keys},
        (b"k", b"given"): 1,
    }


def test_an_index_that_was_deleted_is_rebuilt_with_its_ids(service: Service) -> None:
    # Through different partitions of the input: the keys differ.
    for number in range(4):
        for name in ("a", "b"):
            service.send(
                b"%d" % number,
                key=b"%d" % number,
                deliver_to=service.orders,
                deliver_after="1h",
                deliver_id=name,
            )
    eventually(lambda: service.verb("pending")["pending"] == 2, timeout_s=PATIENCE_S, poll_s=0.5)
    service.process.stop()
    indexes = list(service.process.directory.glob(INDEX_FILES))
    assert indexes
    for file in indexes:
        file.unlink()
    with service.process:
        service.send(b"last", deliver_to=service.orders, deliver_id="a")
        service.send(None, deliver_id="b")
        assert [record.value() for record in service.wait_for(service.orders, 1)] == [b"last"]
        eventually(
            lambda: service.verb("pending")["pending"] == 0, timeout_s=PATIENCE_S, poll_s=0.5
        )
        assert len(service.wait_for(service.orders, 1)) == 1
