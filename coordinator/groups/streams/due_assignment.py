"""The target assignment that a heartbeat or a timer needs: computed, delayed or begun.

The computation is in task_assignment.py.

Source: Kafka's GroupMetadataManager.maybeUpdateStreamsTargetAssignment.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from wirebroker.base.log_bound import about_group
from wirebroker.codecs.errors import KafkaError
from wirebroker.coordinator.groups import streams_configs
from wirebroker.coordinator.groups.streams import streams_timers as timing
from wirebroker.coordinator.groups.streams.streams_group import StreamsGroup
from wirebroker.coordinator.groups.streams.streams_records import target_epoch_record
from wirebroker.coordinator.groups.streams.task_assignment import (
    AssignTasks,
    assign_at_once,
    check_task_count,
    is_due,
    job_of,
    may_be_small,
    target_records,
)
from wirebroker.coordinator.groups.streams.tasks import NO_TASKS
from wirebroker.coordinator.groups.topologies.topic_problem import TopicStatus
from wirebroker.coordinator.outcome import Outcome

if TYPE_CHECKING:
    from wirebroker.coordinator.groups.serving_shard import ServingShard
    from wirebroker.coordinator.groups.streams.streams_update import (
        StreamsUpdate,
        TargetOfMember,
    )
    from wirebroker.coordinator.outcome import Moment

logger = logging.getLogger(__name__)


def target_of_member(update: StreamsUpdate) -> TargetOfMember:
    """Return the epoch and the member's part of the target assignment, a new one if due.

    Raises:
        KafkaError: UNKNOWN_SERVER_ERROR: the assignor has failed.
    """
    group, shard = update.group, update.shard
    if group.is_empty:
        delay_ms = streams_configs.initial_rebalance_delay_ms(
            shard.settings.streams, shard.image, group.group_id
        )
        if delay_ms > 0:
            timing.expect_initial_rebalance(shard.timers, group.group_id, delay_ms, update.now)
    if timing.is_rebalance_delayed(shard.timers, group.group_id):
        _delay(update, "Assignment delayed due to the configured initial rebalance delay.")
        return group.assignment_epoch, NO_TASKS
    last = group.assignment_epoch, group.target_of(update.member)
    if group.assignment_epoch >= update.group_epoch:
        return last
    if not update.needs_assignment and group.assignment_epoch >= group.epoch:
        # The target stays; the member reconciles with it again.
        record = target_epoch_record(group.group_id, update.group_epoch, group.assignment_ms)
        update.outcome.records.append(record)
        return update.group_epoch, last[1]
    if not _is_assignment_due(shard, group, update.now):
        _delay(update, "Assignment delayed due to the configured assignment interval.")
        return last
    return _new_target(update, last)


def _new_target(update: StreamsUpdate, last: TargetOfMember) -> TargetOfMember:
    group = update.group
    tasks = check_task_count(update.group_epoch, update.configured, update.configs)
    if update.group_epoch == group.refused_epoch:
        _delay(update, "Assignment delayed because it is too large to be written.")
        return last
    if group.background_work is not None or not may_be_small(group, tasks):
        _delay(update, "Assignment delayed until it is computed.")
        _begin_in_background(group, update.outcome)
        return last
    job = job_of(group, update.group_epoch, update.configured, update.configs, update.member)
    assignment = assign_at_once(job)
    update.outcome.records += target_records(job, assignment, update.now.wall_ms)
    return update.group_epoch, assignment[update.member.member_id]


def _delay(update: StreamsUpdate, detail: str) -> None:
    update.statuses.append(TopicStatus.ASSIGNMENT_DELAYED.with_detail(detail))


def _is_assignment_due(shard: ServingShard, group: StreamsGroup, now: Moment) -> bool:
    """Return whether the interval between assignments has passed."""
    interval_ms = streams_configs.assignment_interval_ms(
        shard.settings.streams, shard.image, group.group_id
    )
    return is_due(group.assignment_ms, interval_ms, now.wall_ms)


def _begin_in_background(group: StreamsGroup, outcome: Outcome) -> None:
    """Start the computation of a large group's assignment, unless it runs."""
    if group.background_work is None:
        effect = group.background_work = AssignTasks(group.group_id)
        outcome.effects.append(effect)


def on_initial_rebalance(
    shard: ServingShard, event: timing.InitialRebalance, now: Moment
) -> Outcome:
    """Assign the tasks of a group that has waited for further members."""
    group, outcome = shard.groups.get(event.group_id), Outcome()
    if not isinstance(group, StreamsGroup) or group.is_empty or group.configured is None:
        return outcome
    if group.epoch <= group.assignment_epoch or not _is_assignment_due(shard, group, now):
        return outcome
    try:
        job = job_of(group, group.epoch, group.configured, group.assignment_configs)
        if job.is_small:
            outcome.records += target_records(job, assign_at_once(job), now.wall_ms)
        else:
            _begin_in_background(group, outcome)
    except KafkaError as error:
        # The members' heartbeats try again, and report it.
        logger.warning("group %s: %s", group.group_id, error, extra=about_group(group.group_id))
    return outcome
