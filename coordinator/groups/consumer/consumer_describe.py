"""ConsumerGroupDescribe: a group with its members and their assignments.

Source: Kafka's ConsumerGroup.asDescribedGroup, ConsumerGroupMember.asConsumerGroupDescribeMember.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.coordinator.groups.assignors.assignor import WORK_PER_STEP
from wirebroker.coordinator.groups.assignors.in_steps import sorted_in_steps
from wirebroker.coordinator.groups.consumer.consumer_group import NO_TARGET
from wirebroker.coordinator.groups.consumer.joining import existing_group
from wirebroker.coordinator.groups.described_topics import described_in_steps

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.groups.consumer.consumer_member import ConsumerMember
    from wirebroker.coordinator.groups.serving_shard import ServingShard

_CLASSIC: Final = 0
_CONSUMER: Final = 1


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
        "assignor_name": group.preferred_assignor(shard.settings.consumer_assignors[0]),
    }
    members = [
        (member, group.target.get(member_id, NO_TARGET))
        # The newest member first.
        for member_id, member in reversed(group.members.items())
    ]
    return _with_members(head, members, shard.image)


def _with_members(
    head: dict[str, Any],
    members: Sequence[tuple[ConsumerMember, Mapping[bytes, frozenset[int]]]],
    image: ClusterImage,
) -> Steps[dict[str, Any]]:
    described: list[dict[str, Any]] = []
    for member, target in members:
        described.append((yield from _member(member, target, image)))
        yield
    return {**head, "members": described}


def _member(
    member: ConsumerMember, target: Mapping[bytes, frozenset[int]], image: ClusterImage
) -> Steps[dict[str, Any]]:
    names = yield from sorted_in_steps(member.topic_names, str)
    current = yield from _current(member)
    return {
        "member_id": member.member_id,
        "instance_id": member.instance_id,
        "rack_id": member.rack_id,
        "member_epoch": member.epoch,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "subscribed_topic_names": names,
        "subscribed_topic_regex": member.topic_regex,
        "assignment": (yield from described_in_steps(current, image)),
        "target_assignment": (yield from described_in_steps(target, image)),
        "member_type": _CONSUMER if member.classic is None else _CLASSIC,
    }


def _current(member: ConsumerMember) -> Steps[dict[bytes, list[int]]]:
    """Return a member's partitions: those that it may read and those that it must still give up."""
    current: dict[bytes, list[int]] = {}
    work = 0
    for partitions in (member.assigned, member.revoking):
        for topic_id, epochs in partitions.items():
            current.setdefault(topic_id, []).extend(epochs)
            work += 1 + len(epochs)
            if work >= WORK_PER_STEP:
                work = 0
                yield
    return current
