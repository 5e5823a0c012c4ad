"""The group and the member of a request, found or made.

Source: Kafka's GroupMetadataManager.getOrMaybeCreateConsumerGroup,
getOrMaybeSubscribeDynamicConsumerGroupMember and getOrMaybeSubscribeStaticConsumerGroupMember.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence  # noqa: TC003 - compiled tuples look for them
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from wirebroker.base.clock import in_one_go
from wirebroker.codecs.coordinator_records import (
    CoordinatorRecord,  # noqa: TC001 - compiled tuples look for it
)
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.classic.classic_group import ClassicGroup
from wirebroker.coordinator.groups.consumer.consumer_group import ConsumerGroup
from wirebroker.coordinator.groups.consumer.consumer_member import (
    JOIN_EPOCH,
    LEAVE_STATIC_EPOCH,
    ConsumerMember,
)
from wirebroker.coordinator.groups.consumer.consumer_records import (
    current_record_in_steps,
    member_tombstones,
    subscription_record,
    target_record_in_steps,
)
from wirebroker.coordinator.groups.consumer.heartbeat_request import requested_names
from wirebroker.coordinator.groups.consumer.upgrade import upgrade

if TYPE_CHECKING:
    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.groups.consumer.heartbeat_request import ConsumerHeartbeat
    from wirebroker.coordinator.groups.serving_shard import ServingShard
    from wirebroker.coordinator.outcome import Moment, Outcome


def find_or_create(shard: ServingShard, body: Any, outcome: Outcome, now: Moment) -> ConsumerGroup:
    """Return a group; the first member makes one, or upgrades a classic group.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND, GROUP_MAX_SIZE_REACHED.
    """
    group_id: str = body.group_id
    group = shard.groups.get(group_id)
    is_joining = body.member_epoch == JOIN_EPOCH
    if group is None and not is_joining:
        raise _not_found(f"Consumer group {group_id} not found.")
    if group is None:
        return ConsumerGroup(group_id)
    if isinstance(group, ConsumerGroup):
        check_size(shard, group, body.member_id, body.instance_id)
        return group
    if isinstance(group, ClassicGroup) and is_joining:
        if not group.is_empty:
            upgraded = upgrade(shard, group, outcome, now)
            check_size(shard, upgraded, body.member_id, body.instance_id)
            return upgraded
        outcome.records += group.tombstones()
        return ConsumerGroup(group_id)
    raise _not_found(f"Group {group_id} is not a consumer group.")


def check_size(
    shard: ServingShard, group: ConsumerGroup, member_id: str, instance_id: str | None
) -> None:
    """Refuse a new member of a full group.

    Raises:
        KafkaError: GROUP_MAX_SIZE_REACHED.
    """
    limit = shard.settings.consumer_max_size
    is_known = member_id in group.members or instance_id in group.static_members
    if len(group.members) >= limit and not is_known:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {limit} members.",
        )


def _not_found(message: str) -> KafkaError:
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, message)


def existing_group(shard: ServingShard, group_id: str) -> ConsumerGroup:
    """Return a group.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND.
    """
    group = shard.groups.get(group_id)
    if group is None:
        raise _not_found(f"Group {group_id} not found.")
    if not isinstance(group, ConsumerGroup):
        raise _not_found(f"Group {group_id} is not a consumer group.")
    return group


class StaticReturn(NamedTuple):
    """A static member that replaces its predecessor, and the records of this replacement.

    Attributes:
        existing: The predecessor.
        target: Its target assignment.
    """

    existing: ConsumerMember
    target: Mapping[bytes, frozenset[int]]
    member: ConsumerMember
    records: Sequence[CoordinatorRecord]


def find_or_join(
    shard: ServingShard,
    group: ConsumerGroup,
    body: Any,
    outcome: Outcome,
    prepared: StaticReturn | None = None,
) -> ConsumerMember:
    """Return the member, which may be new; a static member replaces its predecessor.

    `prepared` is this replacement, if its records were encoded before.

    Raises:
        KafkaError: UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, FENCED_INSTANCE_ID or
            UNRELEASED_INSTANCE_ID.
    """
    # Before version 1, the coordinator chose the member id.
    member_id: str = body.member_id or shard.new_uuid()
    is_joining = body.member_epoch == JOIN_EPOCH
    if body.instance_id is not None:
        existing = group.static_member(body.instance_id)
        if is_joining and existing is not None:
            return _return(group, body, existing, member_id, outcome, prepared)
        return _find_or_join_static(group, body, member_id, existing, is_joining=is_joining)
    if is_joining and member_id not in group.members:
        return ConsumerMember(member_id)
    member = group.member(member_id)
    _check_epoch(member, body.member_epoch, body.topic_partitions)
    return member


def _find_or_join_static(
    group: ConsumerGroup,
    body: Any,
    member_id: str,
    existing: ConsumerMember | None,
    *,
    is_joining: bool,
) -> ConsumerMember:
    if is_joining:
        return group.members.get(member_id) or ConsumerMember(member_id)
    checked = checked_static_member(existing, body.instance_id, member_id)
    _check_epoch(checked, body.member_epoch, body.topic_partitions)
    return checked


def _return(  # noqa: PLR0917 - of one caller
    group: ConsumerGroup,
    body: Any,
    existing: ConsumerMember,
    member_id: str,
    outcome: Outcome,
    prepared: StaticReturn | None,
) -> ConsumerMember:
    """Return the successor of a static member, and add the records of the replacement."""
    if existing.classic is None and existing.epoch != LEAVE_STATIC_EPOCH:
        raise KafkaError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {body.instance_id} cannot join the group "
            f"because the instance id is owned by {existing.member_id} member.",
        )
    if (
        prepared is not None
        and prepared.member.member_id == member_id
        and prepared.existing is existing
        and prepared.target is group.target_of(existing)
    ):
        outcome.records += prepared.records
        return prepared.member
    return take_over(group, existing, member_id, outcome)


def take_over(
    group: ConsumerGroup, existing: ConsumerMember, member_id: str, outcome: Outcome
) -> ConsumerMember:
    """Return a static member's successor, and add the records of the replacement."""
    returned = in_one_go(return_in_steps(group, existing, member_id))
    outcome.records += returned.records
    return returned.member


