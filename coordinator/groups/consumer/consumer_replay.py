"""The replay of consumer groups' records.

Source: Kafka's GroupMetadataManager.replay.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.group_records import (
    GroupMemberKey,
    GroupRecordKind,
    RegularExpressionKey,
    decode_record_value,
)
from wirebroker.codecs.hot.member_assignment import MemberAssignment, decode_member_assignment
from wirebroker.codecs.hot.topic_partitions import decode_target
from wirebroker.coordinator.groups.consumer.consumer_group import ConsumerGroup
from wirebroker.coordinator.groups.consumer.consumer_member import (
    ClassicUse,
    ConsumerMember,
    MemberState,
)
from wirebroker.coordinator.groups.consumer.subscriptions import ResolvedRegex
from wirebroker.coordinator.groups.group_replay import (
    delete,
    find_or_create,
    replay_target_epoch,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from wirebroker.codecs.group_records import GroupRecordKey
    from wirebroker.coordinator.groups.serving_shard import ServingShard


def replay(
    shard: ServingShard, key: GroupRecordKey, value: bytes | None, known: Any = None
) -> None:
    """Apply a record of a consumer group; `known` is its decoded value, if it is known.

    Raises:
        KafkaError: UNSUPPORTED_VERSION.
        MalformedFrameError: Malformed value.
    """
    group = find_or_create(shard, ConsumerGroup, key.group_id, creates=value is not None)
    if group is None:
        return
    body = decoded(key.kind, value) if known is None and value is not None else known
    if isinstance(key, GroupMemberKey):
        _MEMBER_REPLAYS[key.kind](shard, group, key.member_id, body)
    elif isinstance(key, RegularExpressionKey):
        _replay_regex(group, key.regular_expression, body)
    else:
        _GROUP_REPLAYS[key.kind](shard, group, body)


def decoded(kind: GroupRecordKind, value: bytes) -> Any:
    """Decode a value.

    Raises:
        KafkaError: UNSUPPORTED_VERSION. MalformedFrameError: Malformed value.
    """
    if kind is GroupRecordKind.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT:
        return decode_member_assignment(value) or _assignment(decode_record_value(kind, value))
    if kind is GroupRecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER:
        target = decode_target(value)
        return _target(decode_record_value(kind, value)) if target is None else target
    body = decode_record_value(kind, value)
    if kind is GroupRecordKind.CONSUMER_GROUP_REGULAR_EXPRESSION:
        return ResolvedRegex(frozenset(body.topics), body.version, body.timestamp)
    is_subscription = kind is GroupRecordKind.CONSUMER_GROUP_MEMBER_METADATA
    return _subscription(body) if is_subscription else body


def _subscription(body: Any) -> ConsumerMember:
    classic = body.classic_member_metadata
    protocols = () if classic is None else classic.supported_protocols
    return ConsumerMember(
        "",
        instance_id=body.instance_id,
        rack_id=body.rack_id,
        client_id=body.client_id,
        client_host=body.client_host,
        topic_names=frozenset(body.subscribed_topic_names),
        topic_regex=body.subscribed_topic_regex or "",
        rebalance_timeout_ms=body.rebalance_timeout_ms,
        server_assignor=body.server_assignor,
        classic=None
        if classic is None
        else ClassicUse(
            classic.session_timeout_ms,
            tuple((protocol.name, bytes(protocol.metadata)) for protocol in protocols),
        ),
    )


def _target(body: Any) -> dict[bytes, frozenset[int]]:
    return {topic.topic_id: frozenset(topic.partitions) for topic in body.topic_partitions}


def _assignment(body: Any) -> MemberAssignment:
    epoch: int = body.member_epoch
    return MemberAssignment(
        epoch,
        body.previous_member_epoch,
        body.state,
        _partitions(body.assigned_partitions, epoch),
        _partitions(body.partitions_pending_revocation, epoch),
    )


# -- members -------------------------------------------------------------------------------------


def _replay_subscription(
    shard: ServingShard, group: ConsumerGroup, member_id: str, body: ConsumerMember | None
) -> None:
    """Copy the subscription and identity of the member in a record, nothing else."""
    del shard
    if body is None:
        # Its timers stay: a static member that returns may have the same id as before.
        group.remove(member_id)
        return
    known = group.members.get(member_id) or ConsumerMember(member_id)
    group.put(
        replace(
            known,
            instance_id=body.instance_id,
            rack_id=body.rack_id,
            client_id=body.client_id,
            client_host=body.client_host,
            # One object for equal names: Subscriptions then skips recounting.
            topic_names=group.subscriptions.shared(body.topic_names),
            topic_regex=body.topic_regex,
            rebalance_timeout_ms=body.rebalance_timeout_ms,
            server_assignor=body.server_assignor,
            classic=body.classic,
        )
    )


def _replay_target(shard: ServingShard, group: ConsumerGroup, member_id: str, body: Any) -> None:
    del shard
    if body is None:
        group.target.pop(member_id, None)
        return
    group.target[member_id] = body


def _replay_current(shard: ServingShard, group: ConsumerGroup, member_id: str, body: Any) -> None:
    del shard
    known = group.members.get(member_id)
    if body is None:
        if known is not None:
            group.put(known.as_gone())
        return
    group.put(
        replace(
            known or ConsumerMember(member_id),
            epoch=body.epoch,
            previous_epoch=body.previous_epoch,
            state=_state(body.state),
            assigned=body.assigned,
            revoking=body.revoking,
        )
    )


def _state(number: int) -> MemberState:
    try:
        return MemberState(number)
    except ValueError:
        return MemberState.UNKNOWN


def _partitions(topics: Sequence[Any], epoch: int) -> dict[bytes, dict[int, int]]:
    """Return partitions with their epochs; before Kafka 4.3 records had none for partitions."""
    assigned: dict[bytes, dict[int, int]] = {}
    for topic in topics:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = [max(epoch, 0)] * len(topic.partitions)
        assigned[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return assigned


# -- groups --------------------------------------------------------------------------------------


def _replay_epoch(shard: ServingShard, group: ConsumerGroup, body: Any) -> None:
    if body is None:
        delete(shard, group)
        return
    group.epoch = body.epoch
    group.metadata_hash = body.metadata_hash


def _replay_partition_metadata(shard: ServingShard, group: ConsumerGroup, body: Any) -> None:
    del shard
    group.has_partition_metadata = body is not None


def _replay_regex(group: ConsumerGroup, regex: str, body: ResolvedRegex | None) -> None:
    resolved = group.subscriptions.resolved
    if body is None:
        resolved.pop(regex, None)
        return
    resolved[regex] = body


_MEMBER_REPLAYS: Final[
    Mapping[GroupRecordKind, Callable[[ServingShard, ConsumerGroup, str, Any], None]]
] = {
    GroupRecordKind.CONSUMER_GROUP_MEMBER_METADATA: _replay_subscription,
    GroupRecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER: _replay_target,
    GroupRecordKind.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: _replay_current,
}
_GROUP_REPLAYS: Final[
    Mapping[GroupRecordKind, Callable[[ServingShard, ConsumerGroup, Any], None]]
] = {
    GroupRecordKind.CONSUMER_GROUP_METADATA: _replay_epoch,
    GroupRecordKind.CONSUMER_GROUP_PARTITION_METADATA: _replay_partition_metadata,
    GroupRecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA: replay_target_epoch,
}
