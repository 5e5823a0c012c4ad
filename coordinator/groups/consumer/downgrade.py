"""Online downgrade: a consumer group whose last member of the new protocol leaves.

Source: Kafka's GroupMetadataManager.validateOnlineDowngradeWithFencedMembers,
validateOnlineDowngradeWithReplacedMember, convertToClassicGroup, and
ClassicGroup.fromConsumerGroup; KIP-848.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from wirebroker.base.log_bound import about_group
from wirebroker.codecs.consumer_protocol import encode_assignment, protocol_version
from wirebroker.codecs.coordinator_records import group_metadata_record
from wirebroker.codecs.errors import ErrorCode, KafkaError, MalformedFrameError
from wirebroker.coordinator.groups.classic import rebalance
from wirebroker.coordinator.groups.classic.classic_timers import expect_heartbeat
from wirebroker.coordinator.groups.consumer.consumer_group import NO_TARGET
from wirebroker.coordinator.groups.consumer.consumer_records import group_tombstones
from wirebroker.coordinator.groups.consumer.consumer_timers import cancel_member_timers
from wirebroker.coordinator.groups.subscriptions import CONSUMER_PROTOCOL
from wirebroker.coordinator.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.groups.classic.classic_member import Protocols
    from wirebroker.coordinator.groups.classic.classic_shard import ClassicShard
    from wirebroker.coordinator.groups.consumer.consumer_group import ConsumerGroup
    from wirebroker.coordinator.groups.consumer.consumer_member import ClassicUse, ConsumerMember
    from wirebroker.coordinator.groups.serving_shard import ServingShard
    from wirebroker.coordinator.outcome import Moment, Token

logger = logging.getLogger(__name__)


class ServeDowngraded(NamedTuple):
    """Effect: begin to serve a group that has become classic; call `begin`.

    Attributes:
        rebalances: Whether its members have to rejoin, because the assignment is out of date.
        protocols: Those of each member, by its id; the group's record has only the common one.
    """

    group_id: str
    rebalances: bool
    protocols: Mapping[str, Protocols]


def is_possible(
    shard: ServingShard,
    group: ConsumerGroup,
    leaving: Collection[ConsumerMember],
    *,
    joining: bool = False,
) -> bool:
    """Return whether only classic members remain, and the group may become classic.

    With `joining`, a member of the classic protocol takes the place of the one that leaves.
    """
    remaining = len(group.members) - len(leaving)
    leaving_classic = sum(member.classic is not None for member in leaving)
    if group.classic_count - leaving_classic != remaining or (joining and leaving_classic):
        return False
    remaining += joining
    if not remaining:
        return False
    if not shard.settings.consumer_migration_policy.allows_downgrade:
        logger.info(
            "group %s stays a consumer group: downgrades are disabled",
            group.group_id,
            extra=about_group(group.group_id),
        )
        return False
    if remaining > shard.settings.max_size:
        logger.info(
            "group %s stays a consumer group: too large to be classic",
            group.group_id,
            extra=about_group(group.group_id),
        )
        return False
    return True


def downgrade(
    shard: ServingShard,
    group: ConsumerGroup,
    members: Sequence[ConsumerMember],
    now: Moment,
    *,
    targets: Mapping[str, Mapping[bytes, frozenset[int]]],
) -> CoordinatorRecord:
    """Return the record of the classic group with these members and their target assignments.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND: a member's subscription is malformed.
    """
    uses = {member.member_id: _classic(member) for member in members}
    protocol = _common_protocol(list(uses.values()))
    try:
        rows = [
            {
                "member_id": member.member_id,
                "group_instance_id": member.instance_id,
                "client_id": member.client_id,
                "client_host": member.client_host,
                "rebalance_timeout": member.rebalance_timeout_ms,
                "session_timeout": uses[member.member_id].session_timeout_ms,
                "subscription": dict(uses[member.member_id].protocols)[protocol],
                "assignment": classic_assignment(
                    dict(uses[member.member_id].protocols)[protocol],
                    targets.get(member.member_id, NO_TARGET),
                    shard.image,
                ),
            }
            for member in members
        ]
    except MalformedFrameError as error:
        message = f"Cannot downgrade the classic group {group.group_id}: {error}."
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, message) from None
    logger.info(
        "group %s becomes a classic group", group.group_id, extra=about_group(group.group_id)
    )
    return group_metadata_record(
        group.group_id,
        protocol_type=CONSUMER_PROTOCOL,
        generation=group.epoch,
        protocol=protocol,
        leader=members[0].member_id,
        current_state_timestamp=now.wall_ms,
        members=rows,
    )


def _classic(member: ConsumerMember) -> ClassicUse:
    assert member.classic is not None, "all remaining members use the classic protocol"
    return member.classic


def _common_protocol(uses: Sequence[ClassicUse]) -> str:
    """Return the protocol that all members support and most prefer, as in a classic group."""
    names = [{name for name, _ in use.protocols} for use in uses]
    common = names[0].intersection(*names[1:])
    votes = [next(name for name, _ in use.protocols if name in common) for use in uses]
    return max(dict.fromkeys(votes), key=votes.count)


def classic_assignment(
    subscription: bytes, partitions: Mapping[bytes, Iterable[int]], image: ClusterImage
) -> bytes:
    """Encode partitions by topic id in the version of a member's subscription."""
    by_name = {
        image.topics_by_id[topic_id].name: indexes
        for topic_id, indexes in partitions.items()
        if topic_id in image.topics_by_id
    }
    return encode_assignment(protocol_version(subscription), by_name)


def downgrade_without(
    shard: ServingShard, group: ConsumerGroup, leaving: Sequence[ConsumerMember], now: Moment
) -> Outcome:
    """Return the records that make a group classic without some members; the others rejoin."""
    left = {member.member_id for member in leaving}
    members = [member for member in group.members.values() if member.member_id not in left]
    record = downgrade(shard, group, members, now, targets=group.target)
    effect = ServeDowngraded(group.group_id, True, protocols_of(members))
    return Outcome([*group.tombstones(), record], effects=[effect])


def protocols_of(members: Iterable[ConsumerMember]) -> dict[str, Protocols]:
    """Return the protocols of classic members by member id."""
    return {member.member_id: _classic(member).protocols for member in members}


def replaced_tombstones(
    group: ConsumerGroup, leaving: ConsumerMember, joining: ConsumerMember
) -> list[CoordinatorRecord]:
    """Return the tombstones of a group in which a static member has just been replaced."""
    ids = [
        joining.member_id if member_id == leaving.member_id else member_id
        for member_id in group.members
    ]
    return group_tombstones(group.group_id, ids, group.subscriptions.resolved)


def begin(shard: ClassicShard, effect: ServeDowngraded, token: Token, now: Moment) -> Outcome:
    """Expect the heartbeats of a downgraded group's members, and let them rejoin."""
    del token
    group_id = effect.group_id
    group = shard.classic(group_id)
    if group is None:
        return Outcome()
    group.roster.restore_protocols(effect.protocols)
    for member in group.members.values():
        cancel_member_timers(shard.timers, group_id, member.member_id)
        expect_heartbeat(shard.timers, group_id, member, now)
    if effect.rebalances and group.can_rebalance and group.members:
        return rebalance.prepare(shard, group, now)
    return Outcome()