def successor(existing: ConsumerMember, member_id: str) -> ConsumerMember:
    """Return the successor of a static member."""
    return replace(existing, member_id=member_id, epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH)


def return_in_steps(
    group: ConsumerGroup, existing: ConsumerMember, member_id: str
) -> Steps[StaticReturn]:
    """Return a static member's successor with the records of the replacement."""
    member = successor(existing, member_id)
    group_id, target = group.group_id, group.target_of(existing)
    names = yield from requested_names(existing.topic_names)
    records = [
        *member_tombstones(group_id, existing.member_id),
        subscription_record(group_id, member, names),
        (yield from target_record_in_steps(group_id, member_id, target)),
        (yield from current_record_in_steps(group_id, member)),
    ]
    return StaticReturn(existing, target, member, records)


def checked_static_member(
    member: ConsumerMember | None, instance_id: str, member_id: str, *, fences: bool = True
) -> ConsumerMember:
    """Return the member with an instance id.

    Raises:
        KafkaError: UNKNOWN_MEMBER_ID; with `fences` also FENCED_INSTANCE_ID if it has another
            member id.
    """
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if fences and member.member_id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{member.member_id}.",
        )
    return member


def _check_epoch(member: ConsumerMember, epoch: int, owned: Sequence[Any] | None) -> None:
    """Refuse a wrong epoch; the previous one is accepted as a retry after a lost response.

    Raises:
        KafkaError: FENCED_MEMBER_EPOCH.
    """
    if epoch in {JOIN_EPOCH, member.epoch}:
        return
    is_repeated = epoch == member.previous_epoch and _has_all(member, owned)
    if epoch < member.epoch and is_repeated:
        return
    comparison = "greater" if epoch > member.epoch else "smaller"
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {comparison} member epoch ({epoch}) than the one known "
        f"by the group coordinator ({member.epoch}). The member must abandon all its partitions "
        "and rejoin.",
    )


def _has_all(member: ConsumerMember, owned: Sequence[Any] | None) -> bool:
    """Return whether all partitions that the member reports are assigned to it."""
    # A member may report 200,000 partitions.
    return owned is not None and all(
        member.assigned.get(topic.topic_id, {}).keys() >= set(topic.partitions) for topic in owned
    )


def updated(member: ConsumerMember, request: ConsumerHeartbeat) -> ConsumerMember:
    """Return the member with what a request states; the same object if nothing differs."""
    body, requested = request.body, request.requested
    names = body.subscribed_topic_names if requested is None else requested.names
    changes: dict[str, Any] = {
        "instance_id": body.instance_id,
        "rack_id": body.rack_id,
        "rebalance_timeout_ms": None
        if body.rebalance_timeout_ms == -1
        else body.rebalance_timeout_ms,
        "server_assignor": body.server_assignor,
        "topic_names": None if names is None else frozenset(names),
        "topic_regex": request.regex,
        "client_id": request.client_id,
        "client_host": request.client_host,
    }
    different = {
        name: value
        for name, value in changes.items()
        if value is not None and value != getattr(member, name)
    }
    if member.classic is not None:
        different["classic"] = None
    return replace(member, **different) if different else member
