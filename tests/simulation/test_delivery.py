"""The delivery service on a simulated cluster: kills, fencing, late markers, compaction.

pytest tests/simulation/test_delivery.py --seed 7 --budget-scale 0     runs only schedule 7
"""

from __future__ import annotations

from collections import Counter

import pytest

from tests.simulation.delivery.delivery_world import DeliveryWorld
from tests.simulation.delivery.simulated_instance import SimulatedInstance
from tests.support.harness.budget import Budget
from wirebroker.delivery.model.entry import read_head
from wirebroker.delivery.pending.partition import PendingPartition

SECONDS = 5
MOST_SCHEDULES = 400


def test_each_record_is_delivered_once_and_not_early(request: pytest.FixtureRequest) -> None:
    budget = Budget(request.config, seconds=SECONDS)
    totals: Counter[str] = Counter()
    for number in budget.rounds():
        world = DeliveryWorld(budget.seed + number)
        world.run()
        totals += world.totals
    for name in ("delivered", "dead letters", "overridden", "killed", "fenced", "kicked"):
        assert totals[name] or request.config.option.budget_scale == 0, name


def test_the_same_seed_gives_the_same_totals() -> None:
    first, second, other = (DeliveryWorld(seed) for seed in (3, 3, 4))
    for world in (first, second, other):
        world.run()
    assert first.totals == second.totals
    assert first.cluster.partitions["orders", 0].end == second.cluster.partitions["orders", 0].end
    assert first.sent != other.sent


# -- planted faults


class Unfenced(SimulatedInstance):
    """The cluster accepts positions of former owners."""

    def carry_out(self, plan, producer, epoch):
        self.cluster.checks_generation = False
        yield from super().carry_out(plan, producer, epoch)


class UnawaitedMarkers(SimulatedInstance):
    """Takes a partition as loaded at its last stable offset, before all markers are written."""

    def end_of(self, place):
        return self.cluster.partitions[place].last_stable_offset


class Unfinished(SimulatedInstance):
    """Gives up its partitions while transactions are open."""

    def finish(self, open_lanes):
        yield


class SeveralIntakes(SimulatedInstance):
    """Stores input with two producers in turn: markers may set back the input's offsets."""

    def lanes(self):
        return [("delivery", plan) for _, plan in super().lanes()]


class SeveralDeliveries(SimulatedInstance):
    """Delivers from one partition in two transactions at a time."""

    def lanes(self):
        def deliver(now_ms):
            self.machine._delivering.clear()
            return self.machine.plan_delivery(now_ms)

        return [*super().lanes(), ("delivery", deliver)]


class Early(SimulatedInstance):
    def planning_time(self):
        return self.cluster.now_ms + 50


class EndsById(SimulatedInstance):
    """Ends entries by id: the end of one also ends the one that replaced it."""

    def end_name(self, transaction, number, name):
        super().end_name(transaction, number, name)
        partition = self.machine.partitions[number]
        for entry in partition.store.due(1 << 60, 100):
            if read_head(entry.name, entry.value).delivery_id == "x":
                super().end_name(transaction, number, entry.name)


def _first_failure(instance: type[SimulatedInstance], first_seed: int = 0) -> str:
    """Return the message of the first failing schedule; `first_seed` is near it."""
    for seed in range(first_seed, first_seed + MOST_SCHEDULES):
        world = DeliveryWorld(seed, instance)
        try:
            world.run()
        except AssertionError as error:
            return str(error)
    return ""


@pytest.mark.parametrize(
    ("instance", "failure", "first_seed"),
    [
        (Unfenced, "more than once", 10),
        (UnawaitedMarkers, "more than once", 3),
        (Unfinished, "offsets of released partitions", 0),
        (SeveralIntakes, "more than once", 120),
        (SeveralDeliveries, "more than once", 0),
        (Early, "is early", 3),
        (EndsById, "lost", 0),
    ],
)
def test_the_simulation_finds_a_fault_of_an_instance(instance, failure, first_seed) -> None:
    assert failure in _first_failure(instance, first_seed)


def test_the_simulation_finds_a_cancellation_that_loses_another_record(monkeypatch) -> None:
    cancel = PendingPartition._cancel

    def cancel_the_next_as_well(self, name):
        cancel(self, name)
        if name is not None:
            for row in self.store.due(1 << 60, 1):
                self.store.remove(row.name)

    monkeypatch.setattr(PendingPartition, "_cancel", cancel_the_next_as_well)
    assert _first_failure(SimulatedInstance)


def test_the_simulation_finds_a_replaced_record_that_is_delivered(monkeypatch) -> None:
    def keep(_self, _name):
        return None

    monkeypatch.setattr(PendingPartition, "_cancel", keep)
    assert "was overridden" in _first_failure(SimulatedInstance)


def test_the_simulation_finds_garbage_that_is_written_too_late(monkeypatch) -> None:
    """A replaced entry that outlives its replacement in the topic is pending again."""
    monkeypatch.setattr("wirebroker.delivery.pending.store.PendingStore.garbage", _no_garbage)
    assert _first_failure(SimulatedInstance)


def _no_garbage(_self, _most, _after=0):
    return []
