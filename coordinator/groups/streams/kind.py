"""What a shard calls for streams groups; see shard/kinds.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.coordinator.groups.streams import (
    streams_fencing,
    streams_replay,
    streams_update,
)
from wirebroker.coordinator.groups.streams.streams_timers import (
    InitialRebalance,
    TaskRevocation,
    TaskSession,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wirebroker.coordinator.groups.serving_shard import ServingShard
    from wirebroker.coordinator.outcome import Moment, Outcome

ON_TIMER: Final[Mapping[type[Any], Callable[[Any, Any, Moment], Outcome]]] = {
    TaskSession: streams_fencing.on_expiry,
    TaskRevocation: streams_fencing.on_revocation_timeout,
    InitialRebalance: streams_update.on_initial_rebalance,
}


def replay(shard: ServingShard, key: Any, value: bytes | None, known: Any = None) -> None:
    """Apply a record; see streams_replay.replay."""
    del known
    streams_replay.replay(shard, key, value)


def on_loaded(shard: ServingShard, now: Moment) -> None:
    """Begin to serve the groups of a shard; see streams_fencing.on_loaded."""
    streams_fencing.on_loaded(shard, now)
