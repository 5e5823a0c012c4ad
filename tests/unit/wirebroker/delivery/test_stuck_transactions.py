"""Transactions that do not end: librdkafka waits for the offsets without a bound (issue 5456)."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from tests.support.tools.waiting import eventually
from tests.unit.wirebroker.delivery.delivery_kit import NOW, SetClock, received
from tests.unit.wirebroker.delivery.fake_producer import SETTINGS, FakeProducer, plan_of
from tests.unit.wirebroker.delivery.test_instance import FakeIntake, KnownTopicCounts
from wirebroker.base.clock import SystemClock
from wirebroker.delivery.service import instance as instance_module
from wirebroker.delivery.service import transactions as transactions_module
from wirebroker.delivery.service.errors import FencedError, StoppingError
from wirebroker.delivery.service.figures import DeliveryFigures
from wirebroker.delivery.service.instance import ServiceInstance
from wirebroker.delivery.service.transactions import Transactions

if TYPE_CHECKING:
    from collections.abc import Iterator

WAIT_S = 20.0
# SETTINGS has a timeout of 10 s.
ENDS_AFTER_MS = 35_000
STOPS_AFTER_MS = 10_000


class StuckProducer(FakeProducer):
    """It waits for the offsets of a transaction until the test ends."""

    def __init__(self, released: threading.Event) -> None:
        super().__init__()
        self.is_waiting = threading.Event()
        self._released = released

    def send_offsets_to_transaction(self, *_: Any) -> None:
        self.is_waiting.set()
        assert self._released.wait(WAIT_S)


class StuckInstance:
    """An instance in a thread, whose transaction with input waits for its offsets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, released: threading.Event) -> None:
        self.producer = StuckProducer(released)
        monkeypatch.setattr(transactions_module, "Producer", lambda _config: self.producer)
        monkeypatch.setattr(instance_module, "Intake", FakeIntake)
        monkeypatch.setattr(instance_module, "_LONGEST_WAIT_S", 0.01)
        self.clock = SetClock()
        self.stopping = threading.Event()
        topics: Any = KnownTopicCounts()
        figures = DeliveryFigures(self.clock)
        self.instance = ServiceInstance(
            SETTINGS, "one", topics, figures, self.clock, stopping=self.stopping
        )
        self.instance._machine.receive(received(headers={"deliver-to": "orders"}))
        self.errors: list[str] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self.producer.is_waiting.wait(WAIT_S)

    def _run(self) -> None:
        try:
            self.instance.run()
        except FencedError as error:
            self.errors.append(str(error))

    def has_ended(self) -> bool:
        return not self._thread.is_alive()

    def pass_time(self, elapsed_ms: int) -> None:
        """Let the loop see a time."""
        self.clock.ms = NOW + elapsed_ms
        seen = threading.Event()
        self.instance._inbox.put(seen.set)
        assert seen.wait(WAIT_S)


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> Iterator[StuckInstance]:
    released = threading.Event()
    yield StuckInstance(monkeypatch, released)
    released.set()


@pytest.mark.parametrize(("stops", "limit_ms"), [(False, ENDS_AFTER_MS), (True, STOPS_AFTER_MS)])
def test_an_instance_ends_when_a_transaction_does_not(
    stuck: StuckInstance, caplog: pytest.LogCaptureFixture, *, stops: bool, limit_ms: int
) -> None:
    if stops:
        stuck.stopping.set()
    stuck.pass_time(0)
    stuck.pass_time(limit_ms)
    assert not stuck.has_ended()
    stuck.clock.ms = NOW + limit_ms + 1
    eventually(stuck.has_ended, timeout_s=WAIT_S)
    assert stuck.errors == ["a transaction did not end (librdkafka issue 5456)"]
    assert "its producer is left" in caplog.text


def test_partitions_are_not_released_before_the_transaction_is_given_up(
    stuck: StuckInstance,
) -> None:
    stuck.instance._inbox.put(stuck.instance._finish)
    stuck.clock.ms = NOW + ENDS_AFTER_MS + 1
    eventually(stuck.has_ended, timeout_s=WAIT_S)
    assert stuck.errors == ["a transaction did not end (librdkafka issue 5456)"]


class UnansweredProducer(FakeProducer):
    """No broker answers; the service is to stop during the third wait."""

    def __init__(self, stopping: threading.Event) -> None:
        super().__init__()
        self.limits_s: list[float] = []
        self._stopping = stopping

    def init_transactions(self, timeout: float) -> None:
        self.limits_s.append(timeout)
        if len(self.limits_s) == 3:
            self._stopping.set()
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "timed out", False, True))


@pytest.mark.parametrize(("is_set", "waits"), [(False, 3), (True, 0)])
def test_a_producer_that_starts_looks_at_the_request_to_stop(
    monkeypatch: pytest.MonkeyPatch, *, is_set: bool, waits: int
) -> None:
    stopping = threading.Event()
    if is_set:
        stopping.set()
    fake = UnansweredProducer(stopping)
    monkeypatch.setattr(transactions_module, "Producer", lambda _config: fake)
    with pytest.raises(StoppingError):
        Transactions(SETTINGS, "one", SystemClock(), set(), stopping)
    assert len(fake.limits_s) == waits
    assert all(limit_s <= 1.0 for limit_s in fake.limits_s)


class SlowProducer(FakeProducer):
    """Offsets and commits each take a part of the transaction's timeout."""

    def __init__(self, clock: SetClock) -> None:
        super().__init__()
        self.limits_s: list[float] = []
        self._clock = clock

    def send_offsets_to_transaction(self, _offsets: Any, _group: Any, limit_s: float) -> None:
        self.limits_s.append(limit_s)
        self._clock.ms += 7_000

    def commit_transaction(self, limit_s: float) -> None:
        self.limits_s.append(limit_s)


def test_offsets_and_the_commit_share_the_timeout_of_a_transaction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = SetClock()
    fake = SlowProducer(clock)
    monkeypatch.setattr(transactions_module, "Producer", lambda _config: fake)
    transactions = Transactions(SETTINGS, "one", clock, set(), threading.Event())
    plan = plan_of(b"value")
    transactions.begin(plan, is_careful=False)
    assert transactions.complete(plan, None).is_committed
    assert fake.limits_s == [10.0, 3.0]
