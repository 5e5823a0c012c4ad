"""`wirebroker topic …`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import click

from wirebroker.cli.plumbing.completed_names import CONFIG_NAME, CONFIG_SETTING, TOPIC_NAME
from wirebroker.cli.plumbing.flags import (
    TIME_FORMAT,
    dry_run_hint,
    partitions_flag,
    time_ms,
    yes_flag,
)
from wirebroker.cli.plumbing.output import tell
from wirebroker.cli.plumbing.running import (
    ClusterFlags,
    cluster_flags,
    cluster_flags_beside_config,
    pairs,
    run_verb,
)
from wirebroker.cli.verbs.topic_copy import copy
from wirebroker.client.changes.trimming import planned_trim
from wirebroker.client.changes.trimming import trim as trim_records
from wirebroker.client.checks.dry_runs import check_deletable_records, check_deletable_topics
from wirebroker.client.configs.configs import TOPIC, alter_configs, configs_of
from wirebroker.client.topics.leaders import TopicPartition, offsets_at, partitions_of
from wirebroker.client.topics.partition_choice import of_topic
from wirebroker.client.topics.topic_lookup import find_topics
from wirebroker.client.topics.topics import add_partitions, create_topics, delete_topics
from wirebroker.codecs.primitives import uuid_text
from wirebroker.codecs.special_offsets import EARLIEST, LATEST

if TYPE_CHECKING:
    from typing import Unpack

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.kafka_client import KafkaClient

_NO_ID: Final = bytes(16)
_TRIM_COLUMNS: Final = ("partition", "start", "before", "end", "records")


@click.group()
def topic() -> None:
    """List, create, change and delete topics."""


# --- list


@topic.command("list")
@click.argument("pattern", required=False, metavar="[REGEX]")
@click.option("--internal", is_flag=True, help="List internal topics too.")
@cluster_flags
def list_(*, pattern: str | None, internal: bool, **flags: Unpack[ClusterFlags]) -> int:
    """List topics: all, or those whose name contains a match of REGEX."""
    try:
        name_pattern = re.compile(pattern or "")
    except re.error as error:
        raise click.UsageError(f"{pattern} is not a regular expression: {error}") from None

    async def work(client: KafkaClient, out: Output) -> None:
        rows = [
            {
                "name": topic.name,
                "partitions": len(topic.partitions),
                "replicas": len(topic.partitions[0].replica_nodes) if topic.partitions else 0,
                "is_internal": topic.is_internal,
            }
            for topic in sorted((await client.metadata()).topics, key=lambda topic: topic.name)
            if name_pattern.search(topic.name) and (internal or not topic.is_internal)
        ]
        out.show(rows, out.table(rows, ("name", "partitions", "replicas")))

    return run_verb(flags, work)


# --- describe


@topic.command()
@click.argument("names", nargs=-1, required=True, type=TOPIC_NAME, metavar="TOPIC...")
@cluster_flags
def describe(*, names: tuple[str, ...], **flags: Unpack[ClusterFlags]) -> int:
    """Show topics' partitions with their offsets, and the configs that are set."""

    async def work(client: KafkaClient, out: Output) -> None:
        described = [await _described(client, topic) for topic in await find_topics(client, names)]
        lines: list[str] = []
        for description in described:
            lines += (
                ["", *_description(out, description)] if lines else _description(out, description)
            )
        out.show(described, lines)

    return run_verb(flags, work)


async def _described(client: KafkaClient, topic: Any) -> dict[str, Any]:
    topic_partitions = [
        TopicPartition(topic.name, partition.partition_index) for partition in topic.partitions
    ]
    starts, ends, configs = await client.together(
        offsets_at(client, dict.fromkeys(topic_partitions, EARLIEST)),
        offsets_at(client, dict.fromkeys(topic_partitions, LATEST)),
        configs_of(client, TOPIC, topic.name),
    )
    return {
        "name": topic.name,
        "topic_id": uuid_text(topic.topic_id) if topic.topic_id != _NO_ID else None,
        "is_internal": topic.is_internal,
        "configs": {config.name: config.value for config in configs if config.is_set},
        "partitions": [
            {
                "partition": partition.partition_index,
                "leader": partition.leader_id,
                "epoch": partition.leader_epoch,
                "replicas": list(partition.replica_nodes),
                "isr": list(partition.isr_nodes),
                "start": starts[topic_partition],
                "end": ends[topic_partition],
            }
            for topic_partition, partition in sorted(
                zip(topic_partitions, topic.partitions, strict=True)
            )
        ],
    }


def _description(out: Output, described: dict[str, Any]) -> list[str]:
    lines = [f"{out.title(described['name'])}  id {described['topic_id'] or '-'}"]
    lines += [f"  {name}={value}" for name, value in described["configs"].items()]
    columns = ("partition", "leader", "epoch", "replicas", "isr", "start", "end")
    return [*lines, *out.table(described["partitions"], columns)]


# --- create, alter, delete


