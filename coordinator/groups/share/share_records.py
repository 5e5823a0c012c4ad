"""The records of share groups.

Lists are sorted, so that equal states give equal bytes. Kafka sorts only some of them.

Source: Kafka's GroupCoordinatorRecordHelpers.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.base.clock import in_one_go
from wirebroker.codecs.group_records import (
    GroupMemberKey,
    GroupRecordKind,
    KnownRecord,
    WholeGroupKey,
    group_record,
    group_record_tombstone,
)
from wirebroker.codecs.hot.share_state_topics import encode_state_topics
from wirebroker.codecs.hot.topic_partitions import TARGET_HEAD, encoded_in_steps
from wirebroker.coordinator.groups.assignors.in_steps import ordered_in_steps
from wirebroker.coordinator.groups.share.share_topics import names_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.base.clock import Steps
    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.groups.share.share_member import ShareGroupMember
    from wirebroker.coordinator.groups.share.share_topics import ShareTopics

# Of the value of a member's current assignment: version, epoch, previous epoch, state.
CURRENT_HEAD: Final = Struct(">hiib")
CURRENT_VERSION: Final = 0
# Kafka's MemberState.STABLE, the only state of members.
_STABLE: Final = 0
# The records of a member, in the order in which replay needs their tombstones.
_OF_MEMBER: Final = (
    GroupRecordKind.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT,
    GroupRecordKind.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER,
    GroupRecordKind.SHARE_GROUP_MEMBER_METADATA,
)


class ShareAssignment(NamedTuple):
    """The current assignment of a member: its epochs, and its partitions by topic id."""

    epoch: int
    previous_epoch: int
    assigned: Mapping[bytes, frozenset[int]]


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


def target_record_in_steps(
    group_id: str, member_id: str, partitions: Mapping[bytes, frozenset[int]]
) -> Steps[CoordinatorRecord]:
    """Return the record of a member's target assignment."""
    kind = GroupRecordKind.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER
    body = yield from ordered_in_steps(partitions)
    value = yield from encoded_in_steps(TARGET_HEAD, body)
    return KnownRecord.of(GroupMemberKey(kind, group_id, member_id), value, body)


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    """Return the record of the epoch of a target assignment, and the time of its computation."""
    key = WholeGroupKey(GroupRecordKind.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA, group_id)
    return group_record(key, assignment_epoch=epoch, assignment_timestamp=timestamp_ms)


def current_record(group_id: str, member: ShareGroupMember) -> CoordinatorRecord:
    """Return the record of a member's epochs and partitions."""
    return in_one_go(current_record_in_steps(group_id, member))


def current_record_in_steps(group_id: str, member: ShareGroupMember) -> Steps[CoordinatorRecord]:
    """Do the same in steps."""
    kind = GroupRecordKind.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT
    body = ShareAssignment(
        member.epoch, member.previous_epoch, (yield from ordered_in_steps(member.assigned))
    )
    head = CURRENT_HEAD.pack(CURRENT_VERSION, body.epoch, body.previous_epoch, _STABLE)
    value = yield from encoded_in_steps(head, body.assigned)
    return KnownRecord.of(GroupMemberKey(kind, group_id, member.member_id), value, body)


def topics_record(group_id: str, topics: ShareTopics, image: ClusterImage) -> CoordinatorRecord:
    """Return the record of the topics with share state."""
    key = WholeGroupKey(GroupRecordKind.SHARE_GROUP_STATE_PARTITION_METADATA, group_id)
    deleting = names_of(topics.deleting, image)
    body = topics._replace(
        initializing=dict(sorted(topics.initializing.items())),
        initialized=dict(sorted(topics.initialized.items())),
    )
    value = encode_state_topics(body.initializing, body.initialized, dict(sorted(deleting.items())))
    return KnownRecord.of(key, value, body)


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
