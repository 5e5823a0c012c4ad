"""The size of transactions, and replacements that are committed but not yet read."""

from __future__ import annotations

from tests.unit.wirebroker.delivery.delivery_kit import NOW, PENDING, MachineRun, received

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
