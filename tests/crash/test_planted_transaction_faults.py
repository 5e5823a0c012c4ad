"""Planted faults of transactions: responses, records or effects that come too early.

Only transactional clients run and everything is synced before a response, so that some hundred
points suffice.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.crash.broker_points import BrokerRun
from tests.crash.planted import first_failure
from wirebroker.coordination.transactions.transaction_markers import MarkerWriter
from wirebroker.coordinator.groups.shard.shard import GroupShard
from wirebroker.coordinator.outcome import Outcome
from wirebroker.coordinator.transactions.shard import TransactionShard
from wirebroker.engine.committed_responses import CommittedResponses

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.coordinator.outcome import Answer, Moment

pytestmark = pytest.mark.nightly


def failure() -> str:
    error = first_failure(partial(BrokerRun, only_transactions=True), every=0.5)
    assert error is not None, "the mistake is not seen"
    return str(error)


def carried_out_early(
    monkeypatch: pytest.MonkeyPatch,
    act: Callable[[CommittedResponses, list[Answer], list[Any]], None],
) -> None:
    """Let `act` use a decision before it is committed."""
    original = CommittedResponses.add

    def add(self: CommittedResponses, answers: list[Answer], effects: list[Any]) -> None:
        if effects:
            act(self, answers, effects)
        original(self, answers, effects)

    monkeypatch.setattr(CommittedResponses, "add", add)


def test_detects_end_txn_response_before_the_decision_is_durable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def act(_: CommittedResponses, answers: list[Answer], __: list[Any]) -> None:
        while answers:
            token, response = answers.pop()
            token.resolve(response)

    carried_out_early(monkeypatch, act)
    text = failure()
    assert "lost" in text or "is committed, not" in text


def test_detects_markers_written_before_the_decision_is_durable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def act(waiting: CommittedResponses, _: list[Answer], effects: list[Any]) -> None:
        while effects:
            waiting._on_effect(effects.pop())

    carried_out_early(monkeypatch, act)
    text = failure()
    assert "lost" in text or "is committed, not" in text


def test_detects_markers_that_take_effect_before_they_are_durable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    original = MarkerWriter._write_free

    def write(self: MarkerWriter, marker: Any, waiting: dict[Any, Any]) -> None:
        original(self, marker, waiting)
        for key in [key for key, placed in waiting.items() if placed is not None]:
            del waiting[key]

    monkeypatch.setattr(MarkerWriter, "_write_free", write)
    text = failure()
    # The records or the offsets are never decided.
    assert "last_stable_offset" in text or "committed_offset" in text


def test_detects_offsets_that_take_effect_before_the_marker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    original = GroupShard.replay_offset

    def replay_offset(
        self: GroupShard, group_id: str, suffix: bytes, value: bytes | None, producer_id: int = -1
    ) -> None:
        del producer_id
        original(self, group_id, suffix, value)

    monkeypatch.setattr(GroupShard, "replay_offset", replay_offset)
    assert "is committed, not" in failure()


def test_detects_decisions_that_a_start_does_not_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    def on_loaded(_: TransactionShard, now: Moment) -> Outcome:
        del now
        return Outcome()

    monkeypatch.setattr(TransactionShard, "on_loaded", on_loaded)
    text = failure()
    assert "is not completed" in text or "is not served" in text
