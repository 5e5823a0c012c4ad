"""Transactions in deterministic simulation (R10 to R12 of the test plan).

pytest tests/simulation --seed 7                     begins with schedule 7
pytest tests/simulation --seed 7 --budget-scale 0    runs only schedule 7
pytest tests/simulation/test_transactions.py -k every_schedule --seed 7 --budget-scale 200
                                                     a long run: the scale multiplies the duration

Every run prints its seed and counts: schedules by transaction.version, records, late requests, and
clients fenced by the coordinator and by the group.
"""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest

from tests.simulation.clients.transactional_producer import GROUP_FENCES
from tests.simulation.worlds.group_transaction_world import GroupTransactionWorld
from tests.simulation.worlds.schedules import (
    LEAVES_COROUTINES,
    PLENTY,
    first_failure,
    run_schedules,
)
from tests.simulation.worlds.traces import traces_of_processes
from tests.simulation.worlds.transaction_world import TransactionWorld
from wirebroker.api.data import partition_reads
from wirebroker.coordinator.groups.classic.classic_group import ClassicGroup
from wirebroker.coordinator.groups.shard.group_offsets import PendingOffsets
from wirebroker.coordinator.transactions import end as transaction_end

SECONDS = 5
KINDS = [
    pytest.param(TransactionWorld, id="one copier for each partition"),
    pytest.param(GroupTransactionWorld, id="groups of copiers"),
]

pytestmark = LEAVES_COROUTINES


@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("kind", KINDS)
def test_each_record_is_copied_once_in_every_schedule(
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
    kind: type[TransactionWorld],
) -> None:
    run_schedules(kind, request, capsys, seconds=SECONDS)


def test_groups_fence_former_members_under_every_transaction_version() -> None:
    expected = {
        f"transaction.version {version}: {fence.name}"
        for version in (0, 1, 2)
        for fence in GROUP_FENCES
    }
    observed: set[str] = set()
    for seed in range(PLENTY):
        world = GroupTransactionWorld(seed)
        world.run()
        observed |= {
            f"transaction.version {world.first_version}: {fence.name}"
            for fence in GROUP_FENCES
            if f"TXN_OFFSET_COMMIT: {fence.name}" in world.model.counts
        }
        if expected <= observed:
            return
    raise AssertionError(f"these never happen: {expected - observed}")


@pytest.mark.parametrize("kind", KINDS)
def test_the_trace_does_not_depend_on_the_process(kind: type[TransactionWorld]) -> None:
    assert len(traces_of_processes(kind, 5)) == 1


# -- planted faults --------------------------------------------------------------------------


def test_detects_fetch_response_without_aborted_transactions() -> None:
    with mock.patch.object(partition_reads, "aborted_in", return_value=()):
        assert "never to be committed" in first_failure(TransactionWorld)


def test_detects_end_of_an_old_epoch_that_ends_a_newer_transaction() -> None:
    original = transaction_end._check_with_new_epochs

    def trusting(transaction: Any, request: Any) -> bool:
        present = {name: getattr(transaction, name) for name in ("producer_id", "producer_epoch")}
        return original(transaction, request._replace(**present))

    with mock.patch.object(transaction_end, "_check_with_new_epochs", trusting):
        assert first_failure(TransactionWorld, first_seed=40)


def test_late_end_before_version_2_ends_a_newer_transaction() -> None:
    # This is no fault: such requests cannot be told apart, which KIP-890 fixes.
    class Merciless(TransactionWorld):
        def __init__(self, seed: int) -> None:
            super().__init__(seed)
            self.drops_what_is_late = False

    assert first_failure(Merciless, first_seed=10)


def test_detects_accepted_offsets_of_former_members() -> None:
    with mock.patch.object(ClassicGroup, "check_transactional_commit"):
        assert _copies_twice(first_failure(GroupTransactionWorld))


def test_detects_pending_offsets_hidden_from_the_next_owner() -> None:
    with mock.patch.object(PendingOffsets, "is_open", return_value=False):
        assert _copies_twice(first_failure(GroupTransactionWorld, first_seed=6))


def _copies_twice(failure: str) -> bool:
    """Return whether the schedule fails so; decreasing offsets are detected earlier."""
    return "there twice" in failure or "goes back" in failure
