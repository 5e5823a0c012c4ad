"""StreamsGroupHeartbeat: a member joins, stays, or leaves, and gets its tasks.

    1. The member is created or updated; the first one sets the topology.
    2. The topics are checked. A change of members, topics or settings raises the group's epoch.
    3. If the target assignment is older than the group's epoch, it is computed.
    4. The member takes its next step towards its target (task_reconciliation.py).

Each step adds records; the group changes when they are replayed. The response has the internal
topics that the handler is to create.

Source: Kafka's GroupMetadataManager.streamsGroupHeartbeat; KIP-1071.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups import streams_configs
from wirebroker.coordinator.groups.streams import streams_joining as joining
from wirebroker.coordinator.groups.streams.due_assignment import target_of_member
from wirebroker.coordinator.groups.streams.endpoints import partitions_by_endpoint
from wirebroker.coordinator.groups.streams.streams_fencing import leave
from wirebroker.coordinator.groups.streams.streams_member import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
)
from wirebroker.coordinator.groups.streams.streams_timers import restart_session
from wirebroker.coordinator.groups.streams.streams_update import StreamsUpdate
from wirebroker.coordinator.groups.streams.tasks import task_ids
from wirebroker.coordinator.groups.topologies.topic_problem import TopicStatus
from wirebroker.coordinator.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from wirebroker.coordinator.groups.serving_shard import ServingShard
    from wirebroker.coordinator.groups.streams.prepared_topology import PreparedTopology
    from wirebroker.coordinator.groups.streams.streams_member import StreamsMember
    from wirebroker.coordinator.groups.streams.streams_request import StreamsHeartbeat
    from wirebroker.coordinator.outcome import Moment, Token

# Fields of the answer besides those of the response: topics to be created, and the steps that list
# the partitions by endpoint.
INTERNAL_TOPICS: Final = "internal_topics"
ENDPOINTS: Final = "endpoints"
# Older clients do not know the status.
_FIRST_MISSING_TAGS_VERSION: Final = 1


def heartbeat(
    shard: ServingShard,
    request: StreamsHeartbeat,
    token: Token,
    now: Moment,
    prepared: PreparedTopology | None = None,
) -> Outcome:
    """Handle a checked request; errors are in the response, with their messages.

    `prepared` is the topology of the request or of the group, if it was prepared.
    """
    body = request.body
    try:
        if body.member_epoch in {LEAVE_EPOCH, LEAVE_STATIC_EPOCH}:
            outcome = leave(shard, body, now)
            outcome.answer(token, {"member_id": body.member_id, "member_epoch": body.member_epoch})
            return outcome
        return _stay(shard, request, token, now, prepared)
    except KafkaError as error:
        # As in Kafka, the texts of its own exceptions are not shown.
        is_shown = error.code is not ErrorCode.UNKNOWN_SERVER_ERROR
        refused = Outcome()
        refused.answer(
            token,
            {"error_code": error.code, "error_message": error.message if is_shown else None},
        )
        return refused


def _stay(
    shard: ServingShard,
    request: StreamsHeartbeat,
    token: Token,
    now: Moment,
    prepared: PreparedTopology | None,
) -> Outcome:
    """Handle the request of a member that joins or stays."""
    body, outcome = request.body, Outcome()
    group = joining.find_or_create(shard, body, outcome)
    replaced = group.static_member(body.instance_id)
    before = joining.find_or_join(group, body, outcome)
    update = StreamsUpdate(shard, group, before, outcome, body=body, now=now, prepared=prepared)
    try:
        update.describe(joining.updated(before, request))
        update.configure()
        update.take_next_step(target_of_member(update))
    except KafkaError:
        update.forget()
        raise
    timeout_ms = streams_configs.session_timeout_ms(
        shard.settings.streams, shard.image, group.group_id
    )
    member_id = update.member.member_id
    restart_session(shard.timers, group.group_id, member_id, timeout_ms, now)
    if body.shutdown_application and group.shutdown_member_id is None:
        group.shutdown_member_id = member_id
    replaced_id = None
    if replaced is not None and replaced.member_id != member_id:
        replaced_id = replaced.member_id
    response = _response(update, request, before, replaced_id)
    outcome.answer(token, response)
    if outcome.records:
        outcome.on_failure = update.undo
    return outcome


def _response(
    update: StreamsUpdate,
    request: StreamsHeartbeat,
    before: StreamsMember,
    replaced_id: str | None,
) -> dict[str, Any]:
    shard, group, member = update.shard, update.group, update.member
    settings, image, group_id = shard.settings.streams, shard.image, group.group_id
    response: dict[str, Any] = {
        "member_id": member.member_id,
        "member_epoch": member.epoch,
        "heartbeat_interval_ms": streams_configs.heartbeat_interval_ms(settings, image, group_id),
        "task_offset_interval_ms": streams_configs.task_offset_interval_ms(
            settings, image, group_id
        ),
        "acceptable_recovery_lag": streams_configs.acceptable_recovery_lag(
            settings, image, group_id
        ),
    }
    is_changed = member.assigned != before.assigned
    is_joining = request.body.member_epoch == JOIN_EPOCH
    is_repeated = _may_have_missed(request.body, before) and _reports_others(request.body, member)
    if is_joining or is_changed or is_repeated:
        response["active_tasks"] = task_ids(member.assigned.active)
        response["standby_tasks"] = task_ids(member.assigned.standby)
        response["warmup_tasks"] = task_ids(member.assigned.warmup)
    has_new_endpoint = member.user_endpoint != before.user_endpoint
    if has_new_endpoint or (is_changed and member.user_endpoint is not None):
        group.endpoint_epoch += 1
    if group.endpoint_epoch != request.body.endpoint_information_epoch:
        response[ENDPOINTS] = partitions_by_endpoint(group, member, replaced_id, image.topics)
    if group_id in shard.groups:
        response["endpoint_information_epoch"] = group.endpoint_epoch
    if update.configured.missing_topics:
        response[INTERNAL_TOPICS] = update.configured.missing_topics
    response["status"] = _statuses(update, request.version)
    return response


def _may_have_missed(body: Any, before: StreamsMember) -> bool:
    """Return whether the response with the member's present tasks may have been lost.

    It was lost if the member has an older epoch. Tasks of the same epoch change at most while it
    gives up tasks or waits for others, which makes its previous epoch the same.
    """
    return body.member_epoch != before.epoch or before.previous_epoch == before.epoch


def _reports_others(body: Any, member: StreamsMember) -> bool:
    """Return whether a member reports other tasks than it has.

    After a lost response Kafka does not repeat the tasks, so no member processes them until the
    next assignment.
    """
    assigned = member.assigned
    pairs = (
        (body.active_tasks, assigned.active),
        (body.standby_tasks, assigned.standby),
        (body.warmup_tasks, assigned.warmup),
    )
    return any(
        reported is not None and _reported_sets(reported) != _sets_of(tasks)
        for reported, tasks in pairs
    )


def _reported_sets(reported: Iterable[Any]) -> dict[str, set[int]]:
    sets: dict[str, set[int]] = {}
    for entry in reported:
        if entry.partitions:
            sets.setdefault(entry.subtopology_id, set()).update(entry.partitions)
    return sets


def _sets_of(tasks: Mapping[str, Collection[int]]) -> dict[str, set[int]]:
    return {name: set(partitions) for name, partitions in tasks.items() if partitions}


def _statuses(update: StreamsUpdate, version: int) -> list[dict[str, Any]]:
    statuses, group = update.statuses, update.group
    problem = update.configured.problem
    if problem is not None:
        statuses.append(problem.status.with_detail(problem.detail))
    if group.shutdown_member_id is not None:
        statuses.append(
            TopicStatus.SHUTDOWN_APPLICATION.with_detail(
                f"Streams group member {group.shutdown_member_id} encountered a fatal error and "
                "requested a shutdown for the entire application."
            )
        )
    missing = streams_configs.missing_tags(update.configs, update.member.client_tags)
    if missing and version >= _FIRST_MISSING_TAGS_VERSION:
        statuses.append(
            TopicStatus.MISSING_CLIENT_TAGS.with_detail(
                "Missing required client tags for rack-aware standby assignment: "
                f"[{', '.join(missing)}]. Configure them via 'client.tag.<tagKey>' in your Streams "
                "config."
            )
        )
    return statuses
