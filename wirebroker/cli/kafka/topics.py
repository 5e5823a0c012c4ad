"""`wirebroker kafka-topics`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from wirebroker.cli.kafka.plumbing.script import (
    ScriptCommand,
    ScriptFlags,
    run_script,
    script_flags,
)
from wirebroker.cli.kafka.plumbing.topic_filter import topic_filter
from wirebroker.cli.kafka.topic_descriptions import TopicSelection, description_lines
from wirebroker.cli.plumbing.completed_names import TOPIC_NAME
from wirebroker.client.errors import ClientError
from wirebroker.client.topics.topics import add_partitions, create_topics, delete_topics
from wirebroker.codecs.primitives import uuid_text

if TYPE_CHECKING:
    from typing import Unpack

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.kafka_client import KafkaClient

_ACTIONS: Final = ("list", "create", "delete", "describe", "alter")
_COLLIDING: Final = frozenset("._")


class _TopicFlags(ScriptFlags):
    topic: str | None
    topic_id: str | None
    partitions: int | None
    replication_factor: int | None
    replica_assignment: str | None
    configs: tuple[str, ...]
    if_exists: bool
    if_not_exists: bool
    exclude_internal: bool
    topics_with_overrides: bool
    under_replicated_partitions: bool
    unavailable_partitions: bool
    under_min_isr_partitions: bool
    at_min_isr_partitions: bool


@click.command(cls=ScriptCommand)
@click.option("--list", "list_", is_flag=True, help="List topics.")
@click.option("--create", is_flag=True, help="Create a topic.")
@click.option("--delete", is_flag=True, help="Delete topics.")
@click.option("--describe", is_flag=True, help="Show the partitions of topics.")
@click.option("--alter", is_flag=True, help="Add partitions to topics.")
@click.option(
    "--topic",
    type=TOPIC_NAME,
    metavar="TOPIC",
    help="Topic name; except for --create, a regular expression.",
)
@click.option("--topic-id", metavar="ID", help="Id of the topic to describe.")
@click.option("--partitions", type=int, metavar="N", help="Number of partitions.")
@click.option(
    "--replication-factor", type=int, metavar="N", help="Number of replicas of each partition."
)
@click.option("--replica-assignment", metavar="ID:ID,...", help="Brokers of each partition.")
@click.option(
    "--config", "configs", multiple=True, metavar="KEY=VALUE", help="Config of the new topic."
)
@click.option("--delete-config", "_", multiple=True, expose_value=False, hidden=True)
@click.option("--if-exists", is_flag=True, help="Skip topics that do not exist.")
@click.option("--if-not-exists", is_flag=True, help="Skip topics that already exist.")
@click.option("--exclude-internal", is_flag=True, help="Exclude internal topics.")
@click.option(
    "--topics-with-overrides", is_flag=True, help="Show only topics with config overrides."
)
@click.option(
    "--under-replicated-partitions", is_flag=True, help="Show only under-replicated partitions."
)
@click.option(
    "--unavailable-partitions", is_flag=True, help="Show only partitions without a leader."
)
@click.option(
    "--under-min-isr-partitions",
    is_flag=True,
    help="Show only partitions below min.insync.replicas.",
)
@click.option(
    "--at-min-isr-partitions",
    is_flag=True,
    help="Show only partitions at exactly min.insync.replicas.",
)
@click.option("--partition-size-limit-per-response", type=int, metavar="N", hidden=True)
@script_flags
def kafka_topics(
    *,
    list_: bool,
    create: bool,
    delete: bool,
    describe: bool,
    alter: bool,
    partition_size_limit_per_response: int | None,
    **flags: Unpack[_TopicFlags],
) -> int:
    """List, create, change and delete topics, as kafka-topics.sh."""
    del partition_size_limit_per_response  # the broker limits responses
    actions = [list_, create, delete, describe, alter]
    if actions.count(True) != 1:
        raise click.UsageError("give one of --list, --create, --delete, --describe and --alter")
    action = (_list, _create, _delete, _describe, _alter)[actions.index(True)]
    if flags["topic"] is None and (create or delete or alter):
        raise click.UsageError(f"--{_ACTIONS[actions.index(True)]} needs --topic")
    if alter and flags["partitions"] is None:
        raise click.UsageError("--alter needs --partitions")

    async def work(client: KafkaClient, out: Output) -> None:
        await action(client, out, flags)

    return run_script(
        flags, work, failed=lambda message: f"Error while executing topic command : {message}"
    )


async def _list(client: KafkaClient, out: Output, flags: _TopicFlags) -> None:
    for name in await _matching(client, flags):
        out.line(name)


async def _create(client: KafkaClient, out: Output, flags: _TopicFlags) -> None:
    name = flags["topic"]
    assert name is not None
    if _COLLIDING & set(name):
        out.line(
            "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore"
            " ('_') could collide. To avoid issues it is best to use either, but not both."
        )
    count, factor = flags["partitions"], flags["replication_factor"]
    if count is not None and count < 1:
        raise ClientError("The partitions must be greater than 0")
    if factor is not None and not 1 <= factor < 1 << 15:
        raise ClientError("The replication factor must be between 1 and 32767 inclusive")
    assignment = _assignment(flags["replica_assignment"])
    created_topics = await create_topics(
        client,
        {name: count or -1},
        replication_factor=factor or -1,
        configs=_configs(flags["configs"]),
        assignment=assignment,
        may_exist=flags["if_not_exists"],
    )
    for created_topic in created_topics:
        out.line(f"Created topic {created_topic}.")


async def _alter(client: KafkaClient, out: Output, flags: _TopicFlags) -> None:
    del out
    count = flags["partitions"]
    assert count is not None
    assignment = _assignment(flags["replica_assignment"])
    counts = {topic.name: len(topic.partitions) for topic in (await client.metadata()).topics}
    for name in await _matching(client, flags, must_be=not flags["if_exists"]):
        await add_partitions(client, name, count, assignment=assignment[counts[name] :])


async def _delete(client: KafkaClient, out: Output, flags: _TopicFlags) -> None:
    del out
    names = await _matching(client, flags, must_be=not flags["if_exists"])
    if names:
        await delete_topics(client, names)


async def _describe(client: KafkaClient, out: Output, flags: _TopicFlags) -> None:
    wanted_id = flags["topic_id"]
    if wanted_id is None:
        must_be = flags["topic"] is not None and not flags["if_exists"]
        names = await _matching(client, flags, must_be=must_be)
    else:
        names = [
            topic.name
            for topic in (await client.metadata()).topics
            if uuid_text(topic.topic_id) == wanted_id
        ]
        if not names and not flags["if_exists"]:
            raise ClientError(f"TopicId '{wanted_id}' does not exist as expected")
    selection = TopicSelection(
        overrides=flags["topics_with_overrides"],
        under_replicated=flags["under_replicated_partitions"],
        unavailable=flags["unavailable_partitions"],
        under_min_isr=flags["under_min_isr_partitions"],
        at_min_isr=flags["at_min_isr_partitions"],
    )
    for line in await description_lines(client, names, selection):
        out.line(line)


async def _matching(client: KafkaClient, flags: _TopicFlags, *, must_be: bool = False) -> list[str]:
    text = flags["topic"]
    is_wanted = topic_filter(text, exclude_internal=flags["exclude_internal"])
    topics: list[Any] = (await client.metadata()).topics
    names = sorted(topic.name for topic in topics if is_wanted(topic.name, topic.is_internal))
    if must_be and not names:
        raise ClientError(f"Topic '{text}' does not exist as expected")
    return names


def _configs(texts: tuple[str, ...]) -> dict[str, str]:
    configs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise ClientError(
                "requirement failed: Invalid topic config: all configs to be added must be in the"
                ' format "key=val".'
            )
        configs[name.strip()] = value.strip()
    return configs


def _assignment(text: str | None) -> list[list[int]]:
    if text is None:
        return []
    try:
        rows = [[int(broker_id) for broker_id in row.split(":")] for row in text.split(",")]
    except ValueError:
        raise ClientError(f"{text} is no assignment: write 1:2,2:1") from None
    for row in rows:
        if len(set(row)) < len(row):
            raise ClientError("Partition replica lists may not contain duplicate entries")
    if len({len(row) for row in rows}) > 1:
        raise ClientError("Partitions have different replication factors")
    return rows
