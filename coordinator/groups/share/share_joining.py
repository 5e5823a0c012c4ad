"""The group and the member of a request, found or made.

Source: Kafka's GroupMetadataManager.getOrMaybeCreateShareGroup,
getOrMaybeSubscribeShareGroupMember, throwIfShareGroupMemberEpochIsInvalid.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.consumer.consumer_member import JOIN_EPOCH
from wirebroker.coordinator.groups.share.share_group import ShareGroup
from wirebroker.coordinator.groups.share.share_member import ShareGroupMember

if TYPE_CHECKING:
    from wirebroker.coordinator.groups.serving_shard import ServingShard
    from wirebroker.coordinator.groups.share.share_request import ShareHeartbeat


def find_or_create(shard: ServingShard, group_id: str, *, creates: bool) -> ShareGroup:
    """Return a group; `creates`: also a new one.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND.
    """
    if group_id in shard.groups:
        return existing_group(shard, group_id)
    if not creates:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Share group {group_id} not found.")
    return ShareGroup(group_id)


def existing_group(shard: ServingShard, group_id: str) -> ShareGroup:
    """Return a group.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND.
    """
    group = shard.groups.get(group_id)
    if isinstance(group, ShareGroup):
        return group
    reason = "not found" if group is None else "is not a share group"
    raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {reason}.")


def find_or_join(shard: ServingShard, group: ShareGroup, body: Any) -> ShareGroupMember:
    """Return the member, which may be new.

    Raises:
        KafkaError: GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH.
    """
    limit = shard.settings.share_max_size
    known = group.members.get(body.member_id)
    if known is None and len(group.members) >= limit:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The share group has reached its maximum capacity of {limit} members.",
        )
    if known is None and body.member_epoch == JOIN_EPOCH:
        return ShareGroupMember(body.member_id)
    member = group.member(body.member_id)
    _check_epoch(member, body.member_epoch)
    return member


def _check_epoch(member: ShareGroupMember, epoch: int) -> None:
    """Refuse a wrong epoch; the previous one is accepted as a retry after a lost response."""
    if epoch in {JOIN_EPOCH, member.epoch}:
        return
    is_greater = epoch > member.epoch
    if not is_greater and epoch == member.previous_epoch:
        return
    comparison, addition = ("greater", "") if is_greater else ("smaller", _mismatch(member))
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The share group member has a {comparison} member epoch ({epoch}) than the one known by "
        f"the group coordinator ({member.epoch}){addition}. The member must abandon all its "
        "partitions and rejoin.",
    )


def _mismatch(member: ShareGroupMember) -> str:
    return f", and it does not match the previous member epoch ({member.previous_epoch})"


def updated(member: ShareGroupMember, request: ShareHeartbeat) -> ShareGroupMember:
    """Return the member with what a request states; the same object if nothing differs."""
    body = request.body
    names = body.subscribed_topic_names
    changes: dict[str, Any] = {
        "rack_id": body.rack_id,
        "topic_names": None if names is None else frozenset(names),
        "client_id": request.client_id,
        "client_host": request.client_host,
    }
    different = {
        name: value
        for name, value in changes.items()
        if value is not None and value != getattr(member, name)
    }
    return replace(member, **different) if different else member
