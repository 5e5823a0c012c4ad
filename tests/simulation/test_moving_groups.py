"""Consumer groups whose coordinators move between the nodes of a simulated cluster.

pytest tests/simulation/test_moving_groups.py --seed 7 --budget-scale 0     runs only schedule 7
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final
from unittest import mock

import pytest

from tests.simulation.cluster.moving_groups_world import MovingGroupsWorld
from tests.simulation.worlds.partial_loading import loading
from tests.simulation.worlds.schedules import LEAVES_COROUTINES
from tests.support.harness.budget import Budget
from wirebroker.codecs.group_records import GroupRecordKind
from wirebroker.coordination.coordinator_partitions import CoordinatorPartitions
from wirebroker.coordinator.groups.consumer import reconciliation

SECONDS = 5
_PLENTY = 100
# Versions of the key of an offset commit; other keys have higher numbers.
_OFFSET_COMMITS: Final = {0, 1}
_OF_MEMBERS: Final = {
    GroupRecordKind.CONSUMER_GROUP_MEMBER_METADATA,
    GroupRecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER,
    GroupRecordKind.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
}

pytestmark = LEAVES_COROUTINES


@pytest.mark.timeout(7_200)
def test_partitions_have_one_owner_while_coordinators_move(
    request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    budget = Budget(request.config, seconds=SECONDS)
    totals: Counter[str] = Counter()
    number = 0
    for number in budget.rounds():
        world = MovingGroupsWorld(budget.seed + number)
        world.run()
        totals.update(world.answers)
        totals["terms"] += world.terms
        totals["deaths"] += world.deaths
        totals["checks of owners"] += world.checks
    assert totals["CONSUMER_GROUP_HEARTBEAT NONE"]
    assert totals["checks of owners"]
    with capsys.disabled():
        print(  # noqa: T201
            f"\n  moving groups: seed {budget.seed}, {number + 1} schedules"
            f"\n  {dict(totals.most_common())}"
        )


def _first_failure(about: str) -> str:
    for seed in range(_PLENTY):
        try:
            MovingGroupsWorld(seed).run()
        except AssertionError as error:
            if about in str(error):
                return f"{seed} {error}"
    raise AssertionError("the mistake is not seen")


def test_detects_partitions_that_still_have_owners() -> None:
    with mock.patch.object(reconciliation, "_is_free", return_value=True):
        assert _first_failure("own")


def _kind(key: bytes) -> int:
    return int.from_bytes(key[:2], "big")


def test_detects_groups_that_are_lost_when_they_move() -> None:
    def without_groups(records: list[Any]) -> list[Any]:
        return [record for record in records if _kind(record[0]) in _OFFSET_COMMITS]

    with loading(without_groups):
        assert _first_failure("is lost")


def test_detects_members_that_are_lost_when_they_move() -> None:
    def without_members(records: list[Any]) -> list[Any]:
        return [record for record in records if _kind(record[0]) not in _OF_MEMBERS]

    with loading(without_members):
        assert _first_failure("is lost")


def test_detects_coordinator_that_serves_after_it_has_resigned() -> None:
    with mock.patch.object(CoordinatorPartitions, "_resign"):
        assert _first_failure("is led")
