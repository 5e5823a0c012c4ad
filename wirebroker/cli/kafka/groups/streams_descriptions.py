"""Output of `kafka-streams-groups --describe`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirebroker.cli.kafka.groups.chosen_partitions import in_printed_order
from wirebroker.cli.kafka.plumbing.tables import aligned, width_of
from wirebroker.client.groups.groups import committed_with_epochs
from wirebroker.client.topics.leaders import offsets_at
from wirebroker.codecs.special_offsets import EARLIEST, LATEST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.client.groups.streams_groups import (
        DescribedStreamsGroup,
        DescribedStreamsMember,
        StreamsAssignment,
        StreamsTasks,
    )
    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.client.topics.leaders import TopicPartition
    from wirebroker.net.client.settings import PeerAddress


class StreamsProgress(NamedTuple):
    """A group's progress in a partition; without a commit the lag counts from the first record."""

    committed: int | None
    leader_epoch: int | None
    end: int
    lag: int


async def progress_of(
    client: KafkaClient, group: DescribedStreamsGroup
) -> dict[TopicPartition, StreamsProgress]:
    """Return the progress in the partitions that active tasks read."""
    of_members = [in_printed_order(places) for places in group.read_partitions()]
    read = dict.fromkeys(place for places in of_members for place in places)
    starts = await offsets_at(client, dict.fromkeys(read, EARLIEST))
    ends = await offsets_at(client, dict.fromkeys(read, LATEST))
    committed = await committed_with_epochs(client, group.name)
    progress: dict[TopicPartition, StreamsProgress] = {}
    for place in in_printed_order(read):
        offset, epoch = committed.get(place, (None, None))
        end = ends[place]
        lag = end - (starts[place] if offset is None else offset)
        progress[place] = StreamsProgress(offset, epoch, end, lag)
    return progress


async def offsets_of(
    client: KafkaClient, group: DescribedStreamsGroup, *, verbose: bool
) -> list[str]:
    """Return lines with offsets."""
    progress = await progress_of(client, group)
    if group.state == "Dead" or not group.members:
        return []
    widths = [width_of([group.name]), width_of(place.topic for place in progress), 10, 0]
    titles = ["GROUP", "TOPIC", "PARTITION", "OFFSET-LAG"]
    rows: list[list[object]] = []
    for place, entry in progress.items():
        row: list[object] = [group.name, *place, entry.lag]
        if verbose:
            row[3:3] = [entry.committed, entry.leader_epoch, entry.end]
        rows.append(row)
    if verbose:
        titles[3:3] = ["CURRENT-OFFSET", "LEADER-EPOCH", "LOG-END-OFFSET"]
        widths[3:] = [15] * 4
    return [*_emptiness(group), *aligned([titles, *rows], widths)]


def members_of(group: DescribedStreamsGroup, *, verbose: bool) -> list[str]:
    """Return lines with members."""
    members = group.members
    if group.state == "Dead" or not members:
        return []
    titles = ["GROUP", "MEMBER", "PROCESS", "CLIENT-ID", "ASSIGNMENTS"]
    widths = [
        width_of([group.name]),
        width_of(member.member_id for member in members),
        width_of(member.process_id for member in members),
        width_of(member.client_id for member in members),
        0,
    ]
    rows: list[list[object]] = [_member_row(group.name, member) for member in members]
    if verbose:
        # Kafka's format has no space after the topology epoch.
        titles[1:2] = [
            "TARGET-ASSIGNMENT-EPOCH",
            f"{'TOPOLOGY-EPOCH':15}MEMBER",
            "MEMBER-PROTOCOL",
            "MEMBER-EPOCH",
        ]
        widths[1:2] = [25, 15 + widths[1], 15, 15]
        for row, member in zip(rows, members, strict=True):
            protocol = "classic" if member.is_classic else "streams"
            place = f"{group.topology_epoch:<15}{member.member_id}"
            row[-1] = _tasks(member.assignment, "") + _tasks(member.target, "TARGET-")
            row[1:2] = [group.assignment_epoch, place, protocol, member.epoch]
    return [*_emptiness(group), *aligned([titles, *rows], widths)]


def _member_row(name: str, member: DescribedStreamsMember) -> list[object]:
    tasks = _tasks(member.assignment, "")
    return [name, member.member_id, member.process_id, member.client_id, tasks]


def state_of(
    group: DescribedStreamsGroup, coordinator: tuple[int, PeerAddress], *, verbose: bool
) -> list[str]:
    """Return lines with the state."""
    broker_id, address = coordinator
    place = f"{address} ({broker_id})"
    assignor = group.assignor or ""
    titles = ["GROUP", "COORDINATOR (ID)", "ASSIGNOR", "STATE", "#MEMBERS"]
    widths = [width_of([group.name]), width_of([place], 25), width_of([assignor]), 25, 0]
    row: list[object] = [group.name, place, assignor, group.state, len(group.members)]
    if verbose:
        titles[4:4] = ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"]
        widths[4:4] = [15, 25]
        row[4:4] = [group.epoch, group.assignment_epoch]
    return [*_emptiness(group), *aligned([titles, row], widths)]


def _emptiness(group: DescribedStreamsGroup) -> list[str]:
    if group.state == "Dead":
        return ["", f"Error: Streams group '{group.name}' does not exist."]
    if group.state == "Empty":
        return ["", f"Error: Streams group '{group.name}' has no active members."]
    return []


def _tasks(assignment: StreamsAssignment, prefix: str) -> str:
    kinds = {
        "ACTIVE": assignment.active,
        "STANDBY": assignment.standby,
        "WARMUP": assignment.warmup,
    }
    return "".join(_tasks_of_kind(f"{prefix}{kind}", tasks) for kind, tasks in kinds.items())


def _tasks_of_kind(kind: str, tasks: Sequence[StreamsTasks]) -> str:
    if not tasks:
        return ""
    parts = [f"{group.subtopology}:[{','.join(map(str, group.partitions))}]; " for group in tasks]
    return f"{kind}: {''.join(parts)}"
