"""Consumer groups whose coordinators move between the nodes of a simulated cluster.

pytest tests/simulation/test_moving_groups.py --seed 7 --budget-scale 0     runs only schedule 7
"""

from __future__ import annotations

from typing import Any, Final
from unittest import mock

import pytest

from tests.simulation.cluster.cluster_schedules import first_failure, run_schedules
from tests.simulation.cluster.moving_groups_world import MovingGroupsWorld
from tests.simulation.worlds.partial_loading import loading
from tests.simulation.worlds.schedules import LEAVES_COROUTINES
from wirebroker.codecs.group_records import GroupRecordKind
from wirebroker.coordination.coordinator_partitions import CoordinatorPartitions
from wirebroker.coordinator.groups.consumer import reconciliation

SECONDS = 5
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
    totals = run_schedules(
        MovingGroupsWorld, request, capsys, seconds=SECONDS, name="moving groups"
    )
    assert totals["CONSUMER_GROUP_HEARTBEAT NONE"]
    assert totals["checks of owners"]


def _all_free(_member: Any, _target: Any, _topic_id: bytes, indexes: Any) -> Any:
    return indexes


def test_detects_partitions_that_still_have_owners() -> None:
    with mock.patch.object(reconciliation, "_free", _all_free):
        assert first_failure(MovingGroupsWorld, about="own")


def _kind(key: bytes) -> int:
    return int.from_bytes(key[:2], "big")


def test_detects_groups_that_are_lost_when_they_move() -> None:
    def without_groups(records: list[Any]) -> list[Any]:
        return [record for record in records if _kind(record[0]) in _OFFSET_COMMITS]

    with loading(without_groups):
        assert first_failure(MovingGroupsWorld, about="is lost")


def test_detects_members_that_are_lost_when_they_move() -> None:
    def without_members(records: list[Any]) -> list[Any]:
        return [record for record in records if _kind(record[0]) not in _OF_MEMBERS]

    with loading(without_members):
        assert first_failure(MovingGroupsWorld, about="is lost")


def test_detects_coordinator_that_serves_after_it_has_resigned() -> None:
    with mock.patch.object(CoordinatorPartitions, "_resign"):
        assert first_failure(MovingGroupsWorld, about="is led")
