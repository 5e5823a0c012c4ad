"""Members of the classic protocol in a consumer group, during an online migration.

    JoinGroup     one step towards the target assignment; answered at once, without a leader
    SyncGroup     the partitions that this step has given
    Heartbeat     REBALANCE_IN_PROGRESS when the next step is due
    LeaveGroup    removal

Source: Kafka's GroupMetadataManager: classicGroupJoinToConsumerGroup,
classicGroupSyncToConsumerGroup, classicGroupHeartbeatToConsumerGroup and
classicGroupLeaveToConsumerGroup; KIP-848.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from wirebroker.codecs.consumer_protocol import decode_subscription
from wirebroker.codecs.errors import ErrorCode, KafkaError, MalformedFrameError
from wirebroker.coordinator.groups.classic.join import FIRST_MEMBER_ID_VERSION
from wirebroker.coordinator.groups.consumer import downgrade, joining
from wirebroker.coordinator.groups.consumer.consumer_fencing import fence
from wirebroker.coordinator.groups.consumer.consumer_member import (
    ClassicUse,
    ConsumerMember,
    MemberState,
)
from wirebroker.coordinator.groups.consumer.consumer_timers import (
    cancel_rejoin,
    cancel_sync,
    expect_rejoin,
    expect_sync,
    restart_session,
)
from wirebroker.coordinator.groups.consumer.member_update import MemberUpdate
from wirebroker.coordinator.groups.consumer.partition_epochs import NO_OWNER
from wirebroker.coordinator.groups.settings import MigrationPolicy
from wirebroker.coordinator.groups.subscriptions import CONSUMER_PROTOCOL
from wirebroker.coordinator.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.groups.classic.join import Join
    from wirebroker.coordinator.groups.consumer.consumer_group import ConsumerGroup
    from wirebroker.coordinator.groups.serving_shard import ServingShard
    from wirebroker.coordinator.outcome import Moment, Token


class _Owned(NamedTuple):
    """Partitions that a member reports."""

    topic_id: bytes
    partitions: Sequence[int]


# -- JoinGroup -----------------------------------------------------------------------------------


def join(
    shard: ServingShard, group: ConsumerGroup, request: Join, token: Token, now: Moment
) -> Outcome:
    """Handle a JoinGroup request.

    Raises:
        KafkaError: The error of the response.
    """
    body = request.body
    if shard.settings.consumer_migration_policy is MigrationPolicy.DISABLED:
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    member_id: str = body.member_id or shard.new_uuid()
    joining.check_size(shard, group, member_id, body.group_instance_id)
    if not group.supports_classic(body.protocol_type, dict(request.protocols)):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    outcome = Outcome()
    is_unknown = not body.member_id and body.group_instance_id is None
    if is_unknown and request.version >= FIRST_MEMBER_ID_VERSION:
        error = ErrorCode.MEMBER_ID_REQUIRED
        outcome.answer(token, {"member_id": member_id, "error_code": error})
        return outcome
    replaced = group.static_member(body.group_instance_id)
    before = _member(group, body, member_id, outcome)
    update = MemberUpdate(shard, group, before, outcome, now=now, context=request.context)
    subscription = _subscription(request)
    owned = _owned(subscription, shard.image)
    with update:
        has_changed = update.subscribe(_updated(before, request, subscription))
        if replaced is not None and downgrade.is_possible(shard, group, (replaced,), joining=True):
            _downgrade(update, replaced, owned, has_changed=has_changed)
        else:
            update.take_next_step(update.assign(before), owned, has_changed=has_changed)
            _restart_timers(shard, group, update.member, now)
    outcome.answer(
        token,
        {
            "member_id": update.member.member_id,
            "generation_id": update.member.epoch,
            "protocol_type": CONSUMER_PROTOCOL,
            "protocol_name": request.protocols[0][0],
        },
    )
    if outcome.records:
        outcome.on_failure = update.undo
    return outcome


def _member(group: ConsumerGroup, body: Any, member_id: str, outcome: Outcome) -> ConsumerMember:
    instance: str | None = body.group_instance_id
    if instance is None:
        return group.members.get(member_id) or ConsumerMember(member_id)
    existing = group.static_member(instance)
    if body.member_id:
        return joining.checked_static_member(existing, instance, member_id)
    if existing is None:
        return ConsumerMember(member_id)
    return joining.take_over(group, existing, member_id, outcome)


def _subscription(request: Join) -> Any:
    try:
        return decode_subscription(request.protocols[0][1])
    except MalformedFrameError:
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL) from None


def _updated(before: ConsumerMember, request: Join, subscription: Any) -> ConsumerMember:
    body = request.body
    return replace(
        before,
        instance_id=body.group_instance_id or before.instance_id,
        rack_id=subscription.rack_id or before.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topic_names=frozenset(subscription.topics),
        topic_regex="",
        client_id=request.client_id,
        client_host=request.client_host,
        classic=ClassicUse(body.session_timeout_ms, request.protocols),
    )


def _owned(subscription: Any, image: ClusterImage) -> list[_Owned]:
    return [
        _Owned(image.topics[topic.topic].topic_id, topic.partitions)
        for topic in subscription.owned_partitions
        if topic.topic in image.topics
    ]


def _downgrade(
    update: MemberUpdate,
    replaced: ConsumerMember,
    owned: Sequence[_Owned],
    *,
    has_changed: bool,
) -> None:
    """Make the group classic: its last member of the consumer protocol was replaced."""
    group = update.group
    is_stale = group.assignment_epoch < update.group_epoch
    if not is_stale:
        last = group.assignment_epoch, group.target_of(update.member)
        update.take_next_step(last, owned, has_changed=has_changed)
    members = [
        *(member for member in group.members.values() if member is not replaced),
        update.member,
    ]
    targets = {**group.target, update.member.member_id: group.target_of(replaced)}
    record = downgrade.downgrade(update.shard, group, members, update.now, targets=targets)
    update.outcome.records += [
        *downgrade.replaced_tombstones(group, replaced, update.member),
        record,
    ]
    protocols = downgrade.protocols_of(members)
    update.outcome.effects.append(downgrade.ServeDowngraded(group.group_id, is_stale, protocols))


def _restart_timers(
    shard: ServingShard, group: ConsumerGroup, member: ConsumerMember, now: Moment
) -> None:
    use = member.classic
    assert use is not None, "it has joined with the classic protocol"
    timers, group_id, member_id = shard.timers, group.group_id, member.member_id
    cancel_rejoin(timers, group_id, member_id)
    restart_session(timers, group_id, member_id, use.session_timeout_ms, now)
    expect_sync(timers, group_id, member_id, member.rebalance_timeout_ms, now)


# -- SyncGroup and Heartbeat ---------------------------------------------------------------------


def sync(
    shard: ServingShard, group: ConsumerGroup, body: Any, token: Token, now: Moment
) -> Outcome:
    """Handle a SyncGroup request.

    Raises:
        KafkaError: The error of the response.
    """
    member, use = _checked(group, body)
    name, metadata = use.protocols[0]
    is_consistent = body.protocol_type in {None, CONSUMER_PROTOCOL}
    if not is_consistent or body.protocol_name not in {None, *dict(use.protocols)}:
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    # The classic group may have had another of its protocols before it was upgraded. Then the
    # member has to rejoin; the error above would end the client.
    has_other_name = body.protocol_name not in {None, name}
    is_revoking = member.state is MemberState.UNREVOKED_PARTITIONS
    if has_other_name or (group.assignment_epoch > member.epoch and not is_revoking):
        _expect_rejoin(shard, group, member, now)
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
    cancel_sync(shard.timers, group.group_id, member.member_id)
    restart_session(shard.timers, group.group_id, member.member_id, use.session_timeout_ms, now)
    outcome = Outcome()
    outcome.answer(
        token,
        {
            "protocol_type": body.protocol_type,
            "protocol_name": body.protocol_name,
            "assignment": downgrade.classic_assignment(metadata, member.assigned, shard.image),
        },
    )
    return outcome


def heartbeat(
    shard: ServingShard, group: ConsumerGroup, body: Any, token: Token, now: Moment
) -> Outcome:
    """Handle a Heartbeat request.

    Raises:
        KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION.
    """
    member, use = _checked(group, body)
    restart_session(shard.timers, group.group_id, member.member_id, use.session_timeout_ms, now)
    error = ErrorCode.NONE
    if _has_next_step(group, member):
        error = ErrorCode.REBALANCE_IN_PROGRESS
        _expect_rejoin(shard, group, member, now)
    outcome = Outcome()
    outcome.answer(token, {"error_code": error})
    return outcome


def _has_next_step(group: ConsumerGroup, member: ConsumerMember) -> bool:
    if member.epoch < group.assignment_epoch or member.state is MemberState.UNREVOKED_PARTITIONS:
        return True
    if member.state is not MemberState.UNRELEASED_PARTITIONS:
        return False
    return not any(
        index not in member.assigned.get(topic_id, {})
        and group.partition_epochs.of(topic_id, index) != NO_OWNER
        for topic_id, indexes in group.target_of(member).items()
        for index in indexes
    )


def _checked(group: ConsumerGroup, body: Any) -> tuple[ConsumerMember, ClassicUse]:
    """Return the member of a request of the classic protocol.

    Raises:
        KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION.
    """
    instance: str | None = body.group_instance_id
    if instance is None:
        member = group.member(body.member_id)
    else:
        member = joining.checked_static_member(
            group.static_member(instance), instance, body.member_id
        )
    if member.classic is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    if member.epoch != body.generation_id:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    return member, member.classic


def _expect_rejoin(
    shard: ServingShard, group: ConsumerGroup, member: ConsumerMember, now: Moment
) -> None:
    timeout_ms = member.rebalance_timeout_ms
    expect_rejoin(shard.timers, group.group_id, member.member_id, timeout_ms, now)


# -- LeaveGroup ----------------------------------------------------------------------------------


def leave(
    shard: ServingShard,
    group: ConsumerGroup,
    identities: Sequence[Any],
    token: Token,
    now: Moment,
) -> Outcome:
    """Remove members, of either protocol; `identities` have member_id and group_instance_id."""
    leaving: dict[str, ConsumerMember] = {}
    responses: list[dict[str, Any]] = []
    for identity in identities:
        response: dict[str, Any] = {
            "member_id": identity.member_id,
            "group_instance_id": identity.group_instance_id,
        }
        try:
            member = _identified(group, identity)
            leaving[member.member_id] = member
        except KafkaError as error:
            response["error_code"] = error.code
        responses.append(response)
    outcome = fence(shard, group, list(leaving.values()), now) if leaving else Outcome()
    outcome.answer(token, {"members": responses})
    return outcome


def _identified(group: ConsumerGroup, identity: Any) -> ConsumerMember:
    instance: str | None = identity.group_instance_id
    if instance is None:
        return group.member(identity.member_id)
    existing = group.static_member(instance)
    fences = bool(identity.member_id)
    return joining.checked_static_member(existing, instance, identity.member_id, fences=fences)
