"""Target assignments of share groups: at once, or in the background for large groups."""

from unittest import mock

import pytest

from tests.support.coordinators.share_group_kit import ShareGroups, T
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.groups import background
from wirebroker.coordinator.groups.share import share_assignment, share_background
from wirebroker.coordinator.groups.share.share_assignment import AssignShareGroup


@pytest.fixture
def groups():
    """Return groups whose assignments are always computed in the background."""
    with (
        mock.patch.object(share_assignment, "MOST_AT_ONCE", 0),
        mock.patch.object(background, "_MOST_ITEMS", 1),
    ):
        yield ShareGroups()


def test_a_large_group_is_assigned_in_the_background(groups):
    assert groups.share_join("a", "t")["member_epoch"] == 1
    assert AssignShareGroup("g") in groups.effects
    groups.work()
    assert groups.share_stay("a")["member_epoch"] == 2
    groups.share_settle()
    assert groups.assigned("a") == {T: {0, 1, 2}}


def test_one_computation_at_a_time(groups):
    groups.share_join("a", "t")
    groups.share_join("b", "t")
    begun = [effect for effect in groups.effects if isinstance(effect, AssignShareGroup)]
    assert len(begun) == 2
    assert share_background.begin(groups.shard, begun[0]) is None
    assert share_background.begin(groups.shard, begun[1]) is not None
    assert share_background.begin(groups.shard, AssignShareGroup("none")) is None


def test_members_that_leave_meanwhile_get_no_target(groups):
    groups.share_join("a", "t")
    groups.share_join("b", "t")
    groups.work_a_step()
    groups.share_beat("a", -1)
    groups.work()
    assert groups.share().target.keys() <= {"b"}
    groups.share_settle()
    assert groups.assigned("b") == {T: {0, 1, 2}}


def test_a_failed_portion_is_abandoned(groups):
    groups.share_join("a", "t")
    groups.fails_with = ErrorCode.COORDINATOR_NOT_AVAILABLE
    groups.work()
    groups.fails_with = None
    assert groups.share().background_work is None
    assert groups.share().assignment_epoch == 1
    groups.share_settle()
    assert groups.share_member("a").epoch == groups.share().epoch


def test_a_failed_heartbeat_begins_no_computation(groups):
    groups.share_join("a", "t")
    groups.share_settle()
    groups.fails_with = ErrorCode.COORDINATOR_NOT_AVAILABLE
    groups.share_join("b", "t")
    assert groups.share().background_work is None


def test_members_with_an_unchanged_target_get_no_record():
    groups = ShareGroups()
    groups.share_join("a", "t")
    groups.share_settle()
    mark = len(groups.log)
    groups.share_join("b", "later")
    changed = [
        record[1] for record in groups.since(mark) if "TARGET_ASSIGNMENT_MEMBER" in record[0]
    ]
    assert changed == ["b"]


def test_a_group_without_changed_targets_is_finished(groups):
    groups.share_join("a", "missing")
    groups.work()
    groups.advance(1_000)
    groups.share_join("a", "absent")
    groups.work()
    assert groups.share().assignment_epoch == groups.share().epoch
