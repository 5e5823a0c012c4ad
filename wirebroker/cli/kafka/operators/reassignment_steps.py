"""Steps of kafka-reassign-partitions: execute, verify and cancel a plan.

Source: Kafka's ReassignPartitionsCommand.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.base.clock import pause
from wirebroker.cli.kafka.plumbing.java_map import in_map_order
from wirebroker.cli.kafka.plumbing.java_words import thrown_for
from wirebroker.client.configs.configs import BROKER, alter_configs
from wirebroker.client.errors import ClientError, explained
from wirebroker.client.replicas.log_dir_moves import (
    PlacedReplica,
    ReplicaDirectories,
    directories_of,
    move_directories,
)
from wirebroker.client.replicas.moves import throttle_new_moves
from wirebroker.client.replicas.reassignment_plan import ANY_DIRECTORY
from wirebroker.client.replicas.reassignments import (
    alter_reassignments,
    list_reassignments,
    replicas_of,
)
from wirebroker.client.replicas.replication_throttle import DIRECTORY_RATE, unthrottle
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.client.topics.leaders import TopicPartition

_PAUSE_S: Final = 0.1
_OTHER_MOVES_IN_PROGRESS: Final = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to"
    " override this and create a new partition assignment in addition to the existing one. The"
    " --additional flag can also be used to change the throttle by resubmitting the current"
    " reassignment."
)
_VERIFY_LATER: Final = (
    "Warning: You must run --verify periodically, until the reassignment completes, to ensure the"
    " throttle is removed."
)


class Plan(NamedTuple):
    """Target replicas, and their directories if given."""

    replicas: Mapping[TopicPartition, Sequence[int]]
    directories: Mapping[tuple[TopicPartition, int], str]

    @property
    def placed(self) -> dict[PlacedReplica, str]:
        """The directories by replica, in Kafka's order."""
        rows = [
            (PlacedReplica(broker, index), d) for (index, broker), d in self.directories.items()
        ]
        return dict(sorted(rows))


async def current_json(client: KafkaClient, current: Mapping[TopicPartition, Sequence[int]]) -> str:
    """Return the current replicas and directories as a plan for the way back."""
    placed = [
        PlacedReplica(broker_id, topic_partition)
        for topic_partition, brokers in current.items()
        for broker_id in brokers
    ]
    directories = await directories_of(client, placed)
    return reassignment_json(
        current,
        {
            replica: replica_directories.current
            for replica, replica_directories in directories.items()
        },
    )


def reassignment_json(
    replicas: Mapping[TopicPartition, Sequence[int]],
    directories: Mapping[PlacedReplica, str | None] | None = None,
) -> str:
    """Return replicas as a plan; unknown directories become any."""
    directory_by_replica = directories or {}
    rows = [
        {
            **topic_partition._asdict(),
            "replicas": list(brokers),
            "log_dirs": [
                directory_by_replica.get(PlacedReplica(broker_id, topic_partition)) or ANY_DIRECTORY
                for broker_id in brokers
            ],
        }
        for topic_partition, brokers in sorted(replicas.items())
    ]
    return json.dumps({"version": 1, "partitions": rows}, separators=(",", ":"), ensure_ascii=False)


