"""Planted faults of share groups, which the random machine must find."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.property.groups.test_share_group_machine import ShareGroupMachine
from tests.support.harness.planted_faults import assert_found, cases
from wirebroker.codecs.group_records import GroupRecordKind
from wirebroker.coordinator.groups.assignors import simple
from wirebroker.coordinator.groups.share import (
    share_fencing,
    share_heartbeat,
    share_initialization,
    share_joining,
    share_replay,
    share_update,
)
from wirebroker.coordinator.groups.share.share_group import ShareGroup
from wirebroker.coordinator.groups.share.share_topics import ShareTopics
from wirebroker.coordinator.groups.share.share_update import ShareUpdate

if TYPE_CHECKING:
    from collections.abc import Callable


def _no_steps(*args: Any) -> Any:
    del args
    return iter(())


def _nothing(*args: Any, **options: Any) -> None:
    del args, options


def _kept_answer(group: Any) -> bool:
    if group._has_unassigned is None:
        group._has_unassigned = False
    return bool(group._has_unassigned)


def _without_tombstones(kind: GroupRecordKind) -> Callable[..., None]:
    replay = share_replay.replay

    def dropping(shard: Any, key: Any, value: bytes | None, known: Any = None) -> None:
        if value is not None or key.kind is not kind:
            replay(shard, key, value, known)

    return dropping


def _current_epoch_only(member: Any, epoch: int) -> None:
    if epoch not in {0, member.epoch}:
        raise AssertionError("a repetition of a request is refused")


FAULTS: dict[str, Any] = {
    "refused repetitions": (share_joining, "_check_epoch", _current_epoch_only),
    "a dropped tombstone of a member": (
        share_replay,
        "replay",
        _without_tombstones(GroupRecordKind.SHARE_GROUP_MEMBER_METADATA),
    ),
    "a dropped tombstone of a target": (
        share_replay,
        "replay",
        _without_tombstones(GroupRecordKind.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER),
    ),
    "initialized partitions that are never assigned": (
        ShareGroup,
        "has_unassigned",
        property(lambda _: False),
    ),
    "a cached answer that is not reset": (
        ShareGroup,
        "has_unassigned",
        property(_kept_answer),
    ),
    "failed initializations that are never repeated": (
        share_initialization,
        "_is_waiting",
        lambda _shard, group, topic_id, _ms: (
            group.topics is not None and topic_id in group.topics.initializing
        ),
    ),
    "failures that are noted as successes": (
        ShareTopics,
        "without_initializing",
        lambda topics, failed: topics.with_initialized(
            {topic_id: topics.initializing[topic_id] for topic_id in failed}
        ),
    ),
    "assigned topics without a subscription": (
        share_update,
        "reconciled",
        lambda member, epoch, partitions, _image: member.with_epoch(epoch, assigned=partitions),
    ),
    "sessions that do not start after a load": (share_fencing, "start_timers", _no_steps),
    "sessions that never start": (share_heartbeat, "watch", _nothing),
    "sessions of members that were not recorded": (share_update, "cancel_session", _nothing),
    "partitions without members": (simple, "_add_holders", _nothing),
    "soft state that a failure leaves": (ShareUpdate, "undo", _nothing),
}


# All of them take more than a minute.
_EACH_DAY = {"refused repetitions", "initialized partitions that are never assigned"}


@pytest.mark.parametrize("name", cases(FAULTS, _EACH_DAY))
def test_a_planted_fault_is_found(name: str) -> None:
    assert_found(ShareGroupMachine, FAULTS[name], (AssertionError, KeyError, AttributeError))
