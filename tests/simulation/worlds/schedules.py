"""What tests of worlds do: run schedules as long as the budget lasts, or until one fails."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import pytest

from tests.simulation.worlds.world import SimulationError
from tests.support.harness.budget import Budget

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulation.worlds.world import World

# Within so many schedules a planted mistake must be seen, and what has to happen must have.
PLENTY: Final = 400

# A broker that is killed leaves coroutines that nobody has begun to await.
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
    """Run one schedule after the other, and print what has happened in them.

    Args:
        kind: The worlds; each gets its seed.
        request: Has the options of the budget.
        capsys: Is told to let the print through.
        seconds: How long, at --budget-scale 1.

    Raises:
        SimulationError: One of them fails.
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


def first_failure(kind: Callable[[int], World], *, about: str = "") -> str:
    """Return what the first schedule that fails says: with a planted mistake one must.

    Args:
        kind: The worlds; each gets its seed.
        about: Part of what it says, if the mistake is seen in other ways as well.
    """
    for seed in range(PLENTY):
        try:
            kind(seed).run()
        except SimulationError as error:
            if about in str(error):
                return str(error)
    raise AssertionError("the mistake is not seen")
