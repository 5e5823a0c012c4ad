from __future__ import annotations

import pytest

from tests.support.records.clocks import HandClock
from wirebroker.console.changes.change import PreparedChange
from wirebroker.console.changes.making import pending_plans
from wirebroker.console.changes.making.pending_plans import KEPT_S, PendingPlans


async def apply() -> str:
    return "done"


PREPARED = PreparedChange("s", ("a",), "c", apply)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def plans(clock) -> PendingPlans:
    return PendingPlans(clock)


def add(plans: PendingPlans, size: int = 1) -> str:
    return plans.add("cookie", "dev", "create-topic", {"name": "x" * size}, PREPARED)


def found(plans: PendingPlans, plan_id: str, **others: str) -> bool:
    key = {"cookie": "cookie", "cluster": "dev", "kind": "create-topic"} | others
    return plans.get(plan_id, **key) is not None


def test_a_plan_belongs_to_its_browser_cluster_and_kind(plans):
    plan = add(plans)
    assert found(plans, plan)
    for other in ({"cookie": "x"}, {"cluster": "test"}, {"kind": "delete-topic"}):
        assert not found(plans, plan, **other)
    plans.drop(plan)
    plans.drop(plan)
    assert not found(plans, plan)


def test_plans_expire(plans, clock):
    plan = add(plans)
    clock.passed_ms += int(KEPT_S * 1000) - 1
    later = add(plans)
    assert found(plans, plan)
    clock.passed_ms += 1
    assert not found(plans, plan)
    assert found(plans, later)


def test_plans_are_bounded_by_number_and_size(plans, monkeypatch):
    monkeypatch.setattr(pending_plans, "_MOST", 3)
    monkeypatch.setattr(pending_plans, "_MOST_CHARACTERS", 100)
    ids = [add(plans) for _ in range(5)]
    assert [found(plans, plan) for plan in ids] == [False, False, True, True, True]
    large = add(plans, 99)
    assert [found(plans, plan) for plan in [*ids, large]] == [False] * 4 + [True, True]
    huge = add(plans, 5000)
    assert not found(plans, large)
    assert found(plans, huge)


def test_all_but_the_notes_is_compared():
    effect = pending_plans.effect_of(PREPARED)
    assert pending_plans.effect_of(PREPARED._replace(notes=("end offset 7",))) == effect
    for other in (
        {"summary": "x"},
        {"lines": ("b",)},
        {"command": "x"},
        {"warnings": ("x",)},
    ):
        assert pending_plans.effect_of(PREPARED._replace(**other)) != effect
