"""When an instance begins transactions, and what follows an abort."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException

from tests.unit.wirebroker.delivery.delivery_kit import NOW, TOPICS, SetClock, received
from tests.unit.wirebroker.delivery.fake_producer import SETTINGS
from wirebroker.delivery.pending.partition import PendingPartition
from wirebroker.delivery.pending.store import PendingStore
from wirebroker.delivery.service import instance as module
from wirebroker.delivery.service.figures import DeliveryFigures
from wirebroker.delivery.service.instance import ServiceInstance
from wirebroker.delivery.service.transactions import TransactionOutcome

if TYPE_CHECKING:
    from wirebroker.delivery.pending.plan import TransactionPlan

COMMITTED = TransactionOutcome(is_committed=True)
ABORTED = TransactionOutcome(is_committed=False)


class FakePool:
    """Open transactions, which the test ends."""

    def __init__(self, *_: Any) -> None:
        self.open: list[tuple[TransactionPlan, Any]] = []
        self.careful: list[bool] = []
        self.is_closed = False

    def begin(self, plan: TransactionPlan, _group: Any, done: Any, *, is_careful: bool) -> None:
        self.open.append((plan, done))
        self.careful.append(is_careful)

    def end(self, outcome: TransactionOutcome = COMMITTED) -> TransactionPlan:
        plan, done = self.open.pop(0)
        done(outcome)
        return plan

    def close(self) -> None:
        self.is_closed = True


class FakeIntake:
    group = None

    def __init__(self, *_: Any, **__: Any) -> None:
        self.allowed = 0
        self.is_closed = False

    def allow(self) -> None:
        self.allowed += 1

    def save(self) -> None:
        pass

    def close(self) -> None:
        self.is_closed = True


class KnownTopicCounts:
    def __init__(self) -> None:
        # Topics that seem writable until their rights are confirmed; those that are known then.
        self.new: set[str] = set()
        self.denied: set[str] = set()

    def begin_transaction(self) -> None:
        pass

    def partition_count(self, topic: str, *, at_least: int = 1) -> int:
        return TOPICS.partition_count(topic, at_least=at_least)

    def may_write(self, topic: str) -> bool:
        return topic not in self.denied and TOPICS.may_write(topic)

    def confirm_rights(self) -> bool:
        """Deny the topic that is new, at the first call."""
        is_confirmed = self.new <= self.denied
        self.denied |= self.new
        return is_confirmed


class Running:
    """An instance whose loop the test turns."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "TransactionPool", FakePool)
        monkeypatch.setattr(module, "Intake", FakeIntake)
        self.clock = SetClock()
        topics: Any = KnownTopicCounts()
        self.topics: KnownTopicCounts = topics
        figures = DeliveryFigures(self.clock)
        self.stopping = threading.Event()
        self.instance = ServiceInstance(
            SETTINGS, "one", topics, figures, self.clock, stopping=self.stopping
        )
        self.machine = self.instance._machine
        self.partition = PendingPartition(0, PendingStore(None), 0)
        self.machine.partitions[0] = self.partition
        self.storing = cast("FakePool", self.instance._storing.pool)
        self.delivering = cast("FakePool", self.instance._delivering.pool)
        self.offset = 0

    def store(self) -> None:
        """Receive a record that is due at once, and store it."""
        self.machine.receive(received(self.offset, headers={"deliver-to": "orders"}))
        self.clock.ms += 50
        self.instance._begin()
        for output in self.storing.end().outputs:
            self.partition.apply(self.offset, output.key, output.value)
            self.offset += 1

    def turn(self, elapsed_ms: int = 0) -> None:
        self.clock.ms += elapsed_ms
        self.instance._begin()


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> Running:
    return Running(monkeypatch)


def test_a_record_for_a_new_topic_that_is_denied_becomes_a_dead_letter(running: Running) -> None:
    running.store()
    running.topics.new = {"orders"}
    running.turn()
    assert not running.delivering.open
    running.turn()
    assert [output.topic for output in running.delivering.end().outputs] == ["deliver.dead-letters"]


def test_storing_and_delivering_are_open_at_the_same_time(running: Running) -> None:
    running.store()
    running.turn()
    running.machine.receive(received(9, headers={"deliver-to": "orders"}))
    running.turn(50)
    assert (len(running.storing.open), len(running.delivering.open)) == (1, 1)


def test_input_is_allowed_when_it_is_stored(running: Running) -> None:
    running.store()
    assert cast("FakeIntake", running.instance._intake).allowed == 1


def test_deliveries_begin_some_time_apart(running: Running) -> None:
    running.store()
    running.turn()
    assert len(running.delivering.end().due_ms) == 1
    running.partition.apply(*entry_of(running))
    running.turn(14)
    assert not running.delivering.open
    assert running.instance._wait_s() == pytest.approx(0.005)
    running.turn(2)
    assert len(running.delivering.open) == 1


def entry_of(running: Running) -> tuple[int, bytes | None, bytes | None]:
    """Return the offset, key and value of another entry that is due."""
    running.machine.receive(received(7, headers={"deliver-to": "orders"}))
    plan = running.machine.plan_intake(NOW)
    assert plan is not None
    running.machine.committed(plan)
    return running.offset + 5, plan.outputs[0].key, plan.outputs[0].value


def test_a_transaction_after_an_abort_is_careful_and_the_next_one_not(running: Running) -> None:
    running.store()
    running.turn()
    running.delivering.end(ABORTED)
    running.turn(16)
    running.delivering.end(TransactionOutcome(is_committed=False, refusals={"other": "refused"}))
    running.turn(16)
    running.delivering.end(COMMITTED)
    running.partition.apply(*entry_of(running))
    running.turn(16)
    assert running.delivering.careful == [False, True, True, False]


def test_a_careful_transaction_that_is_aborted_without_a_reason_is_followed_by_a_pause(
    running: Running,
) -> None:
    running.store()
    running.turn()
    running.delivering.end(ABORTED)
    running.turn(16)
    running.delivering.end(ABORTED)
    running.turn(199)
    assert not running.delivering.open
    running.turn(2)
    assert len(running.delivering.open) == 1


def test_an_instance_that_stops_completes_its_transactions(running: Running) -> None:
    running.store()
    running.turn()
    running.stopping.set()
    running.instance._inbox.put(lambda: None)

    def end() -> None:
        running.delivering.end()

    running.instance._inbox.put(end)
    running.instance.run()
    assert not running.delivering.open
    assert running.storing.is_closed
    assert cast("FakeIntake", running.instance._intake).is_closed


def test_everything_is_closed_if_a_producer_fails_while_it_is_closed(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise KafkaException(KafkaError(KafkaError.INVALID_TXN_STATE))

    monkeypatch.setattr(running.delivering, "close", fail)
    running.stopping.set()
    with pytest.raises(KafkaException, match="INVALID_TXN_STATE"):
        running.instance.run()
    assert running.storing.is_closed
    assert cast("FakeIntake", running.instance._intake).is_closed
