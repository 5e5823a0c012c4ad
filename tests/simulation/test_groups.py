"""Groups in deterministic simulation: any number of schedules, each from its own seed.

pytest tests/simulation --seed 7                     begins with schedule 7
pytest tests/simulation --seed 7 --budget-scale 0    runs schedule 7 alone
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

from tests.simulation.traces import traces_of_processes
from tests.simulation.world import SimulationError, World
from tests.support.budget import Budget
from wirebroker.cluster import coordinator_loading
from wirebroker.codecs.records.coordinator_batches import KeyValueWalk
from wirebroker.coordinator.groups.classic_group import ClassicGroup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from wirebroker.coordinator.outcome import Moment, Timers

SECONDS = 20
# Within so many schedules a planted mistake must be seen.
PLENTY = 400

# How the keys of commits, and of the groups' own records, begin.
_OFFSET_KIND = b"\x00\x01"
_GROUP_KIND = b"\x00\x02"


def test_groups_keep_their_promises_in_every_schedule(
    request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    budget = Budget(request.config, seconds=SECONDS)
    totals: Counter[str] = Counter()
    simulated_s = 0.0
    slowest_s = 0
    number = 0
    for number in budget.rounds():
        world = World(budget.seed + number)
        world.run()
        simulated_s += world.loop.time()
        slowest_s = max(slowest_s, world.seconds_to_rest)
        totals.update(world.model.counts)
        totals["broker deaths"] += world.host.deaths
    with capsys.disabled():
        print(  # noqa: T201
            f"\n  groups: seed {budget.seed}, {number + 1} schedules, {simulated_s:,.0f} simulated "
            f"seconds, at rest within {slowest_s} s\n  {dict(totals.most_common())}"
        )


def test_the_same_seed_gives_the_same_trace() -> None:
    hashes = {_trace_of(seed) for seed in (3, 3, 4)}
    assert len(hashes) == 2


def test_the_trace_does_not_depend_on_the_process() -> None:
    assert traces_of_processes(World, 3) == {_trace_of(3)}


def _trace_of(seed: int) -> str:
    world = World(seed)
    world.run()
    return world.trace


# -- what the simulation must see ------------------------------------------------------------


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("ERROR", "wirebroker")


def test_commits_by_former_members_are_seen_if_they_are_taken() -> None:
    def trusting(group: ClassicGroup, body: Any, _timers: Timers, _moment: Moment) -> None:
        if group.members and body.member_id not in group.members:
            body.member_id = next(iter(group.members))

    with mock.patch.object(ClassicGroup, "admit_commit", trusting):
        assert "goes back" in _first_failure()


def test_a_commit_that_a_load_leaves_out_is_missed() -> None:
    def without_last_commit(records: list[Any]) -> list[Any]:
        last = max((n for n, each in enumerate(records) if each[0][:2] == _OFFSET_KIND), default=-1)
        return [each for n, each in enumerate(records) if n != last]

    with _loading(without_last_commit):
        assert "was committed" in _first_failure()


def test_two_owners_are_seen_if_a_load_leaves_out_the_generation() -> None:
    with _loading(lambda records: [each for each in records if each[0][:2] != _GROUP_KIND]):
        assert "own" in _first_failure()


def _loading(choose: Callable[[list[Any]], list[Any]]) -> AbstractContextManager[Any]:
    """Have a broker load only what is chosen of each read."""

    class Partial(KeyValueWalk):
        def __iter__(self) -> Iterator[Any]:
            yield from choose(list(super().__iter__()))

    return mock.patch.object(coordinator_loading, "KeyValueWalk", Partial)


def _first_failure() -> str:
    for seed in range(PLENTY):
        try:
            World(seed).run()
        except SimulationError as error:
            return str(error)
    raise AssertionError("the mistake is not seen")
