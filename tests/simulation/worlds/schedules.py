"""Runs of random schedules until the time budget is spent or one fails."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import pytest

from tests.simulation.worlds.world import SimulationError
from tests.support.harness.budget import Budget

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulation.worlds.world import World

# The number of schedules within which a planted fault must be found.
PLENTY: Final = 400

# A killed broker leaves coroutines that were never awaited.
LEAVES_COROUTINES: Final = pytest.mark.filterwarnings(
    "ignore:coroutine .* was never awaited:RuntimeWarning"
)


def run_schedules(
    kind: type[World],
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
    *,
    seconds: float,
) -> None:
    """Run schedules for `seconds`, scaled by --budget-scale, and print their counts.

    Raises:
        SimulationError: A schedule fails.
    """
    budget = Budget(request.config, seconds=seconds)
    totals: Counter[str] = Counter()
    simulated_s = 0.0
    slowest_s = number = 0
    for number in budget.rounds():
        world = kind(budget.seed + number)
        world.run()
        simulated_s += world.loop.time()
        slowest_s = max(slowest_s, world.seconds_to_rest)
        totals.update(world.model.counts)
        totals["broker deaths"] += world.host.deaths
    with capsys.disabled():
        print(  # noqa: T201
            f"\n  {kind.__name__}: seed {budget.seed}, {number + 1} schedules, "
            f"{simulated_s:,.0f} simulated seconds, at rest within {slowest_s} s"
            f"\n  {dict(totals.most_common())}"
        )


def first_failure(kind: Callable[[int], World], *, about: str = "", first_seed: int = 0) -> str:
    """Return the message of the first schedule that fails because of a planted fault.

    Args:
        kind: The world class, created with each seed.
        about: Required part of the message, if the fault has other effects as well.
        first_seed: Start near a failing schedule, to save time.
    """
    for seed in range(first_seed, first_seed + PLENTY):
        try:
            kind(seed).run()
        except SimulationError as error:
            if about in str(error):
                return str(error)
    raise AssertionError("the mistake is not seen")
