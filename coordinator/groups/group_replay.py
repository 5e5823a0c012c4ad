"""The part of the replay of records that all kinds of modern groups have in common.

Any record of a group creates it, whichever others compaction has removed. It replaces a group of
another kind, such as the simple group that a commit creates.

Source: Kafka's GroupMetadataManager.replay, getOrMaybeCreatePersistedConsumerGroup,
getOrMaybeCreatePersistedShareGroup and getOrMaybeCreatePersistedStreamsGroup.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from wirebroker.coordinator.groups.modern_group import ModernGroup
    from wirebroker.coordinator.groups.serving_shard import ServingShard

GroupT = TypeVar("GroupT", bound="ModernGroup[Any]")

_NO_EPOCH: Final = -1


def find_or_create(
    shard: ServingShard, kind: type[GroupT], group_id: str, *, creates: bool
) -> GroupT | None:
    """Return the group of a record; None if there is none and a tombstone does not create it."""
    group = shard.groups.get(group_id)
    if isinstance(group, kind):
        return group
    if not creates:
        # A tombstone for a group that is gone, or is of another kind by now.
        return None
    if group is not None:
        # The later record counts.
        group.cancel_timers(shard.timers)
    created = kind(group_id)
    as_any_group: Any = created
    shard.groups[group_id] = as_any_group
    return created


def delete(shard: ServingShard, group: ModernGroup[Any]) -> None:
    """Apply the tombstone of a group."""
    group.cancel_timers(shard.timers)
    del shard.groups[group.group_id]


def replay_target_epoch(shard: ServingShard, group: ModernGroup[Any], body: Any) -> None:
    """Apply the record of the epoch of a target assignment."""
    del shard
    group.assignment_epoch = _NO_EPOCH if body is None else body.assignment_epoch
    group.assignment_ms = 0 if body is None else body.assignment_timestamp
