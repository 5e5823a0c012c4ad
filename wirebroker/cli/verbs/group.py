"""`wirebroker group …`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from wirebroker.base.text import counted
from wirebroker.cli.plumbing.completed_names import GROUP_NAME, TOPIC_NAME
from wirebroker.cli.plumbing.flags import (
    dry_run_hint,
    partitions_flag,
    yes_flag,
)
from wirebroker.cli.plumbing.output import tell
from wirebroker.cli.plumbing.running import ClusterFlags, cluster_flags, run_verb
from wirebroker.cli.plumbing.seeking import (
    seek_choices,
    seek_target,
    show_moves,
    target_flags,
    topic_choices,
)
from wirebroker.client.changes.member_removal import (
    check_member_removal,
    removable_members,
    remove_members,
)
from wirebroker.client.changes.offset_moves import OffsetTarget, planned_moves
from wirebroker.client.checks.dry_runs import check_group_deletion
from wirebroker.client.errors import ClientError
from wirebroker.client.groups.group_kinds import (
    describe_any_group,
    listed_group,
    progress_of_any,
)
from wirebroker.client.groups.groups import delete_group, list_groups
from wirebroker.client.groups.share_groups import SHARE

if TYPE_CHECKING:
    from typing import Unpack

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.groups.group_kinds import PartitionProgress
    from wirebroker.client.groups.groups import DescribedConsumers, GroupMember
    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.client.topics.partition_choice import TopicChoice


@click.group()
def group() -> None:
    """Show groups of all kinds and their lag, reset their committed offsets, delete groups."""


@group.command("list")
@cluster_flags
def list_(**flags: Unpack[ClusterFlags]) -> int:
    """List groups."""

    async def work(client: KafkaClient, out: Output) -> None:
        rows = [group._asdict() for group in await list_groups(client)]
        out.show(rows, out.table(rows, ("name", "state", "kind", "protocol")))

    return run_verb(flags, work)


# --- describe, lag ---


@group.command()
@click.argument("names", nargs=-1, required=True, type=GROUP_NAME, metavar="GROUP...")
@cluster_flags
def describe(*, names: tuple[str, ...], **flags: Unpack[ClusterFlags]) -> int:
    """Show the members of groups, their committed offsets and their lag.

    Of a share group, "committed" is the first offset whose record is not finished.
    """

    async def work(client: KafkaClient, out: Output) -> None:
        data: list[dict[str, Any]] = []
        lines: list[str] = []
        for name in names:
            description = await describe_any_group(client, name)
            assigned = [
                topic_partition
                for member in description.members
                for topic_partition in member.partitions
            ]
            progress = await progress_of_any(client, name, description.kind, assigned)
            rows = _partition_rows(description, progress)
            data.append(_as_data(description, rows))
            members = counted(len(description.members), "member")
            assignor = f", {description.assignor}" if description.assignor else ""
            lines += [
                *([""] if lines else []),
                f"{out.title(name)}  {description.state}, {members}",
            ]
            lines[-1] += assignor
            columns = ("topic", "partition", "committed", "end", "lag", "client", "host")
            lines += out.table(rows, columns) if rows else ["nothing is committed or assigned"]
        out.show(data, lines)

    return run_verb(flags, work)


def _partition_rows(
    description: DescribedConsumers, progress: list[PartitionProgress]
) -> list[dict[str, str | int | None]]:
    owners = {
        topic_partition: member
        for member in description.members
        for topic_partition in member.partitions
    }
    return [
        {
            "topic": partition_progress.place.topic,
            "partition": partition_progress.place.partition,
            "committed": partition_progress.committed,
            "end": partition_progress.end,
            "lag": partition_progress.lag,
            "client": owners[partition_progress.place].client_id
            if partition_progress.place in owners
            else None,
            "host": owners[partition_progress.place].host
            if partition_progress.place in owners
            else None,
        }
        for partition_progress in progress
    ]


def _as_data(description: DescribedConsumers, rows: list[dict[str, Any]]) -> dict[str, Any]:
    members = [
        member._asdict()
        | {"partitions": [topic_partition._asdict() for topic_partition in member.partitions]}
        for member in description.members
    ]
    return description._asdict() | {"members": members, "partitions": rows}


@group.command()
@click.argument("names", nargs=-1, type=GROUP_NAME, metavar="[GROUP...]")
@cluster_flags
def lag(*, names: tuple[str, ...], **flags: Unpack[ClusterFlags]) -> int:
    """Show the lag of groups by topic; without names, of all groups."""

    async def work(client: KafkaClient, out: Output) -> None:
        kinds = {group.name: group.kind for group in await list_groups(client)}
        rows: list[dict[str, Any]] = []
        for name in names or kinds:
            if name not in kinds:
                await describe_any_group(client, name)  # raises an error
            by_topic: dict[str, list[int]] = {}
            for partition_progress in await progress_of_any(client, name, kinds.get(name)):
                if partition_progress.lag is not None:
                    by_topic.setdefault(partition_progress.place.topic, []).append(
                        partition_progress.lag
                    )
            rows += [
                {
                    "group": name,
                    "topic": topic,
                    "partitions": len(lags),
                    "lag": sum(lags),
                    "most": max(lags),
                }
                for topic, lags in by_topic.items()
            ]
        out.show(rows, out.table(rows, ("group", "topic", "partitions", "lag", "most")))

    return run_verb(flags, work)


# --- seek, delete ---


@group.command()
@click.argument("name", type=GROUP_NAME, metavar="GROUP")
@target_flags
@click.option("--by", type=int, metavar="N", help="Move N records forward, or back with -N.")
@click.option(
    "-t",
    "--topic",
    "topics",
    multiple=True,
    type=TOPIC_NAME,
    callback=topic_choices,
    metavar="TOPIC[:N,...]",
    help="Limit to this topic or these partitions (repeatable). [default: all committed offsets]",
)
@partitions_flag
@yes_flag
@cluster_flags
def seek(
    *,
    name: str,
    to: int | str | None,
    to_time: int | None,
    by: int | None,
    topics: list[TopicChoice],
    partitions: list[int] | None,
    yes: bool,
    **flags: Unpack[ClusterFlags],
) -> int:
    """Move the committed offsets of a group without members; without --yes only show them.

    Its consumers start from there. A missing group is created.
    """
    if [to is not None, to_time is not None, by is not None].count(True) != 1:
        raise click.UsageError("give one of --to, --to-time and --by")
    choices = seek_choices(topics, partitions)
    target = OffsetTarget(shift=by) if by is not None else seek_target(to, to_time)

    async def work(client: KafkaClient, out: Output) -> None:
        listed = await listed_group(client, name)
        if listed is not None and listed.kind == SHARE:
            raise ClientError(f"{name} is a share group: use `wirebroker share seek`")
        await show_moves(client, out, await planned_moves(client, name, target, choices), yes=yes)

    return run_verb(flags, work)


# --- offsets and members, deleted


@group.command("remove-members")
@click.argument("name", type=GROUP_NAME, metavar="GROUP")
@click.option(
    "-m",
    "--member",
    "members",
    multiple=True,
    metavar="ID",
    help="Member id, or group.instance.id of a static member (repeatable). [default: all members]",
)
@yes_flag
@cluster_flags
def remove_members_(
    *, name: str, members: tuple[str, ...], yes: bool, **flags: Unpack[ClusterFlags]
) -> int:
    """Remove members of a group; without --yes only list them. Running members join again."""

    async def work(client: KafkaClient, out: Output) -> None:
        chosen = await removable_members(client, name, members)
        rows = [
            {"member": member.instance_id or member.member_id, **_client_of(member)}
            for member in chosen
        ]
        if yes:
            await remove_members(client, name, chosen)
        else:
            await check_member_removal(client, name)
        data = {"group": name, "done": yes, "members": rows}
        out.show(data, out.table(rows, ("member", "client", "host")))
        if not yes:
            tell(dry_run_hint("would be removed"))

    return run_verb(flags, work)


def _client_of(member: GroupMember) -> dict[str, str]:
    return {"client": member.client_id, "host": member.host}


@group.command()
@click.argument("names", nargs=-1, required=True, type=GROUP_NAME, metavar="GROUP...")
@yes_flag
@cluster_flags
def delete(*, names: tuple[str, ...], yes: bool, **flags: Unpack[ClusterFlags]) -> int:
    """Delete groups without members; without --yes only list them."""

    async def work(client: KafkaClient, out: Output) -> None:
        rows: list[dict[str, Any]] = []
        for name in names:
            description = await describe_any_group(client, name)
            progress = await progress_of_any(client, name, description.kind)
            count = sum(entry.committed is not None for entry in progress)
            row = {"name": name, "state": description.state, "members": len(description.members)}
            rows.append(row | {"committed": count})
        if not yes:
            for name in names:
                await check_group_deletion(client, name)
            data = {"would_delete": list(names)}
            out.show(data, out.table(rows, ("name", "state", "members", "committed")))
            tell(dry_run_hint("would be deleted"))
            return
        for name in names:
            await delete_group(client, name)
        out.show({"deleted": list(names)}, [f"{name}: deleted" for name in names])

    return run_verb(flags, work)
