"""Streams groups whose coordinators move between the nodes of a simulated cluster.

pytest tests/simulation/test_streams_groups.py --seed 7 --budget-scale 0     runs only schedule 7
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

from tests.simulation.cluster.cluster_schedules import first_failure, run_schedules
from tests.simulation.cluster.streams_world import StreamsWorld
from tests.simulation.worlds.schedules import LEAVES_COROUTINES
from tests.support.harness.planted_faults import cases
from wirebroker.codecs.group_records import GroupRecordKind
from wirebroker.coordination.partition_log import PartitionLog
from wirebroker.coordinator.groups.streams import (
    streams_fencing,
    streams_records,
    streams_replay,
    streams_update,
    task_reconciliation,
)
from wirebroker.coordinator.groups.streams.streams_group import StreamsGroup
from wirebroker.coordinator.groups.streams.streams_update import StreamsUpdate
from wirebroker.coordinator.groups.streams.tasks import NOTHING_ASSIGNED
from wirebroker.coordinator.groups.topologies.topology import topology_of

if TYPE_CHECKING:
    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.coordinator.groups.streams.streams_member import StreamsMember

SECONDS = 8
_STEP = task_reconciliation._Step
_CURRENT_RECORD = streams_records.current_record
_REPLAY = streams_replay.replay
_TOPOLOGY = StreamsUpdate._topology

pytestmark = LEAVES_COROUTINES


@pytest.mark.timeout(7_200)
def test_tasks_have_one_owner_while_coordinators_move(
    request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    totals = run_schedules(StreamsWorld, request, capsys, seconds=SECONDS, name="streams groups")
    assert totals["STREAMS_GROUP_HEARTBEAT NONE"]
    assert totals["checks of owners"]
    assert totals["commits"]


# -- planted faults --------------------------------------------------------------------------


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


def _without_revoking(group_id: str, member: StreamsMember) -> CoordinatorRecord:
    return _CURRENT_RECORD(group_id, replace(member, revoking=NOTHING_ASSIGNED))


def _any_topology(update: StreamsUpdate) -> Any:
    requested = update._body.topology
    is_first = requested is None or update.group.topology is None
    return _TOPOLOGY(update) if is_first else topology_of(requested)


def _without_member_tombstones(
    shard: Any, key: Any, value: bytes | None, known: Any = None
) -> None:
    if value is not None or key.kind is not GroupRecordKind.STREAMS_GROUP_MEMBER_METADATA:
        _REPLAY(shard, key, value, known)


# Where each fault is planted, and a part of the message with which it is found.
FAULTS: dict[str, tuple[Any, str, Any, str]] = {
    "ignored owners": (_STEP, "_taken_active", _none_taken, "own"),
    "copies in one process": (_STEP, "_taken_standby", _none_taken, "two copies"),
    "tasks that are taken without being given up": (
        task_reconciliation,
        "_has_not_released",
        _false,
        "own",
    ),
    "records without revoked tasks": (streams_update, "current_record", _without_revoking, "own"),
    "commits of former owners": (StreamsGroup, "admit_commit", _nothing, "offset of"),
    "commits acknowledged before replication": (
        PartitionLog,
        "committed_offset",
        property(lambda log: log.end_offset),
        "goes back",
    ),
    "sessions that do not start after a load": (
        streams_fencing,
        "start_timers",
        _no_steps,
        "no rest",
    ),
    "another topology": (StreamsUpdate, "_topology", _any_topology, "another topology"),
    "a dropped tombstone of a member": (
        streams_replay,
        "replay",
        _without_member_tombstones,
        "",
    ),
}
_EACH_DAY = {"ignored owners", "tasks that are taken without being given up"}


@pytest.mark.parametrize("name", cases(FAULTS, _EACH_DAY))
def test_detects_planted_fault(name: str) -> None:
    target, attribute, fault, about = FAULTS[name]
    with mock.patch.object(target, attribute, fault):
        assert first_failure(StreamsWorld, about=about)
