"""The replay of streams groups' records.

Source: Kafka's GroupMetadataManager.replay.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.group_records import (
    GroupMemberKey,
    GroupRecordKind,
    decode_record_value,
)
from wirebroker.coordinator.groups.group_replay import (
    delete,
    find_or_create,
    replay_target_epoch,
)
from wirebroker.coordinator.groups.streams.streams_group import StreamsGroup
from wirebroker.coordinator.groups.streams.streams_member import (
    StreamsMember,
    TaskState,
    UserEndpoint,
)
from wirebroker.coordinator.groups.streams.streams_records import CurrentTasks
from wirebroker.coordinator.groups.streams.tasks import AssignedTasks, Tasks, task_sets
from wirebroker.coordinator.groups.topologies.topology import topology_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from wirebroker.codecs.group_records import WholeGroupKey
    from wirebroker.coordinator.groups.serving_shard import ServingShard
    from wirebroker.coordinator.groups.topologies.topology import StreamsTopology


def replay(
    shard: ServingShard,
    key: WholeGroupKey | GroupMemberKey,
    value: bytes | None,
    known: Any = None,
) -> None:
    """Apply a record of a streams group; `known` is its decoded value, if it is known.

    Raises:
        KafkaError: UNSUPPORTED_VERSION.
        MalformedFrameError: Malformed value.
    """
    group = find_or_create(shard, StreamsGroup, key.group_id, creates=value is not None)
    if group is None:
        return
    body = decoded(key.kind, value) if known is None and value is not None else known
    if isinstance(key, GroupMemberKey):
        _MEMBER_REPLAYS[key.kind](group, key.member_id, body)
    else:
        _GROUP_REPLAYS[key.kind](shard, group, body)


def decoded(kind: GroupRecordKind, value: bytes) -> Any:
    """Decode a value.

    Raises:
        KafkaError: UNSUPPORTED_VERSION. MalformedFrameError: Malformed value.
    """
    body = decode_record_value(kind, value)
    convert = _CONVERSIONS.get(kind)
    return body if convert is None else convert(body)


# -- members -------------------------------------------------------------------------------------


def _replay_member(group: StreamsGroup, member_id: str, body: Any) -> None:
    if body is None:
        # Its timers stay: a static member that returns may have the same id as before.
        group.remove(member_id)
        return
    known = group.members.get(member_id) or StreamsMember(member_id)
    endpoint = body.user_endpoint
    group.put(
        replace(
            known,
            instance_id=body.instance_id,
            rack_id=body.rack_id,
            client_id=body.client_id,
            client_host=body.client_host,
            rebalance_timeout_ms=body.rebalance_timeout_ms,
            topology_epoch=body.topology_epoch,
            process_id=body.process_id,
            user_endpoint=None if endpoint is None else UserEndpoint(endpoint.host, endpoint.port),
            client_tags={tag.key: tag.value for tag in body.client_tags},
        )
    )


def _replay_target(group: StreamsGroup, member_id: str, body: Tasks | None) -> None:
    if body is None:
        group.target.pop(member_id, None)
        return
    group.target[member_id] = body


def _replay_current(group: StreamsGroup, member_id: str, body: CurrentTasks | None) -> None:
    known = group.members.get(member_id)
    if body is None:
        if known is not None:
            group.put(known.as_gone())
        return
    group.put(
        replace(
            known or StreamsMember(member_id),
            epoch=body.epoch,
            previous_epoch=body.previous_epoch,
            state=_state(body.state),
            assigned=body.assigned,
            revoking=body.revoking,
        )
    )


def _target(body: Any) -> Tasks:
    return Tasks(
        task_sets(body.active_tasks),
        task_sets(body.standby_tasks),
        task_sets(body.warmup_tasks),
    )


def _current(body: Any) -> CurrentTasks:
    epoch: int = body.member_epoch
    return CurrentTasks(
        epoch,
        body.previous_member_epoch,
        body.state,
        AssignedTasks(
            _active_tasks(body.active_tasks, epoch),
            task_sets(body.standby_tasks),
            task_sets(body.warmup_tasks),
        ),
        AssignedTasks(
            _active_tasks(body.active_tasks_pending_revocation, epoch),
            task_sets(body.standby_tasks_pending_revocation),
            task_sets(body.warmup_tasks_pending_revocation),
        ),
    )


def _state(number: int) -> TaskState:
    try:
        return TaskState(number)
    except ValueError:
        return TaskState.UNKNOWN


def _active_tasks(task_ids: Iterable[Any], epoch: int) -> dict[str, dict[int, int]]:
    """Return active tasks with their epochs, which older records do not have."""
    tasks: dict[str, dict[int, int]] = {}
    for entry in task_ids:
        epochs = entry.assignment_epochs
        if epochs is None or len(epochs) != len(entry.partitions):
            epochs = [epoch] * len(entry.partitions)
        tasks[entry.subtopology_id] = dict(zip(entry.partitions, epochs, strict=True))
    return tasks


# -- groups --------------------------------------------------------------------------------------


def _replay_epoch(shard: ServingShard, group: StreamsGroup, body: Any) -> None:
    if body is None:
        delete(shard, group)
        return
    group.epoch = body.epoch
    group.metadata_hash = body.metadata_hash
    group.validated_topology_epoch = body.validated_topology_epoch
    group.description_epochs = (
        body.stored_description_topology_epoch,
        body.failed_description_topology_epoch,
    )
    configs = body.last_assignment_configs or ()
    group.assignment_configs = {config.key: config.value for config in configs}


def _replay_topology(
    shard: ServingShard, group: StreamsGroup, body: StreamsTopology | None
) -> None:
    del shard
    group.topology = body
    group.checked_topics = None


_MEMBER_REPLAYS: Final[Mapping[GroupRecordKind, Callable[[StreamsGroup, str, Any], None]]] = {
    GroupRecordKind.STREAMS_GROUP_MEMBER_METADATA: _replay_member,
    GroupRecordKind.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER: _replay_target,
    GroupRecordKind.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT: _replay_current,
}
_GROUP_REPLAYS: Final[
    Mapping[GroupRecordKind, Callable[[ServingShard, StreamsGroup, Any], None]]
] = {
    GroupRecordKind.STREAMS_GROUP_METADATA: _replay_epoch,
    GroupRecordKind.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA: replay_target_epoch,
    GroupRecordKind.STREAMS_GROUP_TOPOLOGY: _replay_topology,
}
_CONVERSIONS: Final[Mapping[GroupRecordKind, Callable[[Any], Any]]] = {
    GroupRecordKind.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER: _target,
    GroupRecordKind.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT: _current,
    GroupRecordKind.STREAMS_GROUP_TOPOLOGY: topology_of,
}
