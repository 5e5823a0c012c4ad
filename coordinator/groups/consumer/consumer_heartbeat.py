"""ConsumerGroupHeartbeat: a member joins, stays, or leaves, and gets its partitions.

    1. The member is created or updated. A new subscription, or a change of its topics, raises
       the group's epoch.
    2. If the target assignment is older than the group's epoch, it is computed.
    3. The member takes its next step towards its target (reconciliation.py).

Each step adds records; the group changes when they are replayed.

Source: Kafka's GroupMetadataManager.consumerGroupHeartbeat; KIP-848, KIP-1082 for member ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.base.clock import in_one_go
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.classic.classic_group import ClassicGroup
from wirebroker.coordinator.groups.consumer import joining
from wirebroker.coordinator.groups.consumer.consumer_fencing import leave
from wirebroker.coordinator.groups.consumer.consumer_member import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
)
from wirebroker.coordinator.groups.consumer.consumer_timers import restart_session
from wirebroker.coordinator.groups.consumer.member_update import MemberUpdate
from wirebroker.coordinator.groups.consumer.prepared_step import PreparedAway, PreparedStep
from wirebroker.coordinator.groups.described_topics import assigned_in_steps
from wirebroker.coordinator.groups.group_configs import (
    consumer_heartbeat_interval_ms,
    consumer_session_timeout_ms,
)
from wirebroker.coordinator.outcome import Outcome

if TYPE_CHECKING:
    from wirebroker.coordinator.groups.consumer.consumer_member import ConsumerMember
    from wirebroker.coordinator.groups.consumer.heartbeat_request import ConsumerHeartbeat
    from wirebroker.coordinator.groups.serving_shard import ServingShard
    from wirebroker.coordinator.outcome import Moment, Token


def heartbeat(
    shard: ServingShard,
    request: ConsumerHeartbeat,
    token: Token,
    now: Moment,
    prepared: PreparedStep | PreparedAway | None = None,
) -> Outcome:
    """Handle a checked request; errors are in the response, with their messages.

    `prepared` is the member's next step, or the record of a static member that leaves for a while,
    if it was computed before.
    """
    body = request.body
    try:
        if body.member_epoch in {LEAVE_EPOCH, LEAVE_STATIC_EPOCH}:
            away = prepared if isinstance(prepared, PreparedAway) else None
            outcome = leave(shard, body, now, away)
            outcome.answer(token, {"member_id": body.member_id, "member_epoch": body.member_epoch})
            return outcome
        step = prepared if isinstance(prepared, PreparedStep) else None
        return _stay(shard, request, token, now, step)
    except KafkaError as error:
        refused = Outcome()
        refused.answer(token, {"error_code": error.code, "error_message": error.message})
        return refused


def _stay(
    shard: ServingShard,
    request: ConsumerHeartbeat,
    token: Token,
    now: Moment,
    prepared: PreparedStep | None,
) -> Outcome:
    """Handle the request of a member that joins or stays."""
    body, outcome = request.body, Outcome()
    group = joining.find_or_create(shard, body, outcome, now)
    returned = None if prepared is None else prepared.returned
    before = joining.find_or_join(shard, group, body, outcome, returned)
    update = MemberUpdate(
        shard,
        group,
        before,
        outcome,
        now=now,
        context=request.context,
        requested=request.requested,
        prepared=prepared,
    )
    with update:
        has_changed = update.subscribe(joining.updated(before, request))
        target = update.assign(before)
        update.take_next_step(target, body.topic_partitions, has_changed=has_changed)
    member = update.member
    settings, image = shard.settings, shard.image
    timeout_ms = consumer_session_timeout_ms(settings, image, group.group_id)
    restart_session(shard.timers, group.group_id, member.member_id, timeout_ms, now)
    response: dict[str, Any] = {
        "member_id": member.member_id,
        "member_epoch": member.epoch,
        "heartbeat_interval_ms": consumer_heartbeat_interval_ms(settings, image, group.group_id),
    }
    is_joining = body.member_epoch == JOIN_EPOCH
    has_missed = body.member_epoch < before.epoch and not _reports_all(member, body)
    if is_joining or request.is_full or has_missed or member.assigned != before.assigned:
        if prepared is not None and prepared.member.assigned is member.assigned:
            response["assignment"] = prepared.assignment
        else:
            response["assignment"] = in_one_go(assigned_in_steps(member.assigned))
    former = shard.groups.get(group.group_id)
    if isinstance(former, ClassicGroup):
        # The group is upgraded; from here on nothing can fail.
        former.answer_waiters(outcome, ErrorCode.REBALANCE_IN_PROGRESS)
    outcome.answer(token, response)
    if outcome.records:
        outcome.on_failure = update.undo
    return outcome


def _reports_all(member: ConsumerMember, body: Any) -> bool:
    """Return whether a member in its previous epoch knows all partitions that it was assigned.

    A delayed request of the member may have advanced its epoch, after the member had repeated it.
    """
    owned = {topic.topic_id: topic.partitions for topic in body.topic_partitions or ()}
    return all(
        epochs.keys() <= set(owned.get(topic_id, ()))
        for topic_id, epochs in member.assigned.items()
    )
