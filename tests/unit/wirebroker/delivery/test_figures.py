"""The metrics: which records count as overdue, and the time from which lateness is measured."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.unit.wirebroker.delivery.delivery_kit import NOW, MachineRun, received
from wirebroker.delivery.model.entry import EntryCommand, EntryKind, encode_entry
from wirebroker.delivery.pending.partition import PendingPartition
from wirebroker.delivery.pending.store import PendingStore
from wirebroker.delivery.service.figures import DeliveryFigures

if TYPE_CHECKING:
    from pathlib import Path

    from wirebroker.delivery.pending.plan import TransactionPlan

FIRST_PAUSE_MS = 5_000
HOUR_MS = 3_600_000


class SetClock:
    def __init__(self, ms: int) -> None:
        self.ms = ms

    def now_ms(self) -> int:
        return self.ms

    def monotonic(self) -> float:
        return self.ms / 1000


def stored(folder: Path, *delays_ms: int) -> MachineRun:
    """Return a run with an entry for each delay, which is due that long after NOW."""
    run = MachineRun()
    run.pending = PendingPartition(0, PendingStore(folder / "pending-0.sqlite"), 0)
    run.machine.partitions[0] = run.pending
    for offset, delay_ms in enumerate(delays_ms):
        headers = {"deliver-to": "orders", "deliver-after": delay_ms, "deliver-id": f"id-{offset}"}
        run.receive(received(offset, headers=headers))
    plan = run.machine.plan_intake(NOW)
    assert plan is not None
    for output in plan.outputs:
        assert output.key is not None
        run.log.append((output.key, output.value))
    run.machine.committed(plan)
    run.apply()
    return run


def refuse(run: MachineRun, now_ms: int) -> None:
    """Plan deliveries to a topic that cannot be written: its entries are postponed."""
    plan = run.machine.plan_delivery(now_ms)
    assert plan is not None
    run.machine.aborted(plan, {}, {"orders"}, now_ms)
    assert run.machine.plan_delivery(now_ms) is None


def pending_within(run: MachineRun, now_ms: int) -> dict[str, int]:
    """Return the metric of pending records, by its label."""
    figures = DeliveryFigures(SetClock(now_ms))
    run.pending.save(now_ms, "topic")
    figures.observe([run.pending])
    return within(figures)


def within(figures: DeliveryFigures) -> dict[str, int]:
    rows = re.findall(
        r'^wirebroker_delivery_pending\{within_seconds="(.+)"\} (\d+)$',
        figures.page(),
        re.MULTILINE,
    )
    return {bound: int(count) for bound, count in rows}


def hurry(run: MachineRun, delivery_id: str) -> None:
    command = EntryCommand("command/1", EntryKind.HURRY, delivery_id, None)
    run.log.append((b"command/1", encode_entry(command)))
    run.apply()


def delivered(run: MachineRun, now_ms: int) -> TransactionPlan:
    plan = run.machine.plan_delivery(now_ms)
    assert plan is not None
    assert plan.delivered
    return plan


def test_pending_records_are_counted_by_their_due_times(tmp_path: Path) -> None:
    run = stored(tmp_path, 0, 30_000, HOUR_MS, 2 * HOUR_MS, 48 * HOUR_MS)
    assert pending_within(run, NOW) == {"0": 1, "60": 2, "3600": 3, "86400": 4, "+Inf": 5}


def test_records_of_a_topic_that_cannot_be_written_stay_overdue(tmp_path: Path) -> None:
    run = stored(tmp_path, 0, 1, HOUR_MS)
    refuse(run, NOW + 10)
    assert pending_within(run, NOW + 10) == {"0": 2, "60": 2, "3600": 3, "86400": 3, "+Inf": 3}


@pytest.mark.parametrize("pauses", [1, 3])
def test_lateness_counts_from_the_due_time_however_long_a_record_was_postponed(
    tmp_path: Path, pauses: int
) -> None:
    run = stored(tmp_path, 7)
    now = NOW + 10
    for number in range(pauses):
        refuse(run, now)
        now += FIRST_PAUSE_MS << number
    assert delivered(run, now).due_ms == [NOW + 7]


def test_a_record_that_a_command_made_due_has_no_lateness_after_a_pause(tmp_path: Path) -> None:
    run = stored(tmp_path, HOUR_MS)
    hurry(run, "id-0")
    refuse(run, NOW)
    assert pending_within(run, NOW)["0"] == 1
    plan = delivered(run, NOW + FIRST_PAUSE_MS)
    assert (plan.delivered, plan.due_ms) == (1, [])


def test_a_command_makes_a_postponed_record_due_at_once(tmp_path: Path) -> None:
    run = stored(tmp_path, 0)
    refuse(run, NOW)
    hurry(run, "id-0")
    run.machine._unwritable.written({"orders"})
    assert delivered(run, NOW + 1).due_ms == []


def test_pending_records_are_counted_at_most_once_a_minute(tmp_path: Path) -> None:
    run = stored(tmp_path, 0)
    clock = SetClock(NOW)
    figures = DeliveryFigures(clock)
    figures.observe([run.pending])
    assert within(figures)["0"] == 0  # the index was not saved
    run.pending.save(NOW, "topic")
    clock.ms += 59_999
    assert within(figures)["0"] == 0
    clock.ms += 1
    assert within(figures)["0"] == 1


def test_partitions_that_were_given_up_are_not_counted(tmp_path: Path) -> None:
    run = stored(tmp_path, 0)
    run.pending.save(NOW, "topic")
    figures = DeliveryFigures(SetClock(NOW))
    figures.observe([run.pending])
    assert within(figures)["+Inf"] == 1
    figures.observe([])
    assert within(figures) == dict.fromkeys(("0", "60", "3600", "86400", "+Inf"), 0)


def test_an_index_that_is_being_replaced_is_not_counted(tmp_path: Path) -> None:
    run = stored(tmp_path, 0)
    figures = DeliveryFigures(SetClock(NOW))
    figures.observe([run.pending])
    for file in tmp_path.iterdir():
        file.unlink()
    assert within(figures)["+Inf"] == 0
    assert not any(tmp_path.iterdir())


def lateness_of(run: MachineRun, now_ms: int) -> str:
    """Deliver due records, and return the sum of the lateness in seconds."""
    figures = DeliveryFigures(SetClock(now_ms))
    figures.count(delivered(run, now_ms))
    (total,) = re.findall(
        r"^wirebroker_delivery_lateness_seconds_sum (.+)$", figures.page(), re.MULTILINE
    )
    return total


@pytest.mark.parametrize(
    ("due_ms", "timestamp_ms", "late_s"),
    [
        (1_577_836_800_000, NOW, "0.25"),  # in 2020
        (NOW + 100, NOW, "0.15"),
        (1_577_836_800_000, NOW + HOUR_MS, "0.0"),
    ],
)
def test_lateness_does_not_count_before_the_record_was_produced(
    due_ms: int, timestamp_ms: int, late_s: str
) -> None:
    run = MachineRun()
    headers = {"deliver-to": "orders", "deliver-at": due_ms}
    run.receive(received(headers=headers, timestamp_ms=timestamp_ms))
    plan = run.machine.plan_intake(NOW)
    assert plan is not None
    (output,) = plan.outputs
    assert output.key is not None
    run.log.append((output.key, output.value))
    run.machine.committed(plan)
    run.apply()
    assert lateness_of(run, NOW + 250) == late_s
