"""ShareGroupDescribe: a group with its members and their assignments.

Source: Kafka's ShareGroup.asDescribedGroup, ShareGroupMember.asShareGroupDescribeMember.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.coordinator.groups.assignors.in_steps import sorted_in_steps
from wirebroker.coordinator.groups.described_topics import described_in_steps
from wirebroker.coordinator.groups.share.share_joining import existing_group

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.groups.serving_shard import ServingShard
    from wirebroker.coordinator.groups.share.share_member import ShareGroupMember


def describe(shard: ServingShard, group_id: str) -> Steps[dict[str, Any]]:
    """Return the steps that make a group of a response, as it is now.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND.
    """
    group = existing_group(shard, group_id)
    head = {
        "group_id": group_id,
        "group_state": group.state,
        "group_epoch": group.epoch,
        "assignment_epoch": group.assignment_epoch,
        "assignor_name": shard.settings.share_assignor,
    }
    # The newest member first.
    members = [member for _, member in reversed(group.members.items())]
    return _with_members(head, members, shard.image)


def _with_members(
    head: dict[str, Any], members: Sequence[ShareGroupMember], image: ClusterImage
) -> Steps[dict[str, Any]]:
    described: list[dict[str, Any]] = []
    for member in members:
        described.append((yield from _member(member, image)))
        yield
    return {**head, "members": described}


def _member(member: ShareGroupMember, image: ClusterImage) -> Steps[dict[str, Any]]:
    names = yield from sorted_in_steps(member.topic_names, str)
    return {
        "member_id": member.member_id,
        "rack_id": member.rack_id,
        "member_epoch": member.epoch,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "subscribed_topic_names": names,
        "assignment": (yield from described_in_steps(member.assigned, image)),
    }
