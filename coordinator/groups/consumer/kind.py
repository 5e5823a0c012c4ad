"""What a shard calls for consumer groups; see shard/kinds.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.coordinator.groups.consumer import consumer_fencing
from wirebroker.coordinator.groups.consumer.consumer_fencing import on_loaded
from wirebroker.coordinator.groups.consumer.consumer_replay import replay
from wirebroker.coordinator.groups.consumer.consumer_timers import (
    ClassicRejoin,
    ClassicSync,
    ConsumerRevocation,
    ConsumerSession,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wirebroker.coordinator.outcome import Moment, Outcome

__all__ = ["ON_TIMER", "on_loaded", "replay"]

ON_TIMER: Final[Mapping[type[Any], Callable[[Any, Any, Moment], Outcome]]] = {
    ConsumerSession: consumer_fencing.on_expiry,
    ClassicRejoin: consumer_fencing.on_expiry,
    ClassicSync: consumer_fencing.on_expiry,
    ConsumerRevocation: consumer_fencing.on_revocation_timeout,
}
