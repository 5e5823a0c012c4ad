"""The budget of requests."""

from __future__ import annotations

import pytest

from tests.support.records.clocks import HandClock
from wirebroker.console.model.request_budget import RequestBudget


def test_pause_bounds_the_share_of_time():
    clock = HandClock()
    budget = RequestBudget(clock, share=0.02)
    assert budget.pause_s == 0
    clock.passed_ms += 100
    budget.spend(0.1)
    assert budget.pause_s == pytest.approx(4.9)
    clock.passed_ms += 2000
    assert budget.pause_s == pytest.approx(2.9)


def test_pauses_add_up():
    budget = RequestBudget(HandClock(), share=0.1)
    budget.spend(0.1)
    budget.spend(0.1)
    assert budget.pause_s == pytest.approx(1.8)


def test_one_slow_response_pauses_for_a_minute_at_most():
    budget = RequestBudget(HandClock(), share=0.01)
    budget.spend(30)
    assert budget.pause_s == 60
