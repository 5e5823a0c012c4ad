"""The size of transactions, and replacements that are committed but not yet read."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.unit.wirebroker.delivery.delivery_kit import (
    NOW,
    PENDING,
    RULES,
    TOPICS,
    MachineRun,
    received,
)
from wirebroker.delivery.model.entry import PendingEntry, encode_entry
from wirebroker.delivery.pending.machine import DeliveryMachine
from wirebroker.delivery.pending.partition import PendingPartition
from wirebroker.delivery.pending.store import PendingStore

MIB = 1 << 20


def test_a_transaction_is_bounded_in_bytes():
    run = MachineRun()
    for offset in range(10):
        run.receive(received(offset, value=bytes(5 * MIB), headers={"deliver-to": "orders"}))
    counts: list[tuple[int, int]] = []
    while plan := run.plan(NOW):
        stored = [output for output in plan.outputs if output.topic == PENDING]
        counts.append((len(stored), len(plan.outputs) - len(stored)))
        run.log += [(output.key or b"", output.value) for output in stored]
        run.log += [(name.encode(), None) for _, name in plan.ended]
        run.machine.committed(plan)
        run.apply()
    assert counts == [(4, 0), (4, 0), (2, 0), (0, 4), (0, 4), (0, 2)]


def test_a_record_over_the_bound_is_delivered_alone():
    run = MachineRun()
    for offset in range(2):
        run.receive(received(offset, value=bytes(17 * MIB), headers={"deliver-to": "orders"}))
    plan = run.next_plan(NOW)
    assert len(plan.outputs) == 1
    run.machine.aborted(plan, {})
    assert len(run.run(NOW)) == 2


def unread_after(run: MachineRun, value: bytes | None) -> None:
    """Commit a replacement or cancellation, which the partition has not read yet."""
    headers = {"deliver-id": "x"}
    if value is not None:
        headers |= {"deliver-to": "orders", "deliver-after": "1h"}
    run.receive(received(1, value=value, headers=headers))
    plan = run.next_plan(NOW + 1)
    run.log += [(output.key or b"", output.value) for output in plan.outputs]
    run.machine.committed(plan)


def scheduled() -> MachineRun:
    run = MachineRun()
    headers = {"deliver-to": "orders", "deliver-after": "1h", "deliver-id": "x"}
    run.receive(received(0, value=b"old", headers=headers))
    run.run(NOW)
    return run


def test_a_replaced_record_is_not_delivered_before_its_replacement_is_read():
    run = scheduled()
    unread_after(run, b"new")
    assert run.plan(NOW + 3_600_000) is None
    run.apply()
    assert [output.value for output in run.run(NOW + 3_600_000)] == [b"new"]


def test_a_cancelled_record_is_not_delivered_before_its_cancellation_is_read():
    run = scheduled()
    unread_after(run, None)
    assert run.plan(NOW + 3_600_000) is None
    run.apply()
    assert run.run(NOW + 3_600_000) == []


class Partitions:
    """A machine with three partitions, into which the test puts entries."""

    def __init__(self, most_records: int) -> None:
        self.machine = DeliveryMachine(RULES, TOPICS, pending_count=3, most_records=most_records)
        self.machine.partitions = {
            number: PendingPartition(number, PendingStore(None), 0) for number in range(3)
        }

    def put(
        self, number: int, count: int, due_ms: int, *, value: bytes = b"v", target: str = "orders"
    ) -> None:
        partition = self.machine.partitions[number]
        for _ in range(count):
            name = f"deliver/{number}/{partition.next_offset}/{NOW}"
            entry = PendingEntry(
                *(name, due_ms, target, None, None, None, 0, "deliver.dead-letters"),
                *(None, value, ()),
            )
            partition.apply(partition.next_offset, name.encode(), encode_entry(entry))

    def next_targets(self) -> dict[str, int]:
        """Commit a transaction; return how many records it delivered to each topic."""
        plan = self.machine.plan_delivery(NOW)
        assert plan is not None
        self.machine.committed(plan)
        return Counter(output.topic for output in plan.outputs)

    def next_counts(self) -> dict[int, int]:
        """Commit a transaction; return how many entries of each partition it delivered."""
        plan = self.machine.plan_delivery(NOW)
        assert plan is not None
        self.machine.committed(plan)
        numbers = [ended.partition for ended in plan.ended]
        return {number: numbers.count(number) for number in plan.pending_partitions}


def test_a_backlog_in_one_partition_does_not_delay_the_others():
    run = Partitions(most_records=12)
    run.put(0, 50, NOW - 1_000)
    run.put(1, 6, NOW - 500)
    run.put(2, 1, NOW)
    assert run.next_counts() == {2: 1, 1: 5, 0: 6}
    assert run.next_counts() == {1: 1, 0: 11}
    assert run.next_counts() == {0: 12}


def test_a_backlog_for_one_topic_does_not_delay_records_for_others():
    run = Partitions(most_records=12)
    for number in range(3):
        run.put(number, 50, NOW - 1_000)
    run.put(1, 2, NOW - 10, target="invoices")
    assert run.next_targets() == {"orders": 10, "invoices": 2}
    assert run.next_targets() == {"orders": 12}


def test_a_backlog_is_delivered_in_the_order_of_due_times():
    run = Partitions(most_records=10)
    for number in range(40):
        run.put(0, 1, NOW - 1 - number * 7 % 40, target="orders", value=b"%d" % (number * 7 % 40))
    delivered = []
    while plan := run.machine.plan_delivery(NOW):
        run.machine.committed(plan)
        delivered += [int(output.value or b"") for output in plan.outputs]
    assert delivered == list(range(39, -1, -1))


def test_a_backlog_of_large_records_does_not_delay_other_partitions():
    run = Partitions(most_records=12)
    run.put(0, 5, NOW - 1_000, value=bytes(5 * MIB))
    run.put(1, 5, NOW, value=bytes(5 * MIB))
    assert run.next_counts() == {1: 2, 0: 2}


@pytest.mark.parametrize("most_records", [1, 2])
def test_the_earliest_entries_are_first_if_a_transaction_has_few_records(most_records):
    run = Partitions(most_records)
    for number in range(3):
        run.put(number, 2, NOW - 3 + number)
    first = run.next_counts()
    assert sorted(first) == list(range(most_records))


def test_garbage_of_one_partition_does_not_delay_due_entries_of_others():
    run = Partitions(most_records=12)
    run.put(1, 20, NOW)
    for number in range(50):
        run.machine.partitions[0].store.add_garbage(f"cancelled-{number}")
        run.machine.partitions[2].store.add_garbage(f"cancelled-{number}")
    assert run.next_counts() == {0: 3, 1: 6, 2: 3}


def test_garbage_takes_what_due_entries_leave_of_a_transaction():
    run = Partitions(most_records=12)
    run.put(1, 1, NOW)
    for number in range(24):
        run.machine.partitions[0].store.add_garbage(f"cancelled-{number}")
    assert run.next_counts() == {0: 11, 1: 1}
    assert run.next_counts() == {0: 12}
    assert run.next_counts() == {0: 1}
    assert run.machine.plan_delivery(NOW) is None


def test_an_entry_is_delivered_only_after_all_garbage_of_its_partition():
    run = Partitions(most_records=4)
    run.put(0, 1, NOW)
    for number in range(5):
        run.machine.partitions[0].store.add_garbage(f"cancelled-{number}")
    assert run.next_targets() == {}
    assert run.next_targets() == {"orders": 1}
