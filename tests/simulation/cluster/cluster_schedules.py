"""Runs of random schedules of simulated clusters, and the search for planted faults."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from tests.support.harness.budget import Budget

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from tests.simulation.cluster.replica_world import ReplicaWorld

# The number of schedules within which a planted fault must be found.
PLENTY: Final = 200


def run_schedules(
    kind: Callable[[int], ReplicaWorld],
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
    *,
    seconds: float,
    name: str,
) -> Counter[str]:
    """Run schedules for `seconds`, scaled by --budget-scale; print and return their counts.

    Raises:
        AssertionError: A schedule fails; a note has its seed.
    """
    budget = Budget(request.config, seconds=seconds)
    totals: Counter[str] = Counter()
    number = 0
    for number in budget.rounds():
        world = kind(budget.seed + number)
        try:
            world.run()
        except AssertionError as error:
            error.add_note(f"schedule {budget.seed + number}: repeat it with --budget-scale 0")
            raise
        totals.update(world.totals())
    with capsys.disabled():
        print(  # noqa: T201
            f"\n  {name}: seed {budget.seed}, {number + 1} schedules"
            f"\n  {dict(totals.most_common())}"
        )
    return totals


def first_failure(
    kind: Callable[[int], ReplicaWorld],
    *,
    about: str = "",
    first_seed: int = 0,
    plenty: int = PLENTY,
) -> str:
    """Return the seed and the message of the first schedule that fails because of a planted fault.

    Args:
        kind: The world class, or a function that creates one from a seed.
        about: Required part of the message, if the fault has other effects as well.
        first_seed: Start near a failing schedule, to save time.
        plenty: The number of schedules to try.
    """
    for seed in range(first_seed, first_seed + plenty):
        try:
            kind(seed).run()
        except AssertionError as error:
            if about in str(error):
                return f"{seed} {error}"
    raise AssertionError("the mistake is not seen")
