"""A machine with in-memory stores and a log of its transactions, for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.delivery.model.records import OutputRecord, ReceivedRecord
from wirebroker.delivery.model.rules import DeliveryRules
from wirebroker.delivery.pending.machine import DeliveryMachine
from wirebroker.delivery.pending.partition import PendingPartition
from wirebroker.delivery.pending.store import PendingStore

if TYPE_CHECKING:
    from wirebroker.delivery.pending.plan import TransactionPlan

PENDING = "__wirebroker_delivery"
NOW = 1_800_000_000_000
RULES = DeliveryRules(
    group="delivery",
    deliver_topics=("deliver",),
    retry_topics=("retry",),
    pending_topic=PENDING,
    targets=("orders*", "invoices"),
    max_delay_ms=366 * 86_400_000,
    max_attempts=100,
)


class Topics(dict[str, int]):
    denied: frozenset[str] = frozenset()

    def partition_count(self, topic: str, *, at_least: int = 1) -> int:
        del at_least
        return self.get(topic, 0)

    def may_write(self, topic: str) -> bool:
        return topic not in self.denied


class SetClock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.ms = NOW

    def now_ms(self) -> int:
        return self.ms

    def monotonic(self) -> float:
        return (self.ms - NOW) / 1000


TOPICS = Topics({"orders": 3, "invoices": 1, "orders.retry.billing": 1})


def received(offset: int = 0, topic: str = "deliver", **fields) -> ReceivedRecord:
    headers = tuple(
        (name, value if value is None or isinstance(value, bytes) else str(value).encode())
        for name, value in fields.pop("headers", {}).items()
    )
    defaults = {"partition": 0, "timestamp_ms": NOW, "key": None, "value": b"v"}
    return ReceivedRecord(topic=topic, offset=offset, headers=headers, **defaults | fields)


class MachineRun:
    """One instance with one pending partition, whose transactions all commit."""

    def __init__(self, most_records: int = 100) -> None:
        self.machine = DeliveryMachine(RULES, TOPICS, pending_count=1, most_records=most_records)
        self.pending = PendingPartition(0, PendingStore(None), 0)
        self.machine.partitions[0] = self.pending
        self.log: list[tuple[bytes, bytes | None]] = []
        self.written: list[OutputRecord] = []

    def receive(self, *records: ReceivedRecord) -> None:
        for record in records:
            self.machine.receive(record)

    def run(self, now_ms: int) -> list[OutputRecord]:
        """Run transactions until none is left; return the records outside the pending topic."""
        before = len(self.written)
        while plan := self.plan(now_ms):
            for output in plan.outputs:
                if output.topic == PENDING:
                    assert output.key is not None
                    self.log.append((output.key, output.value))
                else:
                    self.written.append(output)
            self.log += [(name.encode(), None) for _, name in plan.ended]
            self.machine.committed(plan)
            self.apply()
        return self.written[before:]

    def plan(self, now_ms: int) -> TransactionPlan | None:
        """Return the next transaction, or None."""
        return self.machine.plan_intake(now_ms) or self.machine.plan_delivery(now_ms)

    def next_plan(self, now_ms: int) -> TransactionPlan:
        """Return the next transaction, which exists."""
        plan = self.plan(now_ms)
        assert plan is not None
        return plan

    def apply(self) -> None:
        for offset, (key, value) in enumerate(self.log):
            self.pending.apply(offset, key, value)
