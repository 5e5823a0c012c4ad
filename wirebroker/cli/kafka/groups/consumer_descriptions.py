"""Output of `kafka-consumer-groups --describe`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from wirebroker.cli.kafka.plumbing.tables import aligned, width_of
from wirebroker.client.groups.groups import committed_with_epochs, describe_group, progress_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wirebroker.client.groups.groups import DescribedConsumers, GroupMember, GroupProgress
    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.client.topics.leaders import TopicPartition

_OFFSET_TITLES: Final = (
    *("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"),
    *("CONSUMER-ID", "HOST", "CLIENT-ID"),
)
_REBALANCING: Final = {"PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"}


async def offsets_of(client: KafkaClient, name: str, *, verbose: bool) -> list[str]:
    """Return lines with offsets: of members with most partitions first, then unassigned ones."""
    description = await _described(client, name)
    owners = {
        topic_partition: member
        for member in description.members
        for topic_partition in member.partitions
    }
    by_place = {progress.place: progress for progress in await progress_of(client, name, owners)}
    epochs = await committed_with_epochs(client, name) if verbose else {}
    rows: list[list[object]] = []
    for place in _in_order(description.members, by_place):
        row = _offset_row(name, by_place[place], owners.get(place))
        if verbose:
            row.insert(3, epochs.get(place, (0, None))[1])
        rows.append(row)
    if not rows:
        return []
    titles = [*_OFFSET_TITLES]
    widths = [
        width_of([name]),
        width_of(place.topic for place in by_place),
        *(10, 15, 15, 15),
        width_of(member.member_id for member in owners.values()),
        width_of(_host(member) for member in owners.values()),
        0,
    ]
    if verbose:
        titles.insert(3, "LEADER-EPOCH")
        widths.insert(3, 15)
    return ["", *aligned([titles, *rows], widths)]


def _in_order(
    members: Iterable[GroupMember], places: Iterable[TopicPartition]
) -> list[TopicPartition]:
    by_size = sorted(members, key=lambda member: -len(member.partitions))
    owned = [place for member in by_size for place in sorted(member.partitions)]
    return list(dict.fromkeys([*owned, *sorted(places)]))


def _offset_row(name: str, progress: GroupProgress, member: GroupMember | None) -> list[object]:
    is_known = progress.committed is not None and progress.end is not None
    return [
        name,
        *progress.place,
        progress.committed,
        progress.end,
        # Kafka's tool shows a negative lag after records were lost.
        (progress.end or 0) - (progress.committed or 0) if is_known else None,
        *([None] * 3 if member is None else [member.member_id, _host(member), member.client_id]),
    ]


async def members_of(client: KafkaClient, name: str, *, verbose: bool) -> list[str]:
    """Return lines with members."""
    description = await _described(client, name)
    members = description.members
    has_instances = any(member.instance_id for member in members)
    # Members of both protocols: the group is being migrated.
    is_mixed = {member.is_upgraded for member in members} >= {True, False}
    current = [_assignment(member.partitions) for member in members]
    target = [_assignment(member.target or ()) for member in members]
    titles = ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    widths = [
        width_of([name] if members else []),
        width_of(member.member_id for member in members),
        width_of(_host(member) for member in members),
        width_of(member.client_id for member in members),
        15,
    ]
    if has_instances:
        titles.insert(2, "GROUP-INSTANCE-ID")
        widths.insert(2, width_of((member.instance_id or "" for member in members), 17))
    if verbose:
        titles += ["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"]
        widths += [15, width_of(current, 20), 15, width_of(target, 20)]
        titles += ["UPGRADED"] if is_mixed else []
        widths += [0] if is_mixed else []
    rows: list[list[object]] = [[*titles]]
    for index, member in enumerate(members):
        row: list[object] = [name, member.member_id, _host(member), member.client_id]
        row.append(len(member.partitions))
        if has_instances:
            row.insert(2, member.instance_id or "")
        if verbose:
            epoch = description.assignment_epoch
            row += [member.epoch, current[index], epoch, target[index]]
            row += [_java_bool(member.is_upgraded)] if is_mixed else []
        rows.append(row)
    end = "" if verbose else " "
    return ["", *(line + end for line in aligned(rows, widths))]


async def state_of(client: KafkaClient, name: str, *, verbose: bool) -> list[str]:
    """Return lines with the state."""
    description = await _described(client, name)
    broker_id, address = await client.coordinator_of(name)
    coordinator = f"{address}  ({broker_id})"
    titles = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"]
    widths = [width_of([name]), width_of([coordinator], 25), 20, 20, 0]
    row: list[object] = [
        name,
        coordinator,
        description.assignor or None,
        description.state,
        len(description.members),
    ]
    if verbose:
        titles[4:4] = ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"]
        widths[4:4] = [15, 25]
        row[4:4] = [description.epoch, description.assignment_epoch]
    return ["", *aligned([titles, row], widths)]


async def _described(client: KafkaClient, name: str) -> DescribedConsumers:
    description = await describe_group(client, name)
    if description.state == "Empty":
        click.echo(f"\nConsumer group '{name}' has no active members.", err=True)
    elif description.state in _REBALANCING:
        click.echo(f"\nWarning: Consumer group '{name}' is rebalancing.", err=True)
    return description


def _host(member: GroupMember) -> str:
    return f"/{member.host}"


def _java_bool(value: bool | None) -> str | None:
    return None if value is None else str(value).lower()


def _assignment(topic_partitions: Sequence[TopicPartition]) -> str:
    topics: dict[str, list[str]] = {}
    for topic_partition in sorted(topic_partitions):
        topics.setdefault(topic_partition.topic, []).append(str(topic_partition.partition))
    return ";".join(f"{topic}:{','.join(numbers)}" for topic, numbers in topics.items()) or "-"
