"""Planted faults of streams groups, which the random machine must find."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.property.groups.test_streams_group_machine import StreamsGroupMachine
from tests.support.harness.planted_faults import assert_found, cases
from wirebroker.codecs.group_records import GroupRecordKind
from wirebroker.coordinator.groups import member_timers
from wirebroker.coordinator.groups.streams import (
    streams_fencing,
    streams_joining,
    streams_records,
    streams_replay,
    streams_update,
    task_reconciliation,
)
from wirebroker.coordinator.groups.streams.streams_member import StreamsMember
from wirebroker.coordinator.groups.streams.task_processes import TaskProcesses
from wirebroker.coordinator.groups.streams.tasks import NOTHING_ASSIGNED

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.codecs.coordinator_records import CoordinatorRecord


def _no_steps(*args: Any) -> Any:
    del args
    return iter(())


def _nothing(*args: Any, **options: Any) -> None:
    del args, options


def _none_taken(*_arguments: Any) -> frozenset[int]:
    return frozenset()


def _false(*args: Any) -> bool:
    del args
    return False


def _without_tombstones(kind: GroupRecordKind) -> Callable[..., None]:
    replay = streams_replay.replay

    def dropping(shard: Any, key: Any, value: bytes | None, known: Any = None) -> None:
        if value is not None or key.kind is not kind:
            replay(shard, key, value, known)

    return dropping


def _as_stranger(group: Any, existing: Any, member_id: str, outcome: Any) -> StreamsMember:
    del group, existing, outcome
    return StreamsMember(member_id)


def _without_revoking(group_id: str, member: StreamsMember) -> CoordinatorRecord:
    return _CURRENT_RECORD(group_id, replace(member, revoking=NOTHING_ASSIGNED))


_CURRENT_RECORD = streams_records.current_record
_STEP = task_reconciliation._Step

FAULTS: dict[str, Any] = {
    "ignored owners": (_STEP, "_taken_active", _none_taken),
    "copies in one process": (_STEP, "_taken_standby", _none_taken),
    "tasks that are taken without being given up": (
        task_reconciliation,
        "_has_not_released",
        _false,
    ),
    "refused repetitions": (streams_joining, "_has_all", _false),
    "a dropped tombstone of a member": (
        streams_replay,
        "replay",
        _without_tombstones(GroupRecordKind.STREAMS_GROUP_MEMBER_METADATA),
    ),
    "a dropped tombstone of a target": (
        streams_replay,
        "replay",
        _without_tombstones(GroupRecordKind.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER),
    ),
    "static members that return without their tasks": (
        streams_joining,
        "_take_over",
        _as_stranger,
    ),
    "lost processes": (TaskProcesses, "_add", _nothing),
    "processes that are kept": (TaskProcesses, "_remove", _nothing),
    "records without revoked tasks": (streams_update, "current_record", _without_revoking),
    "sessions that do not start after a load": (streams_fencing, "start_timers", _no_steps),
    "sessions that end once": (streams_fencing, "watch", _nothing),
    "revocations without a timeout": (member_timers, "expect_revocation", _nothing),
    "changes of topics forgotten after a failure": (
        streams_update.StreamsUpdate,
        "forget",
        _nothing,
    ),
}

# All of them take more than a minute.
_EACH_DAY = {"ignored owners", "a dropped tombstone of a member"}


@pytest.mark.parametrize("name", cases(FAULTS, _EACH_DAY))
def test_a_planted_fault_is_found(name: str) -> None:
    assert_found(StreamsGroupMachine, FAULTS[name], (AssertionError, KeyError))
