"""Output of `kafka-consumer-groups --describe`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from wirebroker.cli.kafka.plumbing.tables import columns
from wirebroker.client.groups.groups import committed_with_epochs, describe_group, progress_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.client.groups.groups import DescribedConsumers, GroupMember
    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.client.topics.leaders import TopicPartition


async def offsets_of(client: KafkaClient, name: str, *, verbose: bool) -> list[str]:
    """Return lines with offsets."""
    description = await _described(client, name)
    owners = {
        topic_partition: member
        for member in description.members
        for topic_partition in member.partitions
    }
    epochs = await committed_with_epochs(client, name) if verbose else {}
    titles = ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"]
    titles += ["CONSUMER-ID", "HOST", "CLIENT-ID"]
    if verbose:
        titles.insert(3, "LEADER-EPOCH")
    rows: list[list[object]] = [list(titles)]
    for partition_progress in sorted(
        await progress_of(client, name, owners),
        key=lambda partition_progress: (partition_progress.place not in owners, partition_progress),
    ):
        member = owners.get(partition_progress.place)
        row: list[object] = [
            name,
            *partition_progress.place,
            partition_progress.committed,
            partition_progress.end,
            partition_progress.lag,
        ]
        row += [None] * 3 if member is None else [member.member_id, _host(member), member.client_id]
        if verbose:
            row.insert(3, epochs.get(partition_progress.place, (0, None))[1])
        rows.append(row)
    return ["", *columns(rows)]


async def members_of(client: KafkaClient, name: str, *, verbose: bool) -> list[str]:
    """Return lines with members."""
    description = await _described(client, name)
    has_instances = any(member.instance_id is not None for member in description.members)
    titles = ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    if has_instances:
        titles.insert(2, "GROUP-INSTANCE-ID")
    if verbose:
        titles += ["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"]
    rows: list[list[object]] = [list(titles)]
    for member in description.members:
        row: list[object] = [name, member.member_id, _host(member), member.client_id]
        row.append(len(member.partitions))
        if has_instances:
            row.insert(2, member.instance_id)
        if verbose:
            target = None if member.target is None else _assignment(member.target)
            row += [
                member.epoch,
                _assignment(member.partitions),
                description.assignment_epoch,
                target,
            ]
        rows.append(row)
    return ["", *columns(rows)]


async def state_of(client: KafkaClient, name: str, *, verbose: bool) -> list[str]:
    """Return lines with the state."""
    description = await describe_group(client, name)
    broker_id, address = await client.coordinator_of(name)
    titles = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"]
    row: list[object] = [
        name,
        f"{address}  ({broker_id})",
        description.assignor or None,
        description.state,
    ]
    if verbose:
        titles[4:4] = ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"]
        row += [description.epoch, description.assignment_epoch]
    return ["", *columns([list(titles), [*row, len(description.members)]])]


async def _described(client: KafkaClient, name: str) -> DescribedConsumers:
    description = await describe_group(client, name)
    if description.state == "Empty":
        click.echo(f"\nConsumer group '{name}' has no active members.", err=True)
    elif description.state in {
        "PreparingRebalance",
        "CompletingRebalance",
        "Assigning",
        "Reconciling",
    }:
        click.echo(f"\nWarning: Consumer group '{name}' is rebalancing.", err=True)
    return description


def _host(member: GroupMember) -> str:
    return f"/{member.host}"


def _assignment(topic_partitions: Sequence[TopicPartition]) -> str:
    topics: dict[str, list[str]] = {}
    for topic_partition in sorted(topic_partitions):
        topics.setdefault(topic_partition.topic, []).append(str(topic_partition.partition))
    return ";".join(f"{topic}:{','.join(numbers)}" for topic, numbers in topics.items())
