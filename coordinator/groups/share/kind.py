"""What a shard calls for share groups; see shard/kinds.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.coordinator.groups.share import share_fencing, share_replay
from wirebroker.coordinator.groups.share.share_timers import ShareSessionExpiry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wirebroker.base.clock import Steps
    from wirebroker.codecs.group_records import GroupRecordKind
    from wirebroker.coordinator.groups.serving_shard import ServingShard
    from wirebroker.coordinator.outcome import Moment, Outcome

ON_TIMER: Final[Mapping[type[Any], Callable[[Any, Any, Moment], Outcome]]] = {
    ShareSessionExpiry: share_fencing.on_expiry,
}


def replay(shard: ServingShard, key: Any, value: bytes | None, known: Any = None) -> None:
    """Apply a record; see share_replay.replay."""
    share_replay.replay(shard, key, value, known)


def decoded(kind: GroupRecordKind, value: bytes) -> Any:
    """Decode the value of a record; see share_replay.decoded."""
    return share_replay.decoded(kind, value)


def start_timers(shard: ServingShard, now: Moment) -> Steps[None]:
    """Start the timers of members after a load; see share_fencing.start_timers."""
    return share_fencing.start_timers(shard, now)
