"""Transactions in deterministic simulation (R10 to R12 of the test plan).

pytest tests/simulation --seed 7                     begins with schedule 7
pytest tests/simulation --seed 7 --budget-scale 0    runs schedule 7 alone
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

from tests.property.budget import Budget
from tests.simulation.transaction_world import TransactionWorld
from tests.simulation.world import SimulationError
from wirebroker.api import partition_reads
from wirebroker.coordinator import transaction_end

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS = 15
# Within so many schedules a planted mistake must be seen.
PLENTY = 40


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level("ERROR", "wirebroker"):
        yield


# A broker that is killed leaves coroutines that nobody has begun to await.
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
def test_each_record_is_copied_once_in_every_schedule(
    request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    budget = Budget(request.config, seconds=SECONDS)
    totals: Counter[str] = Counter()
    slowest_s = number = 0
    for number in budget.rounds():
        world = TransactionWorld(budget.seed + number)
        world.run()
        slowest_s = max(slowest_s, world.seconds_to_rest)
        totals.update(world.model.counts)
        totals["broker deaths"] += world.host.deaths
    with capsys.disabled():
        print(  # noqa: T201
            f"\n  transactions: seed {budget.seed}, {number + 1} schedules, at rest within "
            f"{slowest_s} s\n  {dict(totals.most_common())}"
        )


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
def test_records_of_aborted_transactions_are_seen_if_readers_are_not_told() -> None:
    with mock.patch.object(partition_reads, "aborted_in", return_value=()):
        assert "are there twice" in _first_failure()


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
def test_a_delayed_end_of_an_old_epoch_is_seen_if_it_ends_a_newer_transaction() -> None:
    whole = transaction_end._check_with_new_epochs

    def trusting(transaction: Any, request: Any) -> bool:
        present = {name: getattr(transaction, name) for name in ("producer_id", "producer_epoch")}
        return whole(transaction, request._replace(**present))

    with mock.patch.object(transaction_end, "_check_with_new_epochs", trusting):
        assert _first_failure()


def _first_failure() -> str:
    for seed in range(PLENTY):
        try:
            TransactionWorld(seed).run()
        except SimulationError as error:
            return str(error)
    raise AssertionError("the mistake is not seen")
