"""Planted faults of consumer groups, which the random machine must find."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.property.groups.test_consumer_group_machine import ConsumerGroupMachine
from tests.support.harness.planted_faults import assert_found, cases
from wirebroker.codecs.group_records import GroupRecordKind
from wirebroker.coordinator.groups.consumer import (
    consumer_fencing,
    consumer_records,
    consumer_replay,
    joining,
    member_update,
    reconciliation,
    regexes,
)
from wirebroker.coordinator.groups.consumer.consumer_member import ConsumerMember
from wirebroker.coordinator.groups.consumer.partition_epochs import PartitionEpochs
from wirebroker.coordinator.groups.topic_hashes import TopicHashes

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.codecs.coordinator_records import CoordinatorRecord


def _no_steps(*args: Any) -> Any:
    del args
    return iter(())


def _nothing(*args: Any, **options: Any) -> None:
    del args, options


def _false(*args: Any) -> bool:
    del args
    return False


def _without_tombstones(kind: GroupRecordKind) -> Callable[..., None]:
    replay = consumer_replay.replay

    def dropping(shard: Any, key: Any, value: bytes | None, known: Any = None) -> None:
        if value is not None or key.kind is not kind:
            replay(shard, key, value, known)

    return dropping


def _silent_members_own_nothing(partitions: Any, owned: Any) -> bool:
    return any(
        index in partitions.get(topic.topic_id, {})
        for topic in owned or ()
        for index in topic.partitions
    )


def _as_stranger(group: Any, existing: Any, member_id: str, outcome: Any) -> ConsumerMember:
    del group, existing, outcome
    return ConsumerMember(member_id)


def _without_revoking(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    return _CURRENT_RECORD(group_id, replace(member, revoking={}))


_CURRENT_RECORD = consumer_records.current_record


def _all_free(_member: Any, _target: Any, _topic_id: bytes, indexes: Any) -> Any:
    return indexes


FAULTS: dict[str, Any] = {
    "ignored owners": (reconciliation, "_free", _all_free),
    "partitions that are taken without being given up": (reconciliation, "_owns_any", _false),
    "silent members that own nothing": (
        reconciliation,
        "_owns_any",
        _silent_members_own_nothing,
    ),
    "refused repetitions": (joining, "_has_all", _false),
    "a dropped tombstone of a member": (
        consumer_replay,
        "replay",
        _without_tombstones(GroupRecordKind.CONSUMER_GROUP_MEMBER_METADATA),
    ),
    "a dropped tombstone of a target": (
        consumer_replay,
        "replay",
        _without_tombstones(GroupRecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER),
    ),
    "a dropped tombstone of an expression": (
        consumer_replay,
        "replay",
        _without_tombstones(GroupRecordKind.CONSUMER_GROUP_REGULAR_EXPRESSION),
    ),
    "static members that return without their partitions": (joining, "take_over", _as_stranger),
    "lost owners": (PartitionEpochs, "_add", _nothing),
    "owners that are kept": (PartitionEpochs, "_remove", _nothing),
    "records without revoked partitions": (
        member_update,
        "current_record",
        _without_revoking,
    ),
    "sessions that do not start after a load": (consumer_fencing, "start_timers", _no_steps),
    "sessions that end once": (consumer_fencing, "watch", _nothing),
    "revocations without a timeout": (member_update, "expect_revocation", _nothing),
    "changes of topics forgotten after a failure": (
        member_update.MemberUpdate,
        "forget",
        _nothing,
    ),
    "timers of a state that was not recorded": (
        member_update,
        "cancel_member_timers",
        _nothing,
    ),
    "stale hashes of topics": (
        TopicHashes,
        "follow",
        lambda self, image, _changed: setattr(self, "_image", image),
    ),
    "expressions that are resolved once": (
        regexes,
        "due_search",
        lambda _shard, group, _old, new, _ms: (
            (new.topic_regex,)
            if new.topic_regex and new.topic_regex not in group.subscriptions.resolved
            else ()
        ),
    ),
}


# All of them take more than a minute.
_EACH_DAY = {"ignored owners", "a dropped tombstone of a target"}


@pytest.mark.parametrize("name", cases(FAULTS, _EACH_DAY))
def test_a_planted_fault_is_found(name: str) -> None:
    assert_found(ConsumerGroupMachine, FAULTS[name], (AssertionError, KeyError))
