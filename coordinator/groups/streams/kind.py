"""What a shard calls for streams groups; see shard/kinds.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.coordinator.groups.streams import (
    due_assignment,
    streams_fencing,
    streams_replay,
)
from wirebroker.coordinator.groups.streams.streams_timers import (
    InitialRebalance,
    TaskRevocation,
    TaskSession,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wirebroker.base.clock import Steps
    from wirebroker.codecs.group_records import GroupRecordKind
    from wirebroker.coordinator.groups.serving_shard import ServingShard
    from wirebroker.coordinator.outcome import Moment, Outcome

ON_TIMER: Final[Mapping[type[Any], Callable[[Any, Any, Moment], Outcome]]] = {
    TaskSession: streams_fencing.on_expiry,
    TaskRevocation: streams_fencing.on_revocation_timeout,
    InitialRebalance: due_assignment.on_initial_rebalance,
}


def replay(shard: ServingShard, key: Any, value: bytes | None, known: Any = None) -> None:
    """Apply a record; see streams_replay.replay."""
    streams_replay.replay(shard, key, value, known)


def decoded(kind: GroupRecordKind, value: bytes) -> Any:
    """Decode the value of a record; see streams_replay.decoded."""
    return streams_replay.decoded(kind, value)


def start_timers(shard: ServingShard, now: Moment) -> Steps[None]:
    """Start the timers of members after a load; see streams_fencing.start_timers."""
    return streams_fencing.start_timers(shard, now)
