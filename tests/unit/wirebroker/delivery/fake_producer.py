"""A transactional producer in memory, which refuses records as a cluster does."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException

from tests.unit.wirebroker.delivery.delivery_kit import PENDING, RULES
from wirebroker.base.clock import SystemClock
from wirebroker.delivery.model.records import OutputRecord
from wirebroker.delivery.pending.plan import TransactionPlan
from wirebroker.delivery.service.settings import ServiceSettings
from wirebroker.delivery.service.transactions import Transactions

if TYPE_CHECKING:
    import pytest

SETTINGS = ServiceSettings(
    rules=RULES,
    kafka={"bootstrap.servers": "none:1"},
    directory=Path("unused"),
    partitions=1,
    replication_factor=1,
    transaction_records=100,
    transaction_timeout_ms=10_000,
    session_timeout_ms=10_000,
    metrics_port=0,
)


class FakeProducer:
    """It sends a batch of all enqueued records when flushed, or `batch_records` are enqueued."""

    def __init__(self, _config: dict[str, Any] | None = None) -> None:
        self.batch_records = 1_000
        self.refused: dict[bytes, int] = {}
        self.committed: list[bytes] = []
        self._queue: list[tuple[bytes, Any]] = []
        self._sent: list[bytes] = []
        self._reports: list[tuple[Any, KafkaError]] = []
        self._must_abort = False

    def init_transactions(self, _timeout: float) -> None:
        pass

    def begin_transaction(self) -> None:
        assert not self._must_abort

    def produce(
        self, _topic: str, value: bytes, _key: Any, *, on_delivery: Any = None, **_: Any
    ) -> None:
        if self._must_abort:
            raise KafkaException(KafkaError(KafkaError._STATE))
        code = self.refused.get(value)
        if code in {KafkaError._INVALID_ARG, KafkaError._UNKNOWN_TOPIC}:
            raise KafkaException(KafkaError(code))
        self._queue.append((value, on_delivery))
        if len(self._queue) >= self.batch_records:
            self._send()

    def _send(self) -> None:
        """Send a batch; one refused record refuses all of it."""
        codes = [self.refused[value] for value, _ in self._queue if value in self.refused]
        if codes:
            self._must_abort = True
            self._reports += [(report, KafkaError(codes[0])) for _, report in self._queue]
        else:
            self._sent += [value for value, _ in self._queue]
        self._queue.clear()

    def flush(self, _timeout: float = -1) -> int:
        if not self._must_abort:
            self._send()
        for report, error in self._reports:
            if report is not None:
                report(error, None)
        self._reports.clear()
        return len(self._queue)

    def send_offsets_to_transaction(self, *_: Any) -> None:
        self._check()

    def _check(self) -> None:
        if self._must_abort:
            raise KafkaException(KafkaError(KafkaError._STATE, "aborted", False, False, True))

    def commit_transaction(self, _timeout: float) -> None:
        self._send()
        self._check()
        self.committed += self._sent
        self._sent.clear()

    def abort_transaction(self, _timeout: float) -> None:
        self._queue.clear()
        self._sent.clear()
        self._must_abort = False


def started(monkeypatch: pytest.MonkeyPatch) -> tuple[Transactions, FakeProducer]:
    """Return transactions on a fake producer."""
    fake = FakeProducer()
    module = "wirebroker.delivery.service.transactions"
    monkeypatch.setattr(f"{module}.Producer", lambda _config: fake)
    return Transactions(SETTINGS, "one", SystemClock(), set(), threading.Event()), fake


def carry_out(
    transactions: Transactions, plan: TransactionPlan, *, is_careful: bool = True
) -> dict[str, str] | None:
    """Carry out a transaction; return None if it was committed, else the refusals."""
    transactions.begin(plan, is_careful=is_careful)
    outcome = transactions.complete(plan, None)
    return None if outcome.is_committed else dict(outcome.refusals)


def plan_of(*values: bytes, topic: str = "orders") -> TransactionPlan:
    """Return a transaction of records, whose causes are their values."""
    outputs = [OutputRecord(topic, None, None, value, (), value.decode()) for value in values]
    return TransactionPlan(outputs=outputs)


def pending_plan(*values: bytes) -> TransactionPlan:
    """Return a transaction of entries of the pending topic."""
    return plan_of(*values, topic=PENDING)
