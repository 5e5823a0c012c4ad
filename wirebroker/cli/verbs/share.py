"""`wirebroker share …`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import click

from wirebroker.cli.plumbing.completed_names import GROUP_NAME, TOPIC_NAME
from wirebroker.cli.plumbing.flags import (
    dry_run_hint,
    partitions_flag,
    record_flags,
    yes_flag,
)
from wirebroker.cli.plumbing.output import tell
from wirebroker.cli.plumbing.record_format import record_writer
from wirebroker.cli.plumbing.running import ClusterFlags, cluster_flags, run_verb
from wirebroker.cli.plumbing.seeking import (
    seek_choices,
    seek_target,
    show_moves,
    target_flags,
    topic_choices,
)
from wirebroker.client.changes.offset_moves import planned_moves
from wirebroker.client.checks.dry_runs import check_group_deletion
from wirebroker.client.errors import ClientError
from wirebroker.client.groups.groups import delete_group
from wirebroker.client.groups.share_consuming import ShareReader
from wirebroker.client.groups.share_groups import (
    SHARE,
    describe_share_group,
    list_share_groups,
)
from wirebroker.client.groups.share_membership import ShareMembership
from wirebroker.client.groups.share_offsets import shared_progress_of
from wirebroker.client.groups.share_session import AcknowledgeType
from wirebroker.client.topics.leaders import partitions_of

if TYPE_CHECKING:
    from typing import Unpack

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.cli.plumbing.record_format import Writer
    from wirebroker.client.groups.share_consuming import DeliveredRecord
    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.client.topics.leaders import TopicPartition
    from wirebroker.client.topics.partition_choice import TopicChoice

_ACKNOWLEDGEMENTS: Final = {kind.name.lower(): kind for kind in AcknowledgeType}


@click.group()
def share() -> None:
    """Show and change share groups, and consume as a member of one (KIP-932)."""


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


# --- seek, delete


@share.command()
@click.argument("name", type=GROUP_NAME, metavar="GROUP")
@target_flags
@click.option(
    "-t",
    "--topic",
    "topics",
    multiple=True,
    type=TOPIC_NAME,
    callback=topic_choices,
    metavar="TOPIC[:N,...]",
    help=(
        "Limit to this topic or these partitions (repeatable). [default: all topics that the group"
        " has read]"
    ),
)
@partitions_flag
@yes_flag
@cluster_flags
def seek(
    *,
    name: str,
    to: int | str | None,
    to_time: int | None,
    topics: list[TopicChoice],
    partitions: list[int] | None,
    yes: bool,
    **flags: Unpack[ClusterFlags],
) -> int:
    """Move the start offsets of a share group without members; without --yes only show them.

    Its members start from there. A missing group is created.
    """
    if (to is None) == (to_time is None):
        raise click.UsageError("give one of --to and --to-time")
    choices = seek_choices(topics, partitions)
    target = seek_target(to, to_time)

    async def work(client: KafkaClient, out: Output) -> None:
        plan = await planned_moves(client, name, target, choices, new_kind=SHARE)
        if plan.kind != SHARE:
            raise ClientError(f"{name} is not a share group: use `wirebroker group seek`")
        await show_moves(client, out, plan, yes=yes, offset="start")

    return run_verb(flags, work)


@share.command()
@click.argument("names", nargs=-1, required=True, type=GROUP_NAME, metavar="GROUP...")
@yes_flag
@cluster_flags
def delete(*, names: tuple[str, ...], yes: bool, **flags: Unpack[ClusterFlags]) -> int:
    """Delete share groups without members; without --yes only list them."""

    async def work(client: KafkaClient, out: Output) -> None:
        rows: list[dict[str, Any]] = []
        for name in names:
            group = await describe_share_group(client, name)
            rows.append({"name": name, "state": group.state, "members": len(group.members)})
        if not yes:
            for name in names:
                await check_group_deletion(client, name)
            out.show({"would_delete": list(names)}, out.table(rows, ("name", "state", "members")))
            tell(dry_run_hint("would be deleted"))
            return
        for name in names:
            await delete_group(client, name)
        out.show({"deleted": list(names)}, [f"{name}: deleted" for name in names])

    return run_verb(flags, work)


# --- consume


@share.command()
@click.argument("topics", nargs=-1, required=True, type=TOPIC_NAME, metavar="TOPIC...")
@click.option(
    "-g", "--group", required=True, type=GROUP_NAME, metavar="GROUP", help="Share group to join."
)
@click.option("-n", "--count", type=click.IntRange(1), metavar="N", help="Stop after N records.")
@click.option(
    "--idle",
    "idle_s",
    type=click.FloatRange(0.1),
    metavar="SECONDS",
    help="Stop if no record arrives for this time.",
)
@click.option(
    "--acknowledge",
    type=click.Choice(list(_ACKNOWLEDGEMENTS)),
    default="accept",
    help="What to do with printed records: release delivers them again. [default: accept]",
)
@record_flags
@cluster_flags
def consume(
    *,
    topics: tuple[str, ...],
    group: str,
    count: int | None,
    idle_s: float | None,
    acknowledge: str,
    as_json: bool,
    form: str | None,
    **flags: Unpack[ClusterFlags],
) -> int:
    """Print the records of topics as a member of a share group, and acknowledge them.

    A new group starts at new records; its config share.auto.offset.reset changes that.
    """
    writer = record_writer(form, as_json=as_json or flags["output"] == "json")

    async def work(client: KafkaClient, out: Output) -> None:
        await partitions_of(client, topics)  # raises an error for a missing topic
        sink = _Sink(out, writer, count, _ACKNOWLEDGEMENTS[acknowledge], idle_s)
        reader = ShareReader(client, ShareMembership(client, group, topics), topics, sink.take)
        await sink.run(reader)
        if reader.refused:
            tell(
                f"{reader.refused} acknowledgements were refused: their records may be delivered"
                " again"
            )

    return run_verb(flags, work)


class _Sink:
    def __init__(
        self,
        out: Output,
        writer: Writer,
        max_records: int | None,
        acknowledgement: AcknowledgeType,
        idle_s: float | None,
    ) -> None:
        self._out = out
        self._writer = writer
        self._remaining = max_records
        self._acknowledgement = acknowledgement
        self._idle_s = idle_s
        self._deadline: asyncio.Timeout | None = None

    async def run(self, reader: ShareReader) -> None:
        """Read until the last record, or until none arrives for some time."""
        try:
            async with asyncio.timeout(self._idle_s) as self._deadline:
                await reader.run()
        except TimeoutError:
            return

    def take(
        self, topic_partition: TopicPartition, records: list[DeliveredRecord]
    ) -> tuple[list[AcknowledgeType], bool]:
        """Print records; return their acknowledgements, and whether to continue."""
        if self._remaining is not None:
            records = records[: self._remaining]
            self._remaining -= len(records)
        lines = [self._writer(topic_partition, delivered.record) for delivered in records]
        self._out.write(b"".join(lines))
        if self._deadline is not None and self._idle_s is not None:
            self._deadline.reschedule(asyncio.get_running_loop().time() + self._idle_s)
        return [self._acknowledgement] * len(records), self._remaining != 0
