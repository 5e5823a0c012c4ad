"""ShareGroupHeartbeat: a member joins, stays, or leaves, and gets its partitions.

    1. The member is created or updated. A new subscription, a change of its topics, or newly
       initialized partitions raise the group's epoch.
    2. If the target assignment is older than the group's epoch, it is computed.
    3. The member gets its target assignment.
    4. Share state of newly subscribed partitions is created (share_initialization.py).

Each step adds records; the group changes when they are replayed.

Source: Kafka's GroupMetadataManager.shareGroupHeartbeat; KIP-932.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.base.clock import in_one_go
from wirebroker.codecs.errors import KafkaError
from wirebroker.coordinator.groups.consumer.consumer_member import JOIN_EPOCH, LEAVE_EPOCH
from wirebroker.coordinator.groups.described_topics import assigned_in_steps
from wirebroker.coordinator.groups.group_configs import share_heartbeat_interval_ms
from wirebroker.coordinator.groups.share import share_joining
from wirebroker.coordinator.groups.share.share_fencing import leave, watch
from wirebroker.coordinator.groups.share.share_update import ShareUpdate
from wirebroker.coordinator.outcome import Outcome

if TYPE_CHECKING:
    from wirebroker.coordinator.groups.serving_shard import ServingShard
    from wirebroker.coordinator.groups.share.share_request import ShareHeartbeat
    from wirebroker.coordinator.groups.share.share_step import ShareStep
    from wirebroker.coordinator.outcome import Moment, Token


def heartbeat(
    shard: ServingShard,
    request: ShareHeartbeat,
    token: Token,
    now: Moment,
    prepared: ShareStep | None = None,
) -> Outcome:
    """Handle a checked request; errors are in the response, with their messages.

    `prepared` is the member's step to its target, if it was computed before.
    """
    body = request.body
    try:
        if body.member_epoch == LEAVE_EPOCH:
            outcome = leave(shard, body.group_id, body.member_id)
            outcome.answer(token, {"member_id": body.member_id, "member_epoch": LEAVE_EPOCH})
            return outcome
        return _stay(shard, request, token, now, prepared)
    except KafkaError as error:
        refused = Outcome()
        refused.answer(token, {"error_code": error.code, "error_message": error.message})
        return refused


def _stay(
    shard: ServingShard,
    request: ShareHeartbeat,
    token: Token,
    now: Moment,
    prepared: ShareStep | None,
) -> Outcome:
    """Handle the request of a member that joins or stays."""
    body = request.body
    is_joining = body.member_epoch == JOIN_EPOCH
    group = share_joining.find_or_create(shard, body.group_id, creates=is_joining)
    before = share_joining.find_or_join(shard, group, body)
    update = ShareUpdate(shard, group, before, now=now, prepared=prepared)
    has_changed = update.subscribe(share_joining.updated(before, request))
    update.reconcile(update.assign(), has_changed=has_changed)
    update.initialize()
    member = update.member
    watch(shard, group, member.member_id, now)
    response: dict[str, Any] = {
        "member_id": member.member_id,
        "member_epoch": member.epoch,
        "heartbeat_interval_ms": share_heartbeat_interval_ms(
            shard.settings, shard.image, group.group_id
        ),
    }
    is_full = body.subscribed_topic_names is not None
    if is_joining or is_full or member.assigned != before.assigned:
        if prepared is not None and prepared.member.assigned is member.assigned:
            response["assignment"] = prepared.assignment
        else:
            response["assignment"] = in_one_go(assigned_in_steps(member.assigned))
    outcome = update.outcome
    outcome.answer(token, response)
    if outcome.records:
        outcome.on_failure = update.undo
    return outcome
