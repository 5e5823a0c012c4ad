"""Share groups on a simulated cluster whose leaders and coordinators move.

pytest tests/simulation/test_share_groups.py --seed 7 --budget-scale 0     runs only schedule 7
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

from tests.simulation.cluster.cluster_schedules import first_failure, run_schedules
from tests.simulation.cluster.share_world import ShareWorld
from tests.simulation.worlds.schedules import LEAVES_COROUTINES
from tests.support.harness.planted_faults import cases
from wirebroker.coordination.partition_log import PartitionLog
from wirebroker.coordinator.share_partitions import acknowledgement, loading
from wirebroker.coordinator.share_partitions.lock_timers import LockTimers
from wirebroker.coordinator.share_partitions.record_state import InFlightState, RecordState
from wirebroker.coordinator.share_state import batch_merge
from wirebroker.coordinator.share_state.shard import RecordedPartition
from wirebroker.share import share_fetch, share_loader
from wirebroker.share.dead_letters import DeadLetters
from wirebroker.share.share_partition_manager import SharePartitionManager
from wirebroker.share.share_writer import ShareWriter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wirebroker.coordinator.share_state.state import PersistedState, StateBatch

SECONDS = 10
_ACKNOWLEDGING = acknowledgement._Acknowledging
_CHANGE = InFlightState.change
_LOAD = loading.load

pytestmark = LEAVES_COROUTINES


@pytest.mark.timeout(7_200)
def test_records_are_delivered_correctly_while_leaders_move(
    request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    totals = run_schedules(ShareWorld, request, capsys, seconds=SECONDS, name="share groups")
    assert totals["granted"]
    assert totals["confirmed"]
    assert totals["compared with the persisted state"]


def test_the_same_seed_gives_the_same_totals() -> None:
    worlds = [ShareWorld(seed) for seed in (3, 3, 4)]
    for world in worlds:
        world.run()
    first, second, other = (world.totals() for world in worlds)
    assert first == second
    assert first != other


# -- planted faults --------------------------------------------------------------------------


def _nothing(*args: Any, **options: Any) -> None:
    del args, options


async def _nothing_later(*args: Any, **options: Any) -> None:
    del args, options


def _without_count(self: Any, member_id: str, deadline_ms: float) -> None:
    self.state, self.member_id, self.deadline_ms = RecordState.ACQUIRED, member_id, deadline_ms


def _without_limit(self: Any, new_state: RecordState, *, limit: int, **options: Any) -> bool:
    del limit
    return _CHANGE(self, new_state, limit=1 << 30, **options)


def _without_batches(state: Any, persisted: PersistedState, offset: int, limits: Any) -> Any:
    return _LOAD(state, persisted._replace(batches=()), offset, limits)


async def _without_storing(self: Any, group_id: str, writes: Any) -> Any:
    del self, group_id
    return dict.fromkeys(writes)


def _newer_ones(stored: Sequence[StateBatch], newer: Sequence[StateBatch]) -> Iterator[StateBatch]:
    """Yield the newer batches, and the stored ones that they do not overlap."""
    taken = {
        offset for batch in newer for offset in range(batch.first_offset, batch.last_offset + 1)
    }
    parts = [
        batch._replace(first_offset=offset, last_offset=offset)
        for batch in stored
        for offset in range(batch.first_offset, batch.last_offset + 1)
        if offset not in taken
    ]
    yield from sorted([*parts, *newer])


# Where each fault is planted, and a part of the message with which it is found.
FAULTS: dict[str, tuple[Any, str, Any, str]] = {
    "locks that never expire": (LockTimers, "take_due", _nothing, "records remain"),
    "owners that are not checked": (_ACKNOWLEDGING, "_check_owner", _nothing, ""),
    "deliveries that are not counted": (InFlightState, "acquire", _without_count, "falls"),
    "deliveries without limit": (InFlightState, "change", _without_limit, "beyond the limit"),
    "states that are not loaded": (share_loader, "load", _without_batches, "grant"),
    "states that are not stored": (ShareWriter, "_store", _without_storing, ""),
    "share partitions of former leaders": (
        SharePartitionManager,
        "_on_leadership",
        _nothing,
        "",
    ),
    "writes of former leaders": (
        RecordedPartition,
        "leader_epoch",
        property(lambda _: -1, _nothing),
        "",
    ),
    "confirmations before replication": (
        PartitionLog,
        "committed_offset",
        property(lambda log: log.end_offset),
        "",
    ),
    "newer states with lower counts": (batch_merge, "_winners", _newer_ones, ""),
    "records of aborted transactions": (
        share_fetch,
        "without_aborted",
        lambda _state, acquired, _batches, _aborted: acquired,
        "committed",
    ),
    "dead letters that are not written": (
        DeadLetters,
        "write",
        _nothing_later,
        "no dead letter",
    ),
}
_EACH_DAY = {"locks that never expire"}


@pytest.mark.parametrize("name", cases(FAULTS, _EACH_DAY))
def test_detects_planted_fault(name: str) -> None:
    target, attribute, fault, about = FAULTS[name]
    with mock.patch.object(target, attribute, fault):
        assert first_failure(ShareWorld, about=about)
