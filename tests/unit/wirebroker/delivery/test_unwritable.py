"""Targets that cannot be written: they wait, and other targets go on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaError

from tests.unit.wirebroker.delivery.delivery_kit import NOW, PENDING, MachineRun, received
from tests.unit.wirebroker.delivery.fake_producer import plan_of, started
from wirebroker.delivery.pending.unwritable import UnwritableTopics
from wirebroker.delivery.service.transactions import TransactionOutcome

if TYPE_CHECKING:
    from wirebroker.delivery.pending.plan import TransactionPlan

FIRST_PAUSE_MS = 5_000


def pending(*targets: str, most_records: int = 100, **headers: Any) -> MachineRun:
    """Return a run with an entry for each target."""
    run = MachineRun(most_records)
    for offset, target in enumerate(targets):
        headers_of_entry = {"deliver-to": target, "deliver-after": offset, **headers}
        run.receive(received(offset, headers=headers_of_entry))
    while plan := run.machine.plan_intake(NOW):
        for output in plan.outputs:
            assert output.key is not None
            run.log.append((output.key, output.value))
        run.machine.committed(plan)
    run.apply()
    return run


def targets_of(plan: TransactionPlan | None) -> list[str]:
    return [] if plan is None else [output.topic for output in plan.outputs]


def refuse(run: MachineRun, topic: str, now_ms: int) -> None:
    """Plan a delivery, which is aborted because a topic cannot be written."""
    plan = run.machine.plan_delivery(now_ms)
    assert topic in targets_of(plan)
    assert plan is not None
    run.machine.aborted(plan, {}, {topic}, now_ms)


def test_other_targets_go_on_and_the_entry_is_delivered_later() -> None:
    run = pending("orders", "invoices")
    now = NOW + 10
    refuse(run, "orders", now)
    assert [output.topic for output in run.run(now)] == ["invoices"]
    assert run.machine.next_due_ms() == now + FIRST_PAUSE_MS
    assert run.machine.plan_delivery(now + FIRST_PAUSE_MS - 1) is None
    (delivered,) = run.run(now + FIRST_PAUSE_MS)
    assert delivered.topic == "orders"


@pytest.mark.parametrize(
    ("queues", "expected"),
    [
        pytest.param(64, [["invoices"], [], [], []], id="in another queue"),
        pytest.param(1, [[], [], [], ["invoices"]], id="in the same queue"),
    ],
)
def test_more_entries_than_a_transaction_holds_do_not_hold_up_other_targets(
    monkeypatch, queues, expected
) -> None:
    monkeypatch.setattr("wirebroker.delivery.pending.store._QUEUES", queues)
    run = pending(*["orders"] * 7, "invoices", most_records=2)
    now = NOW + 10
    refuse(run, "orders", now)
    plans = [run.machine.plan_delivery(now) for _ in range(4)]
    assert [targets_of(plan) for plan in plans] == expected


def test_a_dead_letter_waits_for_its_topic() -> None:
    run = pending("orders.missing", "invoices")
    now = NOW + 10
    refuse(run, "deliver.dead-letters", now)
    assert [output.topic for output in run.run(now)] == ["invoices"]
    (letter,) = run.run(now + FIRST_PAUSE_MS)
    assert letter.topic == "deliver.dead-letters"


def test_lateness_counts_from_when_an_entry_was_due_first() -> None:
    run = pending("orders")
    refuse(run, "orders", NOW + 10)
    assert run.machine.plan_delivery(NOW + 10) is None
    plan = run.machine.plan_delivery(NOW + 10 + FIRST_PAUSE_MS)
    assert plan is not None
    assert plan.due_ms == [NOW]


def test_pauses_double_up_to_a_bound_until_the_topic_is_written() -> None:
    topics = UnwritableTopics()
    lengths = []
    for _ in range(8):
        topics.note({"orders"}, NOW)
        until_ms = topics.until_ms("orders", NOW)
        assert until_ms is not None
        lengths.append((until_ms - NOW) // 1000)
    assert lengths == [5, 10, 20, 40, 80, 160, 300, 300]
    topics.written({"orders"})
    assert topics.until_ms("orders", NOW) is None
    assert not topics


@pytest.mark.parametrize(
    ("topic", "code", "unwritable"),
    [
        ("orders", KafkaError._MSG_TIMED_OUT, {"orders"}),
        ("orders", KafkaError.NOT_ENOUGH_REPLICAS, {"orders"}),
        (PENDING, KafkaError._MSG_TIMED_OUT, {PENDING}),
        ("orders", KafkaError._PURGE_QUEUE, set()),
        ("orders", KafkaError.TOPIC_AUTHORIZATION_FAILED, set()),
    ],
)
def test_the_outcome_names_the_topics_that_could_not_be_written(
    topic, code, unwritable, monkeypatch, caplog
) -> None:
    transactions, fake = started(monkeypatch)
    fake.refused[b"value"] = code
    plan = plan_of(b"value", topic=topic)
    transactions.begin(plan, is_careful=True)
    outcome = transactions.complete(plan, None)
    assert isinstance(outcome, TransactionOutcome)
    assert outcome.unwritable == unwritable
    logged = [record.getMessage() for record in caplog.records]
    assert [line for line in logged if "cannot be written" in line] == [
        f"topic {name} cannot be written: {KafkaError(code).str()}" for name in unwritable
    ]
