"""The replay of share groups' records.

Source: Kafka's GroupMetadataManager.replay.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.group_records import (
    GroupMemberKey,
    GroupRecordKind,
    WholeGroupKey,
    decode_record_value,
)
from wirebroker.codecs.hot.topic_partitions import decode_partitions, decode_target
from wirebroker.coordinator.groups.group_replay import (
    delete,
    find_or_create,
    replay_target_epoch,
)
from wirebroker.coordinator.groups.share.share_group import ShareGroup
from wirebroker.coordinator.groups.share.share_member import ShareGroupMember
from wirebroker.coordinator.groups.share.share_records import (
    CURRENT_HEAD,
    CURRENT_VERSION,
    ShareAssignment,
)
from wirebroker.coordinator.groups.share.share_topics import NamedPartitions, ShareTopics

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from wirebroker.coordinator.groups.serving_shard import ServingShard


def replay(
    shard: ServingShard,
    key: WholeGroupKey | GroupMemberKey,
    value: bytes | None,
    known: Any = None,
) -> None:
    """Apply a record of a share group; `known` is its decoded value, if it is known.

    Raises:
        KafkaError: UNSUPPORTED_VERSION.
        MalformedFrameError: Malformed value.
    """
    group = find_or_create(shard, ShareGroup, key.group_id, creates=value is not None)
    if group is None:
        return
    body = decoded(key.kind, value) if known is None and value is not None else known
    if isinstance(key, GroupMemberKey):
        _MEMBER_REPLAYS[key.kind](group, key.member_id, body)
    else:
        _GROUP_REPLAYS[key.kind](shard, group, body)


def decoded(kind: GroupRecordKind, value: bytes) -> Any:
    """Decode a value.

    Raises:
        KafkaError: UNSUPPORTED_VERSION. MalformedFrameError: Malformed value.
    """
    if kind is GroupRecordKind.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER:
        target = decode_target(value)
        if target is not None:
            return target
    if kind is GroupRecordKind.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT:
        current = _decoded_current(value)
        if current is not None:
            return current
    body = decode_record_value(kind, value)
    convert = _CONVERSIONS.get(kind)
    return body if convert is None else convert(body)


def _decoded_current(value: bytes) -> ShareAssignment | None:
    """Decode the value of a current assignment; None if the generic codec has to."""
    if len(value) < CURRENT_HEAD.size:
        return None
    version, epoch, previous_epoch, _state = CURRENT_HEAD.unpack_from(value)
    assigned = decode_partitions(value, CURRENT_HEAD.size)
    if version != CURRENT_VERSION or assigned is None:
        return None
    return ShareAssignment(epoch, previous_epoch, assigned)


# -- members -------------------------------------------------------------------------------------


def _replay_subscription(group: ShareGroup, member_id: str, body: Any) -> None:
    if body is None:
        group.remove(member_id)
        return
    known = group.members.get(member_id) or ShareGroupMember(member_id)
    names = frozenset(body.subscribed_topic_names)
    group.put(
        replace(
            known,
            rack_id=body.rack_id,
            client_id=body.client_id,
            client_host=body.client_host,
            # Keep the same object if the names are equal: the group then skips recounting.
            topic_names=known.topic_names if known.topic_names == names else names,
        )
    )


def _replay_target(group: ShareGroup, member_id: str, body: Any) -> None:
    group.put_target(member_id, body)


def _replay_current(group: ShareGroup, member_id: str, body: Any) -> None:
    known = group.members.get(member_id)
    if body is None:
        if known is not None:
            group.put(known.as_gone())
        return
    group.put(
        replace(
            known or ShareGroupMember(member_id),
            epoch=body.epoch,
            previous_epoch=body.previous_epoch,
            assigned=body.assigned,
        )
    )


# -- groups --------------------------------------------------------------------------------------


def _replay_epoch(shard: ServingShard, group: ShareGroup, body: Any) -> None:
    if body is None:
        delete(shard, group)
        return
    group.epoch = body.epoch
    group.metadata_hash = body.metadata_hash


def _replay_topics(shard: ServingShard, group: ShareGroup, body: ShareTopics | None) -> None:
    del shard
    group.put_topics(body)


# -- values --------------------------------------------------------------------------------------


def _partitions(topics: Sequence[Any]) -> dict[bytes, frozenset[int]]:
    return {topic.topic_id: frozenset(topic.partitions) for topic in topics}


def _target(body: Any) -> Mapping[bytes, frozenset[int]]:
    return _partitions(body.topic_partitions)


def _current(body: Any) -> ShareAssignment:
    return ShareAssignment(
        body.member_epoch, body.previous_member_epoch, _partitions(body.assigned_partitions)
    )


def _topics(body: Any) -> ShareTopics:
    return ShareTopics(
        _named(body.initializing_topics),
        _named(body.initialized_topics),
        frozenset(topic.topic_id for topic in body.deleting_topics),
    )


def _named(topics: Sequence[Any]) -> dict[bytes, NamedPartitions]:
    return {
        topic.topic_id: NamedPartitions(topic.topic_name, frozenset(topic.partitions))
        for topic in topics
    }


_MEMBER_REPLAYS: Final[Mapping[GroupRecordKind, Callable[[ShareGroup, str, Any], None]]] = {
    GroupRecordKind.SHARE_GROUP_MEMBER_METADATA: _replay_subscription,
    GroupRecordKind.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER: _replay_target,
    GroupRecordKind.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT: _replay_current,
}
_GROUP_REPLAYS: Final[Mapping[GroupRecordKind, Callable[[ServingShard, ShareGroup, Any], None]]] = {
    GroupRecordKind.SHARE_GROUP_METADATA: _replay_epoch,
    GroupRecordKind.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA: replay_target_epoch,
    GroupRecordKind.SHARE_GROUP_STATE_PARTITION_METADATA: _replay_topics,
}
_CONVERSIONS: Final[Mapping[GroupRecordKind, Callable[[Any], Any]]] = {
    GroupRecordKind.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER: _target,
    GroupRecordKind.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT: _current,
    GroupRecordKind.SHARE_GROUP_STATE_PARTITION_METADATA: _topics,
}
