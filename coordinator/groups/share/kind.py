"""What a shard calls for share groups; see shard/kinds.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.coordinator.groups.share import share_fencing, share_replay
from wirebroker.coordinator.groups.share.share_timers import ShareSessionExpiry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wirebroker.coordinator.groups.serving_shard import ServingShard
    from wirebroker.coordinator.outcome import Moment, Outcome

ON_TIMER: Final[Mapping[type[Any], Callable[[Any, Any, Moment], Outcome]]] = {
    ShareSessionExpiry: share_fencing.on_expiry,
}


def replay(shard: ServingShard, key: Any, value: bytes | None, known: Any = None) -> None:
    """Apply a record; see share_replay.replay."""
    share_replay.replay(shard, key, value, known)


def on_loaded(shard: ServingShard, now: Moment) -> None:
    """Begin to serve the groups of a shard; see share_fencing.on_loaded."""
    share_fencing.on_loaded(shard, now)
