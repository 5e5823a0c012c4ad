"""What a shard calls for streams groups; see shard/kinds.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.coordinator.groups.streams import streams_fencing, streams_update
from wirebroker.coordinator.groups.streams.streams_fencing import on_loaded
from wirebroker.coordinator.groups.streams.streams_replay import replay
from wirebroker.coordinator.groups.streams.streams_timers import (
    InitialRebalance,
    TaskRevocation,
    TaskSession,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wirebroker.coordinator.outcome import Moment, Outcome

__all__ = ["ON_TIMER", "on_loaded", "replay"]

ON_TIMER: Final[Mapping[type[Any], Callable[[Any, Any, Moment], Outcome]]] = {
    TaskSession: streams_fencing.on_expiry,
    TaskRevocation: streams_fencing.on_revocation_timeout,
    InitialRebalance: streams_update.on_initial_rebalance,
}
