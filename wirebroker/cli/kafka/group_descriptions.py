"""Output of `kafka-consumer-groups --describe`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from wirebroker.cli.kafka.plumbing.columns import columns
from wirebroker.client.groups.groups import committed_with_epochs, describe_group, progress_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.client.groups.groups import DescribedConsumers, GroupMember
    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.client.topics.leaders import TopicPartition


async def offsets_of(client: KafkaClient, name: str, *, verbose: bool) -> list[str]:
    """Return the lines with a group's offsets."""
    found = await _described(client, name)
    owners = {place: member for member in found.members for place in member.partitions}
    epochs = await committed_with_epochs(client, name) if verbose else {}
    titles = ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"]
    titles += ["CONSUMER-ID", "HOST", "CLIENT-ID"]
    if verbose:
        titles.insert(3, "LEADER-EPOCH")
    rows: list[list[object]] = [list(titles)]
    for each in sorted(
        await progress_of(client, name, owners), key=lambda each: (each.place not in owners, each)
    ):
        member = owners.get(each.place)
        row: list[object] = [name, *each.place, each.committed, each.end, each.lag]
        row += [None] * 3 if member is None else [member.member_id, _host(member), member.client_id]
        if verbose:
            row.insert(3, epochs.get(each.place, (0, None))[1])
        rows.append(row)
    return ["", *columns(rows)]


async def members_of(client: KafkaClient, name: str, *, verbose: bool) -> list[str]:
    """Return the lines with a group's members."""
    found = await _described(client, name)
    has_instances = any(each.instance_id is not None for each in found.members)
    titles = ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    if has_instances:
        titles.insert(2, "GROUP-INSTANCE-ID")
    if verbose:
        titles += ["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"]
    rows: list[list[object]] = [list(titles)]
    for each in found.members:
        row: list[object] = [name, each.member_id, _host(each), each.client_id]
        row.append(len(each.partitions))
        if has_instances:
            row.insert(2, each.instance_id)
        if verbose:
            target = None if each.target is None else _assignment(each.target)
            row += [each.epoch, _assignment(each.partitions), found.assignment_epoch, target]
        rows.append(row)
    return ["", *columns(rows)]


async def state_of(client: KafkaClient, name: str, *, verbose: bool) -> list[str]:
    """Return the lines with a group's state."""
    found = await describe_group(client, name)
    broker_id, address = await client.coordinator_of(name)
    titles = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"]
    row: list[object] = [name, f"{address}  ({broker_id})", found.assignor or None, found.state]
    if verbose:
        titles[4:4] = ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"]
        row += [found.epoch, found.assignment_epoch]
    return ["", *columns([list(titles), [*row, len(found.members)]])]


async def _described(client: KafkaClient, name: str) -> DescribedConsumers:
    found = await describe_group(client, name)
    if found.state == "Empty":
        click.echo(f"\nConsumer group '{name}' has no active members.", err=True)
    elif found.state in {"PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"}:
        click.echo(f"\nWarning: Consumer group '{name}' is rebalancing.", err=True)
    return found


def _host(member: GroupMember) -> str:
    return f"/{member.host}"


def _assignment(places: Sequence[TopicPartition]) -> str:
    topics: dict[str, list[str]] = {}
    for place in sorted(places):
        topics.setdefault(place.topic, []).append(str(place.partition))
    return ";".join(f"{topic}:{','.join(numbers)}" for topic, numbers in topics.items())
