"""Consumer groups (KIP-848) in random schedules of the deterministic simulation.

pytest tests/simulation/test_consumer_groups.py --seed 7 --budget-scale 0    runs only schedule 7
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

from tests.simulation.worlds.consumer_group_world import ConsumerGroupWorld, MigrationWorld
from tests.simulation.worlds.schedules import LEAVES_COROUTINES, first_failure, run_schedules
from wirebroker.codecs.consumer_protocol import encode_assignment
from wirebroker.coordinator.groups.consumer import downgrade, reconciliation, upgrade
from wirebroker.coordinator.groups.consumer.consumer_group import ConsumerGroup
from wirebroker.coordinator.groups.consumer.member_update import MemberUpdate

if TYPE_CHECKING:
    from tests.simulation.worlds.world import World
    from wirebroker.coordinator.outcome import Moment, Timers

SECONDS = 6

pytestmark = LEAVES_COROUTINES


@pytest.mark.parametrize("world", [ConsumerGroupWorld, MigrationWorld])
def test_groups_behave_correctly_in_every_schedule(
    world: type[World], request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    run_schedules(world, request, capsys, seconds=SECONDS)


# -- planted faults --------------------------------------------------------------------------


def _all_free(_member: Any, _target: Any, _topic_id: bytes, indexes: Any) -> Any:
    return indexes


def test_detects_partitions_that_still_have_owners() -> None:
    with mock.patch.object(reconciliation, "_free", _all_free):
        assert first_failure(ConsumerGroupWorld, about="has two owners")


def test_detects_partitions_taken_from_their_owners() -> None:
    with mock.patch.object(reconciliation, "_owns_any", return_value=False):
        assert first_failure(ConsumerGroupWorld, about="own")


def test_detects_accepted_commits_of_former_owners() -> None:
    def trusting(group: ConsumerGroup, request: Any, _timers: Timers, _now: Moment) -> None:
        del group, request

    with mock.patch.object(ConsumerGroup, "admit_commit", trusting):
        # Begin near a schedule that fails.
        assert first_failure(lambda seed: ConsumerGroupWorld(9 + seed), about="goes back")


def test_detects_upgrade_that_loses_assignments() -> None:
    with mock.patch.object(upgrade, "_assigned", return_value={}):
        assert first_failure(lambda seed: MigrationWorld(4 + seed), about="own")


def test_detects_downgrade_that_loses_assignments() -> None:
    nothing = encode_assignment(1, {})
    with mock.patch.object(downgrade, "classic_assignment", return_value=nothing):
        assert first_failure(MigrationWorld)


def test_detects_changes_of_topics_that_are_not_noticed() -> None:
    with mock.patch.object(MemberUpdate, "_check_topics"):
        assert first_failure(ConsumerGroupWorld)
