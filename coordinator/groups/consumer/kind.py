"""What a shard calls for consumer groups; see shard/kinds.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.coordinator.groups.consumer import consumer_fencing, consumer_replay
from wirebroker.coordinator.groups.consumer.consumer_timers import (
    ClassicRejoin,
    ClassicSync,
    ConsumerRevocation,
    ConsumerSession,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wirebroker.base.clock import Steps
    from wirebroker.codecs.group_records import GroupRecordKey, GroupRecordKind
    from wirebroker.coordinator.groups.serving_shard import ServingShard
    from wirebroker.coordinator.outcome import Moment, Outcome

ON_TIMER: Final[Mapping[type[Any], Callable[[Any, Any, Moment], Outcome]]] = {
    ConsumerSession: consumer_fencing.on_expiry,
    ClassicRejoin: consumer_fencing.on_expiry,
    ClassicSync: consumer_fencing.on_expiry,
    ConsumerRevocation: consumer_fencing.on_revocation_timeout,
}


def replay(
    shard: ServingShard, key: GroupRecordKey, value: bytes | None, known: Any = None
) -> None:
    """Apply a record; see consumer_replay.replay."""
    consumer_replay.replay(shard, key, value, known)


def decoded(kind: GroupRecordKind, value: bytes) -> Any:
    """Decode the value of a record; see consumer_replay.decoded."""
    return consumer_replay.decoded(kind, value)


def start_timers(shard: ServingShard, now: Moment) -> Steps[None]:
    """Start the timers of members after a load; see consumer_fencing.start_timers."""
    return consumer_fencing.start_timers(shard, now)
