"""Groups in random schedules of the deterministic simulation.

pytest tests/simulation --seed 7                     begins with schedule 7
pytest tests/simulation --seed 7 --budget-scale 0    runs only schedule 7
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unittest import mock

from tests.simulation.worlds.partial_loading import loading
from tests.simulation.worlds.schedules import LEAVES_COROUTINES, first_failure, run_schedules
from tests.simulation.worlds.traces import traces_of_processes
from tests.simulation.worlds.world import World
from wirebroker.coordinator.groups.classic.classic_group import ClassicGroup

if TYPE_CHECKING:
    import pytest

    from wirebroker.coordinator.outcome import Moment, Timers

SECONDS = 8

# Key prefixes of commit records and of group records.
_OFFSET_KIND = b"\x00\x01"
_GROUP_KIND = b"\x00\x02"

pytestmark = LEAVES_COROUTINES


def test_groups_behave_correctly_in_every_schedule(
    request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    run_schedules(World, request, capsys, seconds=SECONDS)


def test_the_same_seed_gives_the_same_trace() -> None:
    hashes = {_trace_of(seed) for seed in (3, 3, 4)}
    assert len(hashes) == 2


def test_the_trace_does_not_depend_on_the_process() -> None:
    assert traces_of_processes(World, 3) == {_trace_of(3)}


def _trace_of(seed: int) -> str:
    world = World(seed)
    world.run()
    return world.trace


# -- planted faults --------------------------------------------------------------------------


def test_detects_accepted_commits_of_former_members() -> None:
    def trusting(group: ClassicGroup, request: Any, _timers: Timers, _now: Moment) -> None:
        body = request.body
        if group.members and body.member_id not in group.members:
            body.member_id = next(iter(group.members))

    with mock.patch.object(ClassicGroup, "admit_commit", trusting):
        assert "goes back" in first_failure(World, first_seed=18)


def test_detects_load_without_the_last_commit() -> None:
    def without_last_commit(records: list[Any]) -> list[Any]:
        last = max(
            (n for n, record in enumerate(records) if record[0][:2] == _OFFSET_KIND), default=-1
        )
        return [record for n, record in enumerate(records) if n != last]

    with loading(without_last_commit):
        assert "was committed" in first_failure(World)


def test_detects_two_owners_after_a_load_without_the_generation() -> None:
    with loading(lambda records: [record for record in records if record[0][:2] != _GROUP_KIND]):
        assert first_failure(World, about="own")
