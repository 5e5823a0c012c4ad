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

    from wirebroker.codecs.group_records import GroupRecordKey
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


def on_loaded(shard: ServingShard, now: Moment) -> None:
    """Begin to serve the groups of a shard; see consumer_fencing.on_loaded."""
    consumer_fencing.on_loaded(shard, now)
