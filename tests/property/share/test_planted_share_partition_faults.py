"""Planted faults of share partitions, which the random machine must find."""

from __future__ import annotations

from typing import Any

import pytest

from tests.property.share.test_share_partition_machine import SharePartitionMachine
from tests.support.harness.planted_faults import assert_found, cases
from wirebroker.coordinator.share_partitions import (
    acknowledgement,
    acquisition,
    archiving,
    release,
    state_change,
)
from wirebroker.coordinator.share_partitions.in_flight_batch import InFlightBatch
from wirebroker.coordinator.share_partitions.lock_timers import LockTimers
from wirebroker.coordinator.share_partitions.record_state import (
    TERMINAL,
    InFlightState,
    RecordState,
)
from wirebroker.coordinator.share_partitions.share_partition import SharePartition

_CHANGE = InFlightState.change
_COMMIT = state_change.StateChange.commit


def _nothing(*args: Any, **options: Any) -> None:
    del args, options


def _without_limit(self: Any, new_state: RecordState, *, limit: int, **options: Any) -> bool:
    del limit
    return _CHANGE(self, new_state, limit=1 << 30, **options)


def _without_count(self: Any, member_id: str, deadline_ms: float) -> None:
    self.state, self.member_id, self.deadline_ms = RecordState.ACQUIRED, member_id, deadline_ms


def _committed_twice(self: Any) -> Any:
    dead = yield from _COMMIT(self)
    return dead * 2


def _without_undo(self: Any, now_ms: float) -> None:
    del now_ms
    self._before = None


FAULTS: dict[str, Any] = {
    "records granted while their release may fail": (
        InFlightState,
        "is_available",
        property(lambda self: self.state is RecordState.AVAILABLE),
    ),
    "owners that are not checked": (acknowledgement._Acknowledging, "_check_owner", _nothing),
    "owners of offsets that are not checked": (
        acknowledgement._Acknowledging,
        "_check_offset",
        _nothing,
    ),
    "deliveries that are not counted": (InFlightState, "acquire", _without_count),
    "deliveries without limit": (InFlightState, "change", _without_limit),
    "locks that never expire": (LockTimers, "take_due", _nothing),
    "locks of parts that never expire": (acquisition._Acquisition, "_add_states", _nothing),
    "renewals without effect": (acknowledgement._Acknowledging, "_renew", _nothing),
    "failed writes that are not rolled back": (InFlightState, "undo", _without_undo),
    "a start offset beyond unpersisted records": (
        InFlightState,
        "is_done",
        property(lambda self: self.state in TERMINAL),
    ),
    "neighbors of two members joined": (
        InFlightState,
        "is_like",
        lambda self, other: self.state is other.state and self._before is other._before is None,
    ),
    "dead letters written twice": (
        state_change.StateChange,
        "commit",
        _committed_twice,
    ),
    "releases that are forgotten": (release, "persisted", lambda _: None),
    "compacted records that stay available": (acquisition, "archive_stale", _nothing),
    "released records that stay below the start": (archiving, "archive", lambda *_: False),
    "done records that are not counted": (SharePartition, "count_done", _nothing),
    "states of others in a divided batch": (
        InFlightBatch,
        "among",
        lambda self, first, last: (
            state
            for state in self.states
            if first <= state.last_offset and state.first_offset <= last
        ),
    ),
}
# Found within two seconds each.
_EACH_DAY = {
    "deliveries that are not counted",
    "locks that never expire",
    "records granted while their release may fail",
}


@pytest.mark.parametrize("name", cases(FAULTS, _EACH_DAY))
def test_a_planted_fault_is_found(name: str) -> None:
    assert_found(
        SharePartitionMachine, FAULTS[name], (AssertionError, AttributeError, KeyError, TypeError)
    )
