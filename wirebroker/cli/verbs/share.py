"""`wirebroker share …`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from wirebroker.cli.plumbing.completed_names import GROUP_NAME
from wirebroker.cli.plumbing.running import ClusterFlags, cluster_flags, run_verb
from wirebroker.client.groups.share_groups import (
    describe_share_group,
    list_share_groups,
    shared_progress_of,
)

if TYPE_CHECKING:
    from typing import Unpack

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.kafka_client import KafkaClient


@click.group()
def share() -> None:
    """Show share groups, whose members read the same partitions (KIP-932)."""


@share.command("list")
@cluster_flags
def list_(**flags: Unpack[ClusterFlags]) -> int:
    """List share groups."""

    async def work(client: KafkaClient, out: Output) -> None:
        rows = [
            {"name": group.name, "state": group.state} for group in await list_share_groups(client)
        ]
        out.show(rows, out.table(rows, ("name", "state")))

    return run_verb(flags, work)


@share.command()
@click.argument("names", nargs=-1, required=True, type=GROUP_NAME, metavar="GROUP...")
@cluster_flags
def describe(*, names: tuple[str, ...], **flags: Unpack[ClusterFlags]) -> int:
    """Show the members and the progress of share groups."""

    async def work(client: KafkaClient, out: Output) -> None:
        described: list[dict[str, Any]] = []
        lines: list[str] = []
        for name in names:
            description = await describe_share_group(client, name)
            progress = [
                {
                    **partition_progress.place._asdict(),
                    "start": partition_progress.start,
                    "lag": partition_progress.lag,
                }
                for partition_progress in await shared_progress_of(client, name)
            ]
            members = [
                member._asdict()
                | {"partitions": [f"{topic_partition}" for topic_partition in member.partitions]}
                for member in description.members
            ]
            described.append(description._asdict() | {"members": members, "partitions": progress})
            lines += [""] if lines else []
            assignor = description.assignor or "no assignor"
            head = f"{description.state}, {assignor}, epoch {description.epoch}"
            lines += [f"{out.title(description.name)}  {head}"]
            lines += out.table(members, ("member_id", "client_id", "host", "partitions"))
            lines += out.table(progress, ("topic", "partition", "start", "lag"))
        out.show(described, lines)

    return run_verb(flags, work)
