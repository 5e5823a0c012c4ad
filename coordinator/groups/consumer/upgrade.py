"""Online upgrade: a classic group becomes a consumer group when a member of the new protocol joins.

The members go on with the classic protocol; each becomes a member of the consumer protocol when its
client is restarted with it.

Source: Kafka's GroupMetadataManager.validateOnlineUpgrade, convertToConsumerGroup, and
ConsumerGroup.fromClassicGroup; KIP-848.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from wirebroker.base.log_bound import about_group
from wirebroker.codecs.consumer_protocol import decode_assignment, decode_subscription
from wirebroker.codecs.errors import ErrorCode, KafkaError, MalformedFrameError
from wirebroker.coordinator.groups.consumer.consumer_group import ConsumerGroup
from wirebroker.coordinator.groups.consumer.consumer_member import ClassicUse, ConsumerMember
from wirebroker.coordinator.groups.consumer.consumer_records import (
    current_record,
    epoch_record,
    subscription_record,
    target_epoch_record,
    target_record,
)
from wirebroker.coordinator.groups.consumer.consumer_timers import restart_session

if TYPE_CHECKING:
    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.groups.classic.classic_group import ClassicGroup
    from wirebroker.coordinator.groups.classic.classic_member import Member
    from wirebroker.coordinator.groups.serving_shard import ServingShard
    from wirebroker.coordinator.outcome import Moment, Outcome

logger = logging.getLogger(__name__)


def upgrade(
    shard: ServingShard, classic: ClassicGroup, outcome: Outcome, now: Moment
) -> ConsumerGroup:
    """Return a classic group as a consumer group, and add the records that make it one.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND, with the reason: it cannot be upgraded.
    """
    _check(shard, classic)
    try:
        group = _consumer_group(classic, shard.image)
    except MalformedFrameError:
        raise _refused(classic, "because the embedded consumer protocol is malformed.") from None
    group.metadata_hash = shard.topic_hashes.of_group(group.subscriptions.topics())
    outcome.records += classic.tombstones()
    outcome.records += _records(group)
    for member in group.members.values():
        assert member.classic is not None, "all members have used the classic protocol"
        timeout_ms = member.classic.session_timeout_ms
        restart_session(shard.timers, group.group_id, member.member_id, timeout_ms, now)
    logger.info(
        "group %s becomes a consumer group", group.group_id, extra=about_group(group.group_id)
    )
    return group


def _check(shard: ServingShard, classic: ClassicGroup) -> None:
    if not shard.settings.consumer_migration_policy.allows_upgrade:
        raise _refused(classic, "because online upgrade is disabled.")
    if not classic.is_consumer_group:
        raise _refused(classic, "because the group does not use the consumer embedded protocol.")
    if len(classic.members) > shard.settings.consumer_max_size:
        raise _refused(classic, "because the group size exceeds the consumer group maximum size.")


def _refused(classic: ClassicGroup, reason: str) -> KafkaError:
    message = f"Cannot upgrade classic group {classic.group_id} to consumer group {reason}"
    logger.info("%s", message, extra=about_group(classic.group_id))
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, message)


def _consumer_group(classic: ClassicGroup, image: ClusterImage) -> ConsumerGroup:
    group = ConsumerGroup(classic.group_id)
    group.epoch = group.assignment_epoch = classic.generation
    protocol = classic.roster.select_protocol() if classic.members else ""
    owned: set[tuple[bytes, int]] = set()
    for member in classic.members.values():
        partitions = _assigned(classic, member, image)
        for topic_id, indexes in partitions.items():
            added = {(topic_id, index) for index in indexes}
            if added & owned or len(added) < len(indexes):
                raise _refused(classic, "because a partition is assigned twice.")
            owned |= added
        subscription = decode_subscription(member.metadata(protocol))
        group.target[member.member_id] = {
            topic_id: frozenset(indexes) for topic_id, indexes in partitions.items()
        }
        group.put(
            ConsumerMember(
                member.member_id,
                epoch=classic.generation,
                previous_epoch=classic.generation,
                instance_id=member.group_instance_id,
                rack_id=subscription.rack_id or None,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                client_id=member.client_id,
                client_host=member.client_host,
                topic_names=frozenset(subscription.topics),
                assigned={
                    topic_id: dict.fromkeys(indexes, classic.generation)
                    for topic_id, indexes in partitions.items()
                },
                classic=ClassicUse(member.session_timeout_ms, member.protocols),
            )
        )
    return group


def _assigned(classic: ClassicGroup, member: Member, image: ClusterImage) -> dict[bytes, list[int]]:
    if not member.assignment:
        return {}
    assignment: Any = decode_assignment(member.assignment)
    if assignment.user_data:
        raise _refused(
            classic,
            "because an unsupported custom assignor is in use. Please refer to the documentation "
            "or switch to a default assignor before re-attempting the upgrade.",
        )
    return {
        image.topics[topic.topic].topic_id: list(topic.partitions)
        for topic in assignment.assigned_partitions
        if topic.topic in image.topics
    }


def _records(group: ConsumerGroup) -> list[CoordinatorRecord]:
    group_id, members = group.group_id, group.members.values()
    return [
        *(subscription_record(group_id, member) for member in members),
        epoch_record(group_id, group.epoch, group.metadata_hash),
        *(
            target_record(group_id, member.member_id, group.target[member.member_id])
            for member in members
        ),
        target_epoch_record(group_id, group.assignment_epoch, group.assignment_ms),
        *(current_record(group_id, member) for member in members),
    ]
