"""The group and the member of a request, found or made.

Source: Kafka's GroupMetadataManager.getOrCreateStreamsGroup,
getOrMaybeCreateDynamicStreamsGroupMember and getOrMaybeCreateStaticStreamsGroupMember.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.classic.classic_group import ClassicGroup
from wirebroker.coordinator.groups.streams.streams_group import StreamsGroup
from wirebroker.coordinator.groups.streams.streams_member import (
    JOIN_EPOCH,
    LEAVE_STATIC_EPOCH,
    StreamsMember,
    UserEndpoint,
)
from wirebroker.coordinator.groups.streams.streams_records import (
    current_record,
    member_record,
    member_tombstones,
    target_record,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from wirebroker.coordinator.groups.serving_shard import ServingShard
    from wirebroker.coordinator.groups.streams.streams_request import StreamsHeartbeat
    from wirebroker.coordinator.outcome import Outcome

_NO_TIMEOUT = -1


def find_or_create(shard: ServingShard, body: Any, outcome: Outcome) -> StreamsGroup:
    """Return a group; the first member makes one, also in place of an empty classic group.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND, GROUP_MAX_SIZE_REACHED.
    """
    group_id: str = body.group_id
    group = shard.groups.get(group_id)
    is_joining = body.member_epoch == JOIN_EPOCH
    if group is None and not is_joining:
        raise _not_found(f"Streams group {group_id} not found.")
    if is_joining and isinstance(group, ClassicGroup) and group.is_empty:
        outcome.records += group.tombstones()
        group = None
    if group is None:
        group = StreamsGroup(group_id)
    if not isinstance(group, StreamsGroup):
        raise _not_found(f"Group {group_id} is not a streams group.")
    if is_joining:
        _check_size(shard, group, body)
    return group


def _check_size(shard: ServingShard, group: StreamsGroup, body: Any) -> None:
    limit = shard.settings.streams.max_size
    is_known = body.member_id in group.members or body.instance_id in group.static_members
    if len(group.members) >= limit and not is_known:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The streams group has reached its maximum capacity of {limit} members.",
        )


def _not_found(message: str) -> KafkaError:
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, message)


def existing_group(shard: ServingShard, group_id: str) -> StreamsGroup:
    """Return a group.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND.
    """
    group = shard.groups.get(group_id)
    if group is None:
        raise _not_found(f"Group {group_id} not found.")
    if not isinstance(group, StreamsGroup):
        raise _not_found(f"Group {group_id} is not a streams group.")
    return group


def find_or_join(group: StreamsGroup, body: Any, outcome: Outcome) -> StreamsMember:
    """Return the member, which may be new; a static one takes the place of its predecessor.

    Raises:
        KafkaError: UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, FENCED_INSTANCE_ID or
            UNRELEASED_INSTANCE_ID.
    """
    member_id: str = body.member_id
    is_joining = body.member_epoch == JOIN_EPOCH
    existing = group.static_member(body.instance_id)
    if is_joining and existing is None:
        return group.members.get(member_id) or StreamsMember(member_id)
    if body.instance_id is None:
        member = group.member(member_id)
        _check_epoch(member, body)
        return member
    if not is_joining:
        checked = checked_static_member(existing, body.instance_id, member_id)
        _check_epoch(checked, body)
        return checked
    assert existing is not None, "its instance id is known"
    if existing.epoch != LEAVE_STATIC_EPOCH:
        raise KafkaError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {body.instance_id} cannot join the group "
            f"because the instance id is owned by {existing.member_id} member.",
        )
    return _take_over(group, existing, member_id, outcome)


def _take_over(
    group: StreamsGroup, existing: StreamsMember, member_id: str, outcome: Outcome
) -> StreamsMember:
    """Return a member in the place of a static one, and add the records of the change."""
    member = replace(existing, member_id=member_id, epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH)
    outcome.records += [
        *member_tombstones(group.group_id, existing.member_id),
        member_record(group.group_id, member),
        target_record(group.group_id, member_id, group.target_of(existing)),
        current_record(group.group_id, member),
    ]
    return member


def checked_static_member(
    member: StreamsMember | None, instance_id: str, member_id: str
) -> StreamsMember:
    """Return the member with an instance id.

    Raises:
        KafkaError: UNKNOWN_MEMBER_ID; FENCED_INSTANCE_ID if it has another member id.
    """
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{member.member_id}.",
        )
    return member


def _check_epoch(member: StreamsMember, body: Any) -> None:
    """Refuse a wrong epoch; the previous one is accepted as a retry after a lost response.

    Raises:
        KafkaError: FENCED_MEMBER_EPOCH.
    """
    epoch: int = body.member_epoch
    if epoch in {JOIN_EPOCH, member.epoch}:
        return
    if epoch < member.epoch and epoch == member.previous_epoch and _has_all(member, body):
        return
    comparison = "greater" if epoch > member.epoch else "smaller"
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The streams group member has a {comparison} member epoch ({epoch}) than the one known by "
        f"the group coordinator ({member.epoch}). The member must abandon all its partitions and "
        "rejoin.",
    )


def _has_all(member: StreamsMember, body: Any) -> bool:
    """Return whether all tasks that the member reports are assigned to it."""
    assigned = member.assigned
    return (
        _are_among(body.active_tasks, assigned.active)
        and _are_among(body.standby_tasks, assigned.standby)
        and _are_among(body.warmup_tasks, assigned.warmup)
    )


def _are_among(owned: Iterable[Any] | None, tasks: Mapping[str, Collection[int]]) -> bool:
    return owned is not None and all(
        set(entry.partitions).issubset(tasks.get(entry.subtopology_id, ())) for entry in owned
    )


def updated(member: StreamsMember, request: StreamsHeartbeat) -> StreamsMember:
    """Return the member with what a request states; the same object if nothing differs.

    Raises:
        KafkaError: UNKNOWN_SERVER_ERROR: a tag is there twice, as in Kafka.
    """
    body = request.body
    timeout_ms = body.rebalance_timeout_ms
    changes: dict[str, Any] = {
        "instance_id": body.instance_id,
        "rack_id": body.rack_id,
        "rebalance_timeout_ms": None if timeout_ms == _NO_TIMEOUT else timeout_ms,
        "topology_epoch": None if body.topology is None else body.topology.epoch,
        "client_id": request.client_id,
        "client_host": request.client_host,
        "process_id": body.process_id,
        "client_tags": None if body.client_tags is None else _tags(body.client_tags),
    }
    different = {
        name: value
        for name, value in changes.items()
        if value is not None and value != getattr(member, name)
    }
    endpoint = _endpoint(body)
    # A member that joins without an endpoint has none.
    is_stated = endpoint is not None or body.member_epoch == JOIN_EPOCH
    if is_stated and endpoint != member.user_endpoint:
        different["user_endpoint"] = endpoint
    return replace(member, **different) if different else member


def _endpoint(body: Any) -> UserEndpoint | None:
    endpoint = body.user_endpoint
    return None if endpoint is None else UserEndpoint(endpoint.host, endpoint.port)


def _tags(entries: Collection[Any]) -> dict[str, str]:
    tags = {tag.key: tag.value for tag in entries}
    if len(tags) < len(entries):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "A client tag is there twice.")
    return tags


def raises_epoch(before: StreamsMember, after: StreamsMember) -> bool:
    """Return whether a member's change needs a new assignment.

    A static member's address and timeouts do not, so that it can return without a rebalance.
    """
    if after.instance_id is None:
        return after != before
    return (
        after.topology_epoch != before.topology_epoch
        or after.rack_id != before.rack_id
        or after.client_tags != before.client_tags
        or after.process_id != before.process_id
    )
