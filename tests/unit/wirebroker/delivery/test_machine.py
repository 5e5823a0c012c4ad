"""Scheduling, replacement, cancellation, expiry and retries by the machine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.wirebroker.delivery.delivery_kit import (
    NOW,
    PENDING,
    RULES,
    TOPICS,
    MachineRun,
    received,
)
from wirebroker.base.dead_letter_headers import read_dead_letter_headers
from wirebroker.delivery.model.dead_letter import rejected
from wirebroker.delivery.model.entry import (
    EntryCommand,
    EntryKind,
    NewerFormatError,
    encode_entry,
)
from wirebroker.delivery.pending.partition import PendingPartition
from wirebroker.delivery.pending.refusals import RefusedDeadLetterError
from wirebroker.delivery.pending.store import PendingStore


def told(output):
    return read_dead_letter_headers(output.headers)


def test_a_record_is_delivered_when_it_is_due_and_not_before():
    run = MachineRun()
    headers = {"deliver-to": "orders", "deliver-after": "5m", "trace": "a1"}
    run.receive(received(key=b"k", headers=headers))
    assert run.run(NOW + 299_999) == []
    (output,) = run.run(NOW + 300_000)
    assert (output.topic, output.partition, output.key, output.value) == (
        "orders",
        None,
        b"k",
        b"v",
    )
    assert output.headers == (
        ("trace", b"a1"),
        ("deliver-original-timestamp", b"%d" % NOW),
    )
    assert run.run(NOW + 10**9) == []


def test_a_record_without_a_time_is_delivered_at_once():
    run = MachineRun()
    run.receive(received(value=None, headers={"deliver-to": "orders", "deliver-partition": 2}))
    (output,) = run.run(NOW)
    assert (output.partition, output.value) == (2, None)


def test_a_later_record_with_the_same_id_replaces_the_pending_one():
    run = MachineRun()
    for offset, after in enumerate(("1h", "2h", "10m")):
        headers = {"deliver-to": "orders", "deliver-after": after, "deliver-id": "x"}
        run.receive(received(offset, value=b"%d" % offset, headers=headers))
    run.run(NOW)
    assert [output.value for output in run.run(NOW + 600_000)] == [b"2"]
    assert run.run(NOW + 10**8) == []


def test_a_null_value_with_the_id_cancels_the_pending_record():
    run = MachineRun()
    headers = {"deliver-to": "orders", "deliver-after": "1h", "deliver-id": "x"}
    run.receive(received(0, headers=headers))
    run.run(NOW)
    run.receive(received(1, value=None, headers={"deliver-id": "x"}))
    assert run.run(NOW) == []
    assert run.run(NOW + 10**8) == []
    # Nothing is left in the compacted topic.
    assert all(value is None for value in dict(run.log).values())


def test_a_command_makes_an_entry_due_and_survives_a_restart():
    run = MachineRun()
    record = received(headers={"deliver-to": "orders", "deliver-after": "1h", "deliver-id": "x"})
    run.receive(record)
    run.run(NOW)
    command = EntryCommand("command/1", EntryKind.HURRY, "x", None)
    run.log.append((b"command/1", encode_entry(command)))
    restarted = PendingPartition(0, PendingStore(None), len(run.log))
    run.pending = run.machine.partitions[0] = restarted
    run.apply()
    assert restarted.store.garbage(10) == []
    assert [output.value for output in run.run(NOW + 1)] == [b"v"]
    assert all(value is None for value in dict(run.log).values())


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ({}, "deliver-to is missing"),
        ({"deliver-to": "secrets"}, "wirebroker.delivery.targets"),
        ({"deliver-to": "__consumer_offsets"}, "wirebroker.delivery.targets"),
        ({"deliver-to": "deliver"}, "wirebroker.delivery.targets"),
        ({"deliver-to": "orders", "deliver-at": "soon"}, "deliver-at: 'soon' is not a time"),
        ({"deliver-to": "orders", "deliver-at": "9999-12-31T00:00:00Z"}, "ms ahead"),
        ({"deliver-to": "orders", "deliver-at": "1", "deliver-after": "1"}, "exclude each other"),
        (
            {"deliver-to": "orders", "deliver-after": "2h", "expires-after": "1h"},
            "expires before it is due",
        ),
        ({"deliver-to": "orders", "deliver-partition": 3}, "has no partition 3: it has 3"),
        ({"deliver-to": "orders.gone"}, "there is no topic orders.gone"),
    ],
)
def test_a_record_that_cannot_be_delivered_becomes_a_dead_letter(headers, reason):
    run = MachineRun()
    run.receive(received(7, key=b"k", headers=headers))
    run.receive(received(8, value=b"next", headers={"deliver-to": "orders"}))
    letter, delivered = sorted(run.run(NOW), key=lambda output: output.topic)
    assert delivered.value == b"next"
    assert (letter.topic, letter.key, letter.value) == ("deliver.dead-letters", b"k", b"v")
    assert reason in told(letter)["message"]
    place = {name: told(letter)[name] for name in ("topic", "partition", "offset", "group")}
    assert place == {"topic": "deliver", "partition": "0", "offset": "7", "group": "delivery"}


def test_an_expired_record_becomes_a_dead_letter():
    run = MachineRun()
    headers = {"deliver-to": "orders", "deliver-after": "1m", "expires-after": "2m"}
    run.receive(received(headers=headers))
    run.run(NOW)
    (letter,) = run.run(NOW + 120_001)
    assert told(letter)["message"] == "expired: 1 ms too late"


def retried(offset, **headers):
    names = {
        name if name.startswith("__dlq") else name.replace("_", "-"): value
        for name, value in headers.items()
    }
    return received(offset, topic="retry", headers={"retry-topic": "orders.retry.billing"} | names)


def test_a_retried_record_returns_after_its_pause_with_its_attempt():
    run = MachineRun()
    run.receive(retried(0, retry_backoff="1s,10s", trace="a1"))
    assert run.run(NOW + 999) == []
    (first,) = run.run(NOW + 1_000)
    assert first.topic == "orders.retry.billing"
    assert dict(first.headers)["retry-attempt"] == b"1"
    run.receive(retried(1, retry_backoff="1s,10s", retry_attempt=1))
    assert run.run(NOW + 9_999) == []
    (second,) = run.run(NOW + 10_000)
    assert dict(second.headers)["retry-attempt"] == b"2"


def test_the_default_policy_has_three_attempts_and_then_a_dead_letter_of_the_source():
    run = MachineRun()
    told_place = {
        "__dlq.errors.topic": "orders",
        "__dlq.errors.partition": 4,
        "__dlq.errors.offset": 99,
        "__dlq.errors.message": "no price",
    }
    pauses = [1_000, 10_000, 60_000]
    for done, pause in enumerate(pauses):
        run.receive(retried(done, retry_attempt=done, **told_place))
        assert run.run(NOW + pause - 1) == []
        assert len(run.run(NOW + pause)) == 1
    run.receive(retried(3, retry_attempt=3, **told_place))
    (letter,) = run.run(NOW)
    assert letter.topic == "orders.dead-letters"
    assert told(letter) == {
        "topic": "orders",
        "partition": "4",
        "offset": "99",
        "group": "billing",
        "delivery.count": "4",
        "message": "3 retries failed: no price",
    }


def test_a_loop_of_retries_is_bounded():
    run = MachineRun()
    run.receive(retried(0, retry_attempts=101))
    (letter,) = run.run(NOW)
    assert "retry-attempts is over 100" in told(letter)["message"]


def test_a_record_that_the_broker_refuses_becomes_a_dead_letter_and_then_one_without_content():
    run = MachineRun()
    run.receive(received(headers={"deliver-to": "orders"}))
    plan = run.next_plan(NOW)
    run.machine.aborted(plan, {plan.outputs[0].cause: "too large"})
    plan = run.next_plan(NOW)
    (letter,) = plan.outputs
    assert (letter.topic, letter.value) == ("deliver.dead-letters", b"v")
    assert told(letter)["message"] == "the broker refused the entry: too large"
    run.machine.aborted(plan, {letter.cause: "too large as well"})
    plan = run.next_plan(NOW)
    (letter,) = plan.outputs
    assert (letter.key, letter.value) == (None, None)
    assert "too large as well" in told(letter)["message"]
    run.machine.aborted(plan, {letter.cause: "no right"})
    with pytest.raises(RefusedDeadLetterError, match="no right"):
        run.plan(NOW)


def test_due_records_of_one_second_go_out_in_bounded_transactions():
    run = MachineRun(most_records=10)
    for offset in range(95):
        run.receive(received(offset, value=b"%d" % offset, headers={"deliver-to": "orders"}))
    sizes = []
    while plan := run.plan(NOW):
        sizes.append(len(plan.outputs))
        run.log += [(out.key or b"", out.value) for out in plan.outputs if out.topic == PENDING]
        run.log += [(name.encode(), None) for _, name in plan.ended]
        run.written += [out for out in plan.outputs if out.topic != PENDING]
        run.machine.committed(plan)
        run.apply()
    assert max(sizes) <= 20
    assert [output.value for output in run.written] == [b"%d" % offset for offset in range(95)]


def test_a_replacement_that_was_received_comes_before_a_due_record():
    run = MachineRun()
    headers = {"deliver-to": "orders", "deliver-after": "1h", "deliver-id": "x"}
    run.receive(received(0, value=b"old", headers=headers))
    run.run(NOW)
    run.receive(received(1, value=b"new", headers=headers))
    assert [output.value for output in run.run(NOW + 3_600_000)] == [b"new"]


def test_an_entry_that_cannot_be_read_becomes_a_dead_letter_with_its_bytes():
    run = MachineRun()
    run.receive(received(headers={"deliver-to": "orders"}))
    plan = run.next_plan(NOW)
    ((_, value),) = [(each.key, each.value) for each in plan.outputs]
    assert value is not None
    run.log.append((b"somebody", value[:-3]))
    run.log.append((b"noise", b"\x01"))
    run.apply()
    letters = [output for output in run.run(NOW) if output.topic == "deliver.dead-letters"]
    assert [(letter.key, letter.value) for letter in letters] == [(b"somebody", value[:-3])]
    assert "is malformed" in told(letters[0])["message"]


def test_an_entry_of_a_newer_format_stops_the_service():
    run = MachineRun()
    run.log.append((b"later", b"\x02" + bytes(30)))
    with pytest.raises(NewerFormatError, match="update it"):
        run.apply()


@pytest.mark.parametrize("name", ["a\0b.retry.billing", "x" * 600])
def test_a_retried_record_with_an_invalid_topic_name_becomes_a_dead_letter_of_the_input(name):
    place = {"topic": "a\0b", "partition": 1, "offset": 2}
    headers = {f"__dlq.errors.{field}": value for field, value in place.items()}
    record = received(topic="retry", headers={"retry-topic": name} | headers)
    letter = rejected(record, "invalid", replace(RULES, targets=None))
    assert letter.topic == "retry.dead-letters"
    assert told(letter)["topic"] == "retry"


def test_a_dead_letter_does_not_name_a_place_that_is_no_target():
    run = MachineRun()
    for offset, topic in enumerate(("__consumer_offsets", "secrets", "a\0b")):
        place = {"topic": topic, "partition": 1, "offset": 2}
        headers = {f"__dlq.errors.{name}": value for name, value in place.items()}
        run.receive(retried(offset, retry_attempts=0, **headers))
    assert {told(letter)["topic"] for letter in run.run(NOW)} == {"retry"}


def test_a_dead_letter_keeps_the_topic_and_the_partition_for_a_redrive():
    run = MachineRun()
    run.receive(received(headers={"deliver-to": "orders", "deliver-partition": 3}))
    (letter,) = run.run(NOW)
    headers = dict(letter.headers)
    assert (headers["deliver-to"], headers["deliver-partition"]) == (b"orders", b"3")


def test_a_dead_letter_that_the_topic_of_the_source_refuses_goes_to_that_of_the_input_unchanged():
    run = MachineRun()
    run.receive(retried(0, retry_attempts=0, trace="a1"))
    plan = run.next_plan(NOW)
    (letter,) = plan.outputs
    assert letter.topic == "orders.dead-letters"
    run.machine.aborted(plan, {letter.cause: "unknown topic"})
    plan = run.next_plan(NOW)
    (letter,) = plan.outputs
    assert (letter.topic, letter.value) == ("retry.dead-letters", b"v")
    assert dict(letter.headers)["trace"] == b"a1"
    assert told(letter)["message"] == "0 retries failed"
    run.machine.aborted(plan, {letter.cause: "too large"})
    plan = run.next_plan(NOW)
    (letter,) = plan.outputs
    assert (letter.topic, letter.value) == ("retry.dead-letters", None)
    run.machine.aborted(plan, {letter.cause: "no right"})
    with pytest.raises(RefusedDeadLetterError, match="no right"):
        run.plan(NOW)


def test_a_record_with_unreadable_headers_becomes_a_dead_letter():
    run = MachineRun()
    run.receive(received(key=b"k")._replace(problem="unreadable headers"))
    (letter,) = run.run(NOW)
    assert (letter.topic, letter.key, letter.value) == ("deliver.dead-letters", b"k", b"v")
    assert told(letter)["message"] == "unreadable headers"


def test_an_entry_for_a_topic_that_may_not_be_written_becomes_a_dead_letter(monkeypatch) -> None:
    monkeypatch.setattr(TOPICS, "denied", frozenset({"orders"}))
    run = MachineRun()
    run.receive(received(headers={"deliver-to": "orders"}))
    (letter,) = run.run(NOW)
    assert letter.topic == "deliver.dead-letters"
    assert told(letter)["message"] == "the service has no right to write to topic orders"


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({"retry-attempt": "x"}, id="rejected"),
        pytest.param({"retry-attempt": 3}, id="after the last attempt"),
        pytest.param({"expires-after": 0, "retry-backoff": "1s"}, id="undeliverable"),
    ],
)
def test_a_dead_letter_goes_to_the_topic_of_the_input_if_that_of_the_source_is_denied(
    headers, monkeypatch
) -> None:
    monkeypatch.setattr(TOPICS, "denied", frozenset({"orders.dead-letters"}))
    run = MachineRun()
    retried = {"retry-topic": "orders.retry.billing", **headers}
    run.receive(received(topic="retry", headers=retried))
    (letter,) = run.run(NOW + 10_000)
    assert (letter.topic, letter.value) == ("retry.dead-letters", b"v")


def test_a_right_that_is_lost_between_attempts_leaves_the_dead_letter_complete(monkeypatch):
    run = MachineRun()
    run.receive(retried(0, retry_attempts=0))
    plan = run.next_plan(NOW)
    (letter,) = plan.outputs
    assert letter.topic == "orders.dead-letters"
    monkeypatch.setattr(TOPICS, "denied", frozenset({"orders.dead-letters"}))
    run.machine.aborted(plan, {letter.cause: "no right"})
    plan = run.next_plan(NOW)
    (letter,) = plan.outputs
    assert (letter.topic, letter.value) == ("retry.dead-letters", b"v")
    run.machine.aborted(plan, {letter.cause: "too large"})
    plan = run.next_plan(NOW)
    assert [(each.topic, each.value) for each in plan.outputs] == [("retry.dead-letters", None)]


@pytest.mark.parametrize("replaced", [False, True])
def test_records_that_are_read_again_stay_pending(replaced):
    """The group's offsets have expired, for example."""
    run = MachineRun()
    headers = {"deliver-to": "orders", "deliver-after": "1h", "deliver-id": "x"}
    records = [
        received(offset, value=b"%d" % offset, headers=headers) for offset in range(1 + replaced)
    ]
    for _ in range(2):
        run.receive(*records)
        assert run.run(NOW) == []
    assert [output.value for output in run.run(NOW + 3_600_000)] == [b"%d" % replaced]


def test_a_refusal_of_a_dead_letter_whose_record_was_stored_meanwhile_is_planned_again():
    """The entry was read before the end of the transaction that stored it was known."""
    run = MachineRun()
    run.receive(retried(0, retry_attempts=0))
    plan = run.next_plan(NOW)
    (letter,) = plan.outputs
    run.machine._refusals.forget([letter.cause])
    run.machine.aborted(plan, {letter.cause: "too large"})
    assert [output.value for output in run.next_plan(NOW).outputs] == [b"v"]