@topic.command()
@click.argument("names", nargs=-1, required=True, metavar="TOPIC...")
@click.option(
    "-p",
    "--partitions",
    type=click.IntRange(1),
    default=None,
    metavar="N",
    help="Partitions of each topic. [default: the brokers' num.partitions]",
)
@click.option(
    "-r",
    "--replicas",
    type=click.IntRange(1),
    default=None,
    metavar="N",
    help="Replicas of each partition. [default: the brokers' default.replication.factor]",
)
@click.option(
    "-c",
    "--config",
    "configs",
    multiple=True,
    type=CONFIG_SETTING,
    metavar="KEY=VALUE",
    help="Set a config (repeatable).",
)
@click.option("--if-not-exists", is_flag=True, help="Skip topics that already exist.")
@cluster_flags_beside_config
def create(
    *,
    names: tuple[str, ...],
    partitions: int | None,
    replicas: int | None,
    configs: tuple[str, ...],
    if_not_exists: bool,
    **flags: Unpack[ClusterFlags],
) -> int:
    """Create topics."""
    settings = pairs(configs, "--config")

    async def work(client: KafkaClient, out: Output) -> None:
        created_topics = await create_topics(
            client,
            dict.fromkeys(names, partitions or -1),
            replication_factor=replicas or -1,
            configs=settings,
            may_exist=if_not_exists,
        )
        lines = [
            f"{name}: {'created' if name in created_topics else 'already exists'}" for name in names
        ]
        out.show({"created": created_topics}, lines)

    return run_verb(flags, work)


@topic.command()
@click.argument("name", type=TOPIC_NAME, metavar="TOPIC")
@click.option(
    "-p",
    "--partitions",
    type=click.IntRange(1),
    metavar="N",
    help="New number of partitions, more than now. Keys are then assigned to other partitions.",
)
@click.option(
    "-c",
    "--config",
    "configs",
    multiple=True,
    type=CONFIG_SETTING,
    metavar="KEY=VALUE",
    help="Set a config (repeatable).",
)
@click.option(
    "--unset",
    multiple=True,
    type=CONFIG_NAME,
    metavar="KEY",
    help="Reset a config to its default (repeatable).",
)
@cluster_flags_beside_config
def alter(
    *,
    name: str,
    partitions: int | None,
    configs: tuple[str, ...],
    unset: tuple[str, ...],
    **flags: Unpack[ClusterFlags],
) -> int:
    """Add partitions to a topic or change its configs."""
    changes: dict[str, str | None] = {**pairs(configs, "--config"), **dict.fromkeys(unset)}
    if not changes and partitions is None:
        raise click.UsageError("nothing to change: give --partitions, --config or --unset")

    async def work(client: KafkaClient, out: Output) -> None:
        await find_topics(client, [name])
        if changes:
            await alter_configs(client, TOPIC, name, changes)
        if partitions is not None:
            await add_partitions(client, name, partitions)
        out.show({"altered": [name]}, [f"{name}: altered"])

    return run_verb(flags, work)


@topic.command()
@click.argument("names", nargs=-1, required=True, type=TOPIC_NAME, metavar="TOPIC...")
@yes_flag
@cluster_flags
def delete(*, names: tuple[str, ...], yes: bool, **flags: Unpack[ClusterFlags]) -> int:
    """Delete topics with their records; without --yes only list them."""

    async def work(client: KafkaClient, out: Output) -> None:
        topics = await find_topics(client, names)
        if yes:
            await delete_topics(client, names)
            out.show({"deleted": list(names)}, [f"{name}: deleted" for name in names])
            return
        await check_deletable_topics(client, names)
        rows = [{"name": topic.name, "partitions": len(topic.partitions)} for topic in topics]
        out.show({"would_delete": list(names)}, out.table(rows, ("name", "partitions")))
        tell(dry_run_hint("would be deleted"))

    return run_verb(flags, work)


# --- trim


@topic.command()
@click.argument("name", type=TOPIC_NAME, metavar="TOPIC")
@click.option("--before-offset", type=click.IntRange(0), metavar="N", help="First offset to keep.")
@click.option(
    "--before-time",
    callback=time_ms,
    metavar="TIME",
    help=f"Keep records at or after this time: {TIME_FORMAT}.",
)
@click.option("--all", "everything", is_flag=True, help="Delete all current records.")
@partitions_flag
@yes_flag
@cluster_flags
def trim(
    *,
    name: str,
    before_offset: int | None,
    before_time: int | None,
    everything: bool,
    partitions: list[int] | None,
    yes: bool,
    **flags: Unpack[ClusterFlags],
) -> int:
    """Delete the oldest records of a topic; without --yes only show how many."""
    if [before_offset is not None, before_time is not None, everything].count(True) != 1:
        raise click.UsageError("give one of --before-offset, --before-time and --all")
    timestamp = before_time if before_time is not None else LATEST

    async def work(client: KafkaClient, out: Output) -> None:
        places = of_topic(list(await partitions_of(client, [name])), partitions)
        plan = await planned_trim(client, places, offset=before_offset, timestamp=timestamp)
        starts: dict[TopicPartition, int] = {}
        if yes:
            starts = await trim_records(client, plan)
        else:
            await check_deletable_records(client, places)
        rows = [
            {
                "partition": row.place.partition,
                "start": starts.get(row.place, row.start),
                "before": row.before,
                "end": row.end,
                "records": row.records,
            }
            for row in plan
        ]
        out.show({"topic": name, "done": yes, "partitions": rows}, out.table(rows, _TRIM_COLUMNS))
        if not yes:
            tell(dry_run_hint("would be deleted"))

    return run_verb(flags, work)


topic.add_command(copy)
