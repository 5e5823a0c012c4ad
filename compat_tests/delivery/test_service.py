"""What the delivery service does with records, on a running broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compat_tests.delivery.running_service import PATIENCE_S, told
from tests.support.delivery.delivery_process import DeliveryProcess
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from compat_tests.delivery.running_service import Service


def test_records_arrive_unchanged_and_not_early(service: Service) -> None:
    service.send(b"later", deliver_to=service.orders, deliver_after="3s", trace="a1")
    service.send(b"now", deliver_to=service.orders)
    service.send(None, deliver_to=service.orders)
    arrived = service.wait_for(service.orders, 3)
    assert {message.value() for message in arrived} == {b"later", b"now", None}
    (later,) = [message for message in arrived if message.value() == b"later"]
    headers = dict(later.headers())
    assert headers.keys() == {"trace", "deliver-original-timestamp"}
    assert later.key() == b"k"
    assert later.timestamp()[1] >= int(headers["deliver-original-timestamp"]) + 3_000


def test_ids_replace_and_cancel_and_commands_change_pending_records(service: Service) -> None:
    for value, name in ((b"old", "a"), (b"new", "a"), (b"b", "b"), (b"c", "c"), (b"d", "d")):
        service.send(value, deliver_to=service.orders, deliver_after="1h", deliver_id=name)
    service.send(None, deliver_id="b")
    eventually(lambda: service.verb("pending")["pending"] == 3, timeout_s=PATIENCE_S, poll_s=0.5)
    service.verb("cancel", "--id", "c", "--yes")
    assert service.verb("pending", "--topic", "other") == {"pending": 0, "records": []}
    rows = service.verb("pending")["records"]
    (entry,) = [row["entry"] for row in rows if row["delivery_id"] == "a"]
    service.verb("deliver-now", "--entry", entry, "--yes")
    assert [message.value() for message in service.wait_for(service.orders, 1)] == [b"new"]
    eventually(lambda: service.verb("pending")["pending"] == 1, timeout_s=PATIENCE_S, poll_s=0.5)


def test_records_that_cannot_be_delivered_do_not_stop_others(service: Service) -> None:
    service.create("small-" + service.orders, **{"max.message.bytes": "1000"})
    small = f"orders-small-{service.orders}"
    service.create(small, **{"max.message.bytes": "1000"})
    service.send(b"x" * 5_000, deliver_to=small)
    service.send(b"no topic", deliver_to="orders-missing")
    service.send(b"not allowed", deliver_to="__consumer_offsets")
    service.send(b"bad time", deliver_to=service.orders, deliver_at="soon")
    service.send(b"good", deliver_to=service.orders)
    assert [message.value() for message in service.wait_for(service.orders, 1)] == [b"good"]
    letters = service.wait_for(f"{service.deliver}.dead-letters", 4)
    reasons = {message.value()[:5]: told(message)["message"] for message in letters}
    assert "refused the record" in reasons[b"xxxxx"]
    assert "there is no topic" in reasons[b"no to"]
    assert "wirebroker.delivery.targets" in reasons[b"not a"]
    assert "is not a time" in reasons[b"bad t"]


def test_a_retried_record_returns_and_then_becomes_a_dead_letter(service: Service) -> None:
    back = f"{service.orders}.retry.billing"
    service.create(back)
    service.create(f"{service.orders}.dead-letters")
    service.send(b"v", service.retry, retry_topic=back, retry_backoff="100ms")
    (returned,) = service.wait_for(back, 1)
    assert dict(returned.headers())["retry-attempt"] == b"1"
    service.send(b"v", service.retry, retry_topic=back, retry_backoff="100ms", retry_attempt="1")
    (letter,) = service.wait_for(f"{service.orders}.dead-letters", 1)
    assert told(letter)["message"] == "1 retries failed"
    assert told(letter)["group"] == "billing"


def test_metrics_count_deliveries_and_lateness(service: Service) -> None:
    service.send(b"now", deliver_to=service.orders)
    service.wait_for(service.orders, 1)
    eventually(lambda: "wirebroker_delivery_delivered_total 1" in service.metrics())
    assert "wirebroker_delivery_lateness_seconds_count 1" in service.metrics()
    assert 'wirebroker_delivery_pending{within_seconds="+Inf"}' in service.metrics()


def test_an_input_topic_that_was_added_is_read_after_a_restart(service: Service) -> None:
    service.send(b"first", deliver_to=service.orders)
    service.wait_for(service.orders, 1)
    service.process.stop()
    added = f"{service.deliver}-added"
    settings = service.settings | {"wirebroker.delivery.topics": f"{service.deliver},{added}"}
    with DeliveryProcess(service.bootstrap, service.process.directory, settings):
        eventually(lambda: service.has_topic(added), timeout_s=PATIENCE_S)
        service.send(b"second", added, deliver_to=service.orders)
        values = {record.value() for record in service.wait_for(service.orders, 2)}
    assert values == {b"first", b"second"}


def test_a_second_instance_with_the_same_directory_is_refused(service: Service) -> None:
    second = DeliveryProcess(service.bootstrap, service.process.directory)
    second.log = second.directory.with_suffix(".second")
    second.start()
    assert second.wait() == 1
    assert "is used by another process" in second.text()
