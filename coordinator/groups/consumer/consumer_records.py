"""The records of consumer groups.

Lists are sorted, so that equal states give equal bytes. Kafka sorts only some of them.

Source: Kafka's GroupCoordinatorRecordHelpers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.base.clock import in_one_go
from wirebroker.codecs.group_records import (
    GroupMemberKey,
    GroupRecordKind,
    KnownRecord,
    RegularExpressionKey,
    WholeGroupKey,
    group_record,
    group_record_tombstone,
)
from wirebroker.codecs.hot import member_assignment, topic_partitions
from wirebroker.codecs.hot.member_assignment import MemberAssignment
from wirebroker.codecs.hot.subscription import (
    encode_resolved,
    encode_subscription,
    encoded_names_in_steps,
)
from wirebroker.codecs.hot.topic_partitions import TARGET_HEAD
from wirebroker.coordinator.groups.assignors.in_steps import ordered_in_steps, sorted_in_steps

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from wirebroker.base.clock import Steps
    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.coordinator.groups.consumer.consumer_member import ConsumerMember
    from wirebroker.coordinator.groups.consumer.heartbeat_request import RequestedNames
    from wirebroker.coordinator.groups.consumer.subscriptions import ResolvedRegex


def subscription_record(
    group_id: str, member: ConsumerMember, requested: RequestedNames | None = None
) -> CoordinatorRecord:
    """Return the record of a member's subscription and client.

    `requested` has its topics if a request lists them and they are sorted already.
    """
    classic = member.classic
    key = GroupMemberKey(GroupRecordKind.CONSUMER_GROUP_MEMBER_METADATA, group_id, member.member_id)
    value = encode_subscription(
        sorted(member.topic_names) if requested is None else requested.ordered,
        encoded_names=None if requested is None else requested.encoded,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_regex=member.topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=None
        if classic is None
        else {
            "session_timeout_ms": classic.session_timeout_ms,
            "supported_protocols": [
                {"name": name, "metadata": metadata} for name, metadata in classic.protocols
            ],
        },
    )
    return KnownRecord.of(key, value, member)


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    """Return the record of a group's epoch."""
    key = WholeGroupKey(GroupRecordKind.CONSUMER_GROUP_METADATA, group_id)
    return group_record(key, epoch=epoch, metadata_hash=metadata_hash)


def target_record(
    group_id: str, member_id: str, partitions: Mapping[bytes, frozenset[int]]
) -> CoordinatorRecord:
    """Return the record of a member's target assignment."""
    return in_one_go(target_record_in_steps(group_id, member_id, partitions))


def target_record_in_steps(
    group_id: str, member_id: str, partitions: Mapping[bytes, frozenset[int]]
) -> Steps[CoordinatorRecord]:
    """Do the same in steps."""
    kind = GroupRecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER
    body = yield from ordered_in_steps(partitions)
    value = yield from topic_partitions.encoded_in_steps(TARGET_HEAD, body)
    return KnownRecord.of(GroupMemberKey(kind, group_id, member_id), value, body)


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    """Return the record of the epoch of a target assignment, and the time of its computation."""
    key = WholeGroupKey(GroupRecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA, group_id)
    return group_record(key, assignment_epoch=epoch, assignment_timestamp=timestamp_ms)


def current_record(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    """Return the record of a member's epochs, state and partitions."""
    return in_one_go(current_record_in_steps(group_id, member))


def current_record_in_steps(group_id: str, member: ConsumerMember) -> Steps[CoordinatorRecord]:
    """Do the same in steps."""
    kind = GroupRecordKind.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT
    assigned = yield from ordered_in_steps(member.assigned)
    revoking = yield from ordered_in_steps(member.revoking)
    body = MemberAssignment(member.epoch, member.previous_epoch, member.state, assigned, revoking)
    value = yield from member_assignment.encoded_in_steps(body)
    return KnownRecord.of(GroupMemberKey(kind, group_id, member.member_id), value, body)


def regex_record_in_steps(group_id: str, regex: str, resolved: ResolvedRegex) -> Steps[KnownRecord]:
    """Return the record of the topics of a regular expression."""
    names = yield from sorted_in_steps(resolved.topics, str)
    encoded = yield from encoded_names_in_steps(names)
    value = encode_resolved(encoded, version=resolved.version, timestamp=resolved.timestamp_ms)
    return KnownRecord.of(_regex_key(group_id, regex), value, resolved)


def regex_tombstone(group_id: str, regex: str) -> CoordinatorRecord:
    """Return the record that deletes the topics of a regular expression."""
    return group_record_tombstone(_regex_key(group_id, regex))


def _regex_key(group_id: str, regex: str) -> RegularExpressionKey:
    kind = GroupRecordKind.CONSUMER_GROUP_REGULAR_EXPRESSION
    return RegularExpressionKey(kind, group_id, regex)


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """Return the records that delete a member, in the order that replay needs."""
    return [
        group_record_tombstone(GroupMemberKey(kind, group_id, member_id))
        for kind in (
            GroupRecordKind.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
            GroupRecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER,
            GroupRecordKind.CONSUMER_GROUP_MEMBER_METADATA,
        )
    ]


def partition_metadata_tombstone(group_id: str) -> CoordinatorRecord:
    """Return the record that deletes what Kafka before 4.1 wrote."""
    kind = GroupRecordKind.CONSUMER_GROUP_PARTITION_METADATA
    return group_record_tombstone(WholeGroupKey(kind, group_id))


def group_tombstones(
    group_id: str, member_ids: Collection[str], regexes: Collection[str]
) -> list[CoordinatorRecord]:
    """Return the records that delete a whole group, the group's own last."""

    def of_members(kind: GroupRecordKind) -> list[CoordinatorRecord]:
        return [
            group_record_tombstone(GroupMemberKey(kind, group_id, member_id))
            for member_id in member_ids
        ]

    def of_group(kind: GroupRecordKind) -> CoordinatorRecord:
        return group_record_tombstone(WholeGroupKey(kind, group_id))

    return [
        *of_members(GroupRecordKind.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT),
        *of_members(GroupRecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER),
        of_group(GroupRecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA),
        *of_members(GroupRecordKind.CONSUMER_GROUP_MEMBER_METADATA),
        *(regex_tombstone(group_id, regex) for regex in regexes),
        partition_metadata_tombstone(group_id),
        of_group(GroupRecordKind.CONSUMER_GROUP_METADATA),
    ]
