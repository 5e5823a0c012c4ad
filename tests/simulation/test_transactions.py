"""Transactions in deterministic simulation (R10 to R12 of the test plan).

pytest tests/simulation --seed 7                     begins with schedule 7
pytest tests/simulation --seed 7 --budget-scale 0    runs schedule 7 alone
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.property.budget import Budget
from tests.simulation.transaction_world import TransactionWorld

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS = 15


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level("ERROR", "wirebroker"):
        yield


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
