"""Producers that take turns."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.unit.wirebroker.delivery.fake_producer import SETTINGS
from wirebroker.base.clock import SystemClock
from wirebroker.delivery.pending.plan import TransactionPlan
from wirebroker.delivery.service.errors import FencedError
from wirebroker.delivery.service.inbox import Inbox
from wirebroker.delivery.service.transaction_pool import TransactionPool
from wirebroker.delivery.service.transactions import TransactionOutcome


class FakeTransactions:
    used: list[str]

    def __init__(self, _settings: Any, name: str, *_: Any) -> None:
        self.name = name

    def begin(self, _plan: Any, *, is_careful: bool) -> None:
        del is_careful
        self.used.append(self.name)

    def complete(self, _plan: Any, group: Any) -> TransactionOutcome:
        if group == "fenced":
            raise FencedError("another instance has this id")
        return TransactionOutcome(is_committed=True)

    def close(self) -> None:
        self.used.append(f"{self.name} closed")


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> TransactionPool:
    monkeypatch.setattr(FakeTransactions, "used", [], raising=False)
    module = "wirebroker.delivery.service.transaction_pool"
    monkeypatch.setattr(f"{module}.Transactions", FakeTransactions)
    return TransactionPool(SETTINGS, ["a", "b"], Inbox(), SystemClock(), threading.Event())


def carry_out(pool: TransactionPool, group: Any = None) -> TransactionOutcome:
    outcomes: list[TransactionOutcome] = []
    pool.begin(TransactionPlan(), group, outcomes.append, is_careful=False)
    pool._inbox.serve(10.0)
    (outcome,) = outcomes
    return outcome


def test_the_producer_that_was_idle_the_longest_has_the_next_transaction(pool):
    assert all(carry_out(pool).is_committed for _ in range(3))
    pool.close()
    assert FakeTransactions.used == ["a", "b", "a", "a closed", "b closed"]


def test_an_error_of_a_producer_is_raised_in_the_inbox(pool):
    with pytest.raises(FencedError, match="another instance"):
        carry_out(pool, "fenced")
    pool.close()
