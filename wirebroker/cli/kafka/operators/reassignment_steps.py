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
from wirebroker.client.replicas.reassignment_plan import ANY_DIRECTORY
from wirebroker.client.replicas.reassignments import (
    alter_reassignments,
    list_reassignments,
    replicas_of,
)
from wirebroker.client.replicas.replication_throttle import DIRECTORY_RATE, throttle, unthrottle
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.client.topics.leaders import TopicPartition

_PAUSE_S: Final = 0.1
_OTHERS_ARE_MOVING: Final = (
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
    """Target replicas, and their directories if the plan has them."""

    replicas: Mapping[TopicPartition, Sequence[int]]
    directories: Mapping[tuple[TopicPartition, int], str]

    @property
    def placed(self) -> dict[PlacedReplica, str]:
        """The directories by replica, in the order of Kafka tools."""
        rows = [(PlacedReplica(broker, at), d) for (at, broker), d in self.directories.items()]
        return dict(sorted(rows))


async def current_json(client: KafkaClient, current: Mapping[TopicPartition, Sequence[int]]) -> str:
    """Return the current replicas and directories as a plan for the way back.

    Raises:
        ClientError: A broker does not respond, or the user is not authorized.
    """
    placed = [PlacedReplica(each, place) for place, brokers in current.items() for each in brokers]
    found = await directories_of(client, placed)
    return reassignment_json(current, {each: at.current for each, at in found.items()})


def reassignment_json(
    replicas: Mapping[TopicPartition, Sequence[int]],
    directories: Mapping[PlacedReplica, str | None] | None = None,
) -> str:
    """Return replicas as a plan of the Kafka tool; unknown directories become any."""
    known = directories or {}
    rows = [
        {
            **place._asdict(),
            "replicas": list(brokers),
            "log_dirs": [
                known.get(PlacedReplica(each, place)) or ANY_DIRECTORY for each in brokers
            ],
        }
        for place, brokers in sorted(replicas.items())
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
    """Start the moves of a plan.

    Raises:
        ClientError: A move is refused, or others are in progress.
    """
    if not is_additional and await list_reassignments(client):
        raise ClientError(_OTHERS_ARE_MOVING)
    running = set(await client.broker_ids())
    unknown = sorted({each for brokers in plan.replicas.values() for each in brokers} - running)
    if unknown:
        raise ClientError(f"Error: Unknown broker id {unknown[0]}")
    current = await _current(client, plan)
    out.line(f"Current partition replica assignment\n\n{await current_json(client, current)}\n")
    out.line("Save this to use as the --reassignment-json-file option during rollback")
    if bytes_per_s is not None or directory_bytes_per_s is not None:
        out.line(_VERIFY_LATER)
    if bytes_per_s is not None:
        await throttle(client, current, plan.replicas, bytes_per_s)
        out.line(f"The inter-broker throttle limit was set to {bytes_per_s} B/s")
    if directory_bytes_per_s is not None:
        for broker in sorted({each.broker_id for each in plan.placed}):
            changes = {DIRECTORY_RATE: f"{directory_bytes_per_s}"}
            await alter_configs(client, BROKER, f"{broker}", changes)
        out.line(f"The replica-alter-dir throttle limit was set to {directory_bytes_per_s} B/s")
    what = "Error reassigning partition(s)"
    await _alter(client, plan.replicas, what, keeps_factor=keeps_factor)
    places = ",".join(f"{each}" for each in sorted(plan.replicas))
    out.line(f"Successfully started partition reassignment{_s(plan.replicas)} for {places}")
    await _move_directories(client, out, plan.placed, timeout_ms)


async def verify_plan(
    client: KafkaClient, out: Output, plan: Plan, *, keeps_throttles: bool
) -> None:
    """Print the progress of a plan; clear throttles if no move is in progress.

    Raises:
        ClientError: The cluster refuses or does not respond.
    """
    moving = {each.place for each in await list_reassignments(client)}
    current = await _current(client, plan, may_lack=True)
    out.line("Status of partition reassignment:")
    for place, goal in sorted(plan.replicas.items()):
        if place in moving:
            out.line(f"Reassignment of partition {place} is still in progress.")
        elif list(current.get(place, ())) == list(goal):
            out.line(f"Reassignment of partition {place} is completed.")
        else:
            there, wanted = (",".join(map(str, x)) for x in (current.get(place, ()), goal))
            out.line(
                f"There is no active reassignment of partition {place}, but replica set is {there}"
                f" rather than {wanted}."
            )
    placed = plan.placed
    found = await directories_of(client, placed) if placed else {}
    out.line("\n".join(_directory_line(each, found[each], path) for each, path in placed.items()))
    is_moved = not any(each.future for each in found.values())
    if not moving and is_moved and not keeps_throttles:
        await _clear_throttles(client, out, plan)


async def cancel_plan(
    client: KafkaClient, out: Output, plan: Plan, *, keeps_throttles: bool
) -> None:
    """Cancel the moves of a plan.

    Raises:
        ClientError: The request is refused.
    """
    moving = {each.place for each in await list_reassignments(client)}
    cancelled = sorted(moving & plan.replicas.keys())
    if cancelled:
        what = f"Error cancelling partition reassignment{_s(cancelled)} for"
        await _alter(client, dict.fromkeys(cancelled), what)
        places = ",".join(map(str, cancelled))
        out.line(f"Successfully cancelled partition reassignment{_s(cancelled)} for: {places}")
    else:
        out.line("None of the specified partition reassignments are active.")
    found = await directories_of(client, plan.placed) if plan.directories else {}
    moves = {each: at.current for each, at in found.items() if at.future and at.current}
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
    topics = sorted({each.topic for each in plan.replicas})
    known = {each.name for each in (await client.metadata()).topics}
    missing = [each for each in topics if each not in known]
    if missing and not may_lack:
        raise _unknown(f"Topic {missing[0]} not found.")
    found = await replicas_of(client, [each for each in topics if each in known])
    absent = [each for each in plan.replicas if each not in found]
    if absent and not may_lack:
        raise _unknown(f"Unable to find partition: {', '.join(map(str, absent))}")
    return {place: found[place] for place in plan.replicas if place in found}


def _unknown(what: str) -> ClientError:
    return ClientError(f"Error: {thrown_for(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, what)}")


async def _alter(
    client: KafkaClient,
    replicas: Mapping[TopicPartition, Sequence[int] | None],
    what: str,
    *,
    keeps_factor: bool = False,
) -> None:
    results = await alter_reassignments(client, replicas, keeps_factor=keeps_factor)
    lines = [
        f"{place}: {each.error_message or explained(each.error_code)}"
        for place, each in sorted(results.items(), key=lambda pair: pair[0])
        if each.error_code
    ]
    if lines:
        raise ClientError("\n".join([f"{what}:", *lines]))


async def _move_directories(
    client: KafkaClient, out: Output, wanted: Mapping[PlacedReplica, str], timeout_ms: int
) -> None:
    left = dict(wanted)
    deadline = client.clock.monotonic() + timeout_ms / 1000
    while left:
        for each in sorted(await move_directories(client, left)):
            out.line(
                f"Successfully started moving log directory to {left.pop(each)} for replica"
                f" {each.place} with broker {each.broker_id} "
            )
        if left and client.clock.monotonic() >= deadline:
            places = ",".join(map(str, left))
            raise ClientError(
                f"Timed out before log directory move{_s(left)} could be started for: {places}"
            )
        if left:
            await pause(_PAUSE_S)


def _directory_line(replica: PlacedReplica, found: ReplicaDirectories, wanted: str) -> str:
    on_broker = f"Partition {replica.place} on broker {replica.broker_id}"
    if found.current is None:
        return (
            f"Partition {replica.place} is not found in any live log dir on broker"
            f" {replica.broker_id}. There is likely an offline log directory on the broker."
        )
    if found.future is not None:
        if found.future == wanted:
            return f"Reassignment of replica {replica} is still in progress."
        return f"{on_broker} is being moved to log dir {found.future} instead of {wanted}."
    if found.current == wanted:
        return f"Reassignment of replica {replica} completed successfully."
    return f"{on_broker} is not being moved from log dir {found.current} to {wanted}."


async def _clear_throttles(client: KafkaClient, out: Output, plan: Plan, before: str = "") -> None:
    running = await client.broker_ids()
    brokers = sorted({*running, *(x for each in plan.replicas.values() for x in each)})
    topics = in_map_order(dict.fromkeys(each.topic for each in plan.replicas), str)
    listed = ",".join(map(str, brokers))
    out.line(f"{before}Clearing broker-level throttles on broker{_s(brokers)} {listed}")
    silent = await unthrottle(client, topics, brokers)
    out.line(f"Clearing topic-level throttles on topic{_s(topics)} {','.join(topics)}")
    if silent:
        raise ClientError(f"Error: broker {silent[0]} does not respond: its throttles are kept")


def _s(
    things: Sequence[object] | Mapping[TopicPartition, object] | Mapping[PlacedReplica, object],
) -> str:
    return "" if len(things) == 1 else "s"
