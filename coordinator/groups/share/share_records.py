"""The records of share groups.

Lists are sorted, so that equal states give equal bytes. Kafka sorts only some of them.

Source: Kafka's GroupCoordinatorRecordHelpers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.group_records import (
    GroupMemberKey,
    GroupRecordKind,
    WholeGroupKey,
    group_record,
    group_record_tombstone,
)
from wirebroker.coordinator.groups.share.share_topics import names_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.groups.share.share_member import ShareGroupMember
    from wirebroker.coordinator.groups.share.share_topics import ShareTopics, TopicPartitions

# Kafka's MemberState.STABLE, the only state of members.
_STABLE: Final = 0
# The records of a member, in the order in which replay needs their tombstones.
_OF_MEMBER: Final = (
    GroupRecordKind.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT,
    GroupRecordKind.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER,
    GroupRecordKind.SHARE_GROUP_MEMBER_METADATA,
)


def subscription_record(group_id: str, member: ShareGroupMember) -> CoordinatorRecord:
    """Return the record of what a member has joined with."""
    return group_record(
        GroupMemberKey(GroupRecordKind.SHARE_GROUP_MEMBER_METADATA, group_id, member.member_id),
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
    )


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    """Return the record of a group's epoch."""
    key = WholeGroupKey(GroupRecordKind.SHARE_GROUP_METADATA, group_id)
    return group_record(key, epoch=epoch, metadata_hash=metadata_hash)


def target_record(
    group_id: str, member_id: str, partitions: Mapping[bytes, Collection[int]]
) -> CoordinatorRecord:
    """Return the record of a member's target assignment."""
    kind = GroupRecordKind.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER
    return group_record(
        GroupMemberKey(kind, group_id, member_id), topic_partitions=_by_topic(partitions)
    )


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    """Return the record of the epoch of a target assignment, and the time of its computation."""
    key = WholeGroupKey(GroupRecordKind.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA, group_id)
    return group_record(key, assignment_epoch=epoch, assignment_timestamp=timestamp_ms)


def current_record(group_id: str, member: ShareGroupMember) -> CoordinatorRecord:
    """Return the record of a member's epochs and partitions."""
    kind = GroupRecordKind.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT
    return group_record(
        GroupMemberKey(kind, group_id, member.member_id),
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=_STABLE,
        assigned_partitions=_by_topic(member.assigned),
    )


def _by_topic(partitions: Mapping[bytes, Collection[int]]) -> list[dict[str, Any]]:
    return [
        {"topic_id": topic_id, "partitions": sorted(indexes)}
        for topic_id, indexes in sorted(partitions.items())
    ]


def topics_record(group_id: str, topics: ShareTopics, image: ClusterImage) -> CoordinatorRecord:
    """Return the record of the topics with share state."""
    key = WholeGroupKey(GroupRecordKind.SHARE_GROUP_STATE_PARTITION_METADATA, group_id)
    deleting = names_of(topics.deleting, image)
    return group_record(
        key,
        initializing_topics=_with_names(topics.initializing),
        initialized_topics=_with_names(topics.initialized),
        deleting_topics=[
            {"topic_id": topic_id, "topic_name": name}
            for topic_id, name in sorted(deleting.items())
        ],
    )


def _with_names(topics: TopicPartitions) -> list[dict[str, Any]]:
    return [
        {"topic_id": topic_id, "topic_name": topic.name, "partitions": sorted(topic.partitions)}
        for topic_id, topic in sorted(topics.items())
    ]


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """Return the records that delete a member."""
    return [
        group_record_tombstone(GroupMemberKey(kind, group_id, member_id)) for kind in _OF_MEMBER
    ]


def group_tombstones(group_id: str) -> list[CoordinatorRecord]:
    """Return the records that delete a group without members, the group's own last."""
    return [
        group_record_tombstone(WholeGroupKey(kind, group_id))
        for kind in (
            GroupRecordKind.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA,
            GroupRecordKind.SHARE_GROUP_STATE_PARTITION_METADATA,
            GroupRecordKind.SHARE_GROUP_METADATA,
        )
    ]