async def execute_plan(
    client: KafkaClient,
    out: Output,
    plan: Plan,
    *,
    is_additional: bool,
    keeps_factor: bool,
    bytes_per_s: int | None,
    directory_bytes_per_s: int | None,
    timeout_ms: int,
) -> None:
    """Start a plan's moves.

    Raises:
        ClientError: A move is refused, or others are in progress.
    """
    if not is_additional and await list_reassignments(client):
        raise ClientError(_OTHER_MOVES_IN_PROGRESS)
    running = set(await client.broker_ids())
    unknown = sorted(
        {broker_id for brokers in plan.replicas.values() for broker_id in brokers} - running
    )
    if unknown:
        raise ClientError(f"Error: Unknown broker id {unknown[0]}")
    current = await _current(client, plan)
    out.line(f"Current partition replica assignment\n\n{await current_json(client, current)}\n")
    out.line("Save this to use as the --reassignment-json-file option during rollback")
    if bytes_per_s is not None or directory_bytes_per_s is not None:
        out.line(_VERIFY_LATER)
    if bytes_per_s is not None:
        silent = await throttle_new_moves(client, current, plan.replicas, bytes_per_s)
        for broker_id in silent:
            out.line(f"Warning: broker {broker_id} does not respond and is not throttled")
        out.line(f"The inter-broker throttle limit was set to {bytes_per_s} B/s")
    if directory_bytes_per_s is not None:
        for broker in sorted({replica.broker_id for replica in plan.placed}):
            changes = {DIRECTORY_RATE: f"{directory_bytes_per_s}"}
            await alter_configs(client, BROKER, f"{broker}", changes)
        out.line(f"The replica-alter-dir throttle limit was set to {directory_bytes_per_s} B/s")
    error_heading = "Error reassigning partition(s)"
    await _alter(client, plan.replicas, error_heading, keeps_factor=keeps_factor)
    partitions_text = ",".join(f"{topic_partition}" for topic_partition in sorted(plan.replicas))
    out.line(
        f"Successfully started partition reassignment{_plural_s(plan.replicas)} "
        f"for {partitions_text}"
    )
    await _move_directories(client, out, plan.placed, timeout_ms)


async def verify_plan(
    client: KafkaClient, out: Output, plan: Plan, *, keeps_throttles: bool
) -> None:
    """Print a plan's progress; clear throttles if no move is in progress."""
    moving = {reassignment.place for reassignment in await list_reassignments(client)}
    current = await _current(client, plan, may_lack=True)
    out.line("Status of partition reassignment:")
    for topic_partition, goal in sorted(plan.replicas.items()):
        if topic_partition in moving:
            out.line(f"Reassignment of partition {topic_partition} is still in progress.")
        elif list(current.get(topic_partition, ())) == list(goal):
            out.line(f"Reassignment of partition {topic_partition} is completed.")
        else:
            actual, expected = (
                ",".join(map(str, brokers)) for brokers in (current.get(topic_partition, ()), goal)
            )
            out.line(
                f"There is no active reassignment of partition {topic_partition}, but replica set"
                f" is {actual} rather than {expected}."
            )
    placed = plan.placed
    directories = await directories_of(client, placed) if placed else {}
    out.line(
        "\n".join(
            _directory_line(replica, directories[replica], path) for replica, path in placed.items()
        )
    )
    is_moved = not any(replica_directories.future for replica_directories in directories.values())
    if not moving and is_moved and not keeps_throttles:
        await _clear_throttles(client, out, plan)


async def cancel_plan(
    client: KafkaClient, out: Output, plan: Plan, *, keeps_throttles: bool
) -> None:
    """Cancel a plan's moves."""
    moving = {reassignment.place for reassignment in await list_reassignments(client)}
    cancelled = sorted(moving & plan.replicas.keys())
    if cancelled:
        error_heading = f"Error cancelling partition reassignment{_plural_s(cancelled)} for"
        await _alter(client, dict.fromkeys(cancelled), error_heading)
        partitions_text = ",".join(map(str, cancelled))
        out.line(
            f"Successfully cancelled partition reassignment{_plural_s(cancelled)} "
            f"for: {partitions_text}"
        )
    else:
        out.line("None of the specified partition reassignments are active.")
    directories = await directories_of(client, plan.placed) if plan.directories else {}
    moves = {
        replica: replica_directories.current
        for replica, replica_directories in directories.items()
        if replica_directories.future and replica_directories.current
    }
    if moves:
        await _move_directories(client, out, moves, 0)
        end = ""
    else:
        end = "None of the specified partition moves are active."
    if keeps_throttles:
        out.line(end)
    else:
        await _clear_throttles(client, out, plan, before=end)


