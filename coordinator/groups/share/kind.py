"""What a shard calls for share groups; see shard/kinds.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.coordinator.groups.share import share_fencing
from wirebroker.coordinator.groups.share.share_fencing import on_loaded
from wirebroker.coordinator.groups.share.share_replay import replay
from wirebroker.coordinator.groups.share.share_timers import ShareSessionExpiry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wirebroker.coordinator.outcome import Moment, Outcome

__all__ = ["ON_TIMER", "on_loaded", "replay"]

ON_TIMER: Final[Mapping[type[Any], Callable[[Any, Any, Moment], Outcome]]] = {
    ShareSessionExpiry: share_fencing.on_expiry,
}