async def _current(
    client: KafkaClient, plan: Plan, *, may_lack: bool = False
) -> dict[TopicPartition, list[int]]:
    topics = sorted({topic_partition.topic for topic_partition in plan.replicas})
    existing_topics = {topic.name for topic in (await client.metadata()).topics}
    missing = [name for name in topics if name not in existing_topics]
    if missing and not may_lack:
        raise _unknown(f"Topic {missing[0]} not found.")
    replicas = await replicas_of(client, [name for name in topics if name in existing_topics])
    absent = [
        topic_partition for topic_partition in plan.replicas if topic_partition not in replicas
    ]
    if absent and not may_lack:
        raise _unknown(f"Unable to find partition: {', '.join(map(str, absent))}")
    return {
        topic_partition: replicas[topic_partition]
        for topic_partition in plan.replicas
        if topic_partition in replicas
    }


def _unknown(message: str) -> ClientError:
    return ClientError(f"Error: {thrown_for(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)}")


async def _alter(
    client: KafkaClient,
    replicas: Mapping[TopicPartition, Sequence[int] | None],
    error_heading: str,
    *,
    keeps_factor: bool = False,
) -> None:
    results = await alter_reassignments(client, replicas, keeps_factor=keeps_factor)
    lines = [
        f"{topic_partition}: {result.error_message or explained(result.error_code)}"
        for topic_partition, result in sorted(results.items(), key=lambda pair: pair[0])
        if result.error_code
    ]
    if lines:
        raise ClientError("\n".join([f"{error_heading}:", *lines]))


async def _move_directories(
    client: KafkaClient,
    out: Output,
    target_directories: Mapping[PlacedReplica, str],
    timeout_ms: int,
) -> None:
    remaining = dict(target_directories)
    deadline = client.clock.monotonic() + timeout_ms / 1000
    while remaining:
        for replica in sorted(await move_directories(client, remaining)):
            out.line(
                f"Successfully started moving log directory to {remaining.pop(replica)} for replica"
                f" {replica.place} with broker {replica.broker_id} "
            )
        if remaining and client.clock.monotonic() >= deadline:
            partitions_text = ",".join(map(str, remaining))
            raise ClientError(
                f"Timed out before log directory move{_plural_s(remaining)} could be started for:"
                f" {partitions_text}"
            )
        if remaining:
            await pause(_PAUSE_S)


def _directory_line(
    replica: PlacedReplica, directories: ReplicaDirectories, target_directory: str
) -> str:
    on_broker = f"Partition {replica.place} on broker {replica.broker_id}"
    if directories.current is None:
        return (
            f"Partition {replica.place} is not found in any live log dir on broker"
            f" {replica.broker_id}. There is likely an offline log directory on the broker."
        )
    if directories.future is not None:
        if directories.future == target_directory:
            return f"Reassignment of replica {replica} is still in progress."
        return (
            f"{on_broker} is being moved to log dir {directories.future} instead of"
            f" {target_directory}."
        )
    if directories.current == target_directory:
        return f"Reassignment of replica {replica} completed successfully."
    return (
        f"{on_broker} is not being moved from log dir {directories.current} to {target_directory}."
    )


async def _clear_throttles(client: KafkaClient, out: Output, plan: Plan, before: str = "") -> None:
    running = await client.broker_ids()
    brokers = sorted(
        {
            *running,
            *(broker_id for broker_ids in plan.replicas.values() for broker_id in broker_ids),
        }
    )
    topics = in_map_order(
        dict.fromkeys(topic_partition.topic for topic_partition in plan.replicas), str
    )
    brokers_text = ",".join(map(str, brokers))
    out.line(
        f"{before}Clearing broker-level throttles on broker{_plural_s(brokers)} {brokers_text}"
    )
    silent = await unthrottle(client, topics, brokers)
    out.line(f"Clearing topic-level throttles on topic{_plural_s(topics)} {','.join(topics)}")
    if silent:
        raise ClientError(f"Error: broker {silent[0]} does not respond: its throttles are kept")


def _plural_s(
    items: Sequence[object] | Mapping[TopicPartition, object] | Mapping[PlacedReplica, object],
) -> str:
    return "" if len(items) == 1 else "s"
