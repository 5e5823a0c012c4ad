"""`wirebroker kafka-get-offsets`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import click

from wirebroker.cli.kafka.plumbing.script import (
    ScriptCommand,
    ScriptFlags,
    run_script,
    script_flags,
)
from wirebroker.cli.kafka.plumbing.topic_filter import topic_filter
from wirebroker.cli.plumbing.completed_names import TOPIC_NAME
from wirebroker.client.errors import ClientError
from wirebroker.client.topics.leaders import TopicPartition, offsets_for_times

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Unpack

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.kafka_client import KafkaClient

_TIMES: Final = {
    "latest": -1,
    "earliest": -2,
    "max-timestamp": -3,
    "earliest-local": -4,
    "latest-tiered": -5,
    "earliest-pending-upload": -6,
}
# topic:partitions, both optional; partitions as 3, 0-3, 5- and -3.
_RULE: Final = re.compile(r"([^:,]*)(?::(?:([0-9]+)|(?:([0-9]+)?-([0-9]+)?))?)?")


@click.command(cls=ScriptCommand)
@click.option("--topic", type=TOPIC_NAME, metavar="TOPIC", help="Topic name or regular expression.")
@click.option("--partitions", metavar="N,...", help="Limit to these partitions.")
@click.option(
    "--topic-partitions",
    "rules",
    metavar="TOPIC:N,...",
    help="Expressions for topics with partitions: topic1:1,topic2:0-3,topic3,topic4:5-,topic5:-3.",
)
@click.option(
    "--time",
    default="latest",
    metavar="TIME",
    help="ms since 1970, or latest, earliest, max-timestamp, earliest-local, latest-tiered.",
)
@click.option("--exclude-internal-topics", is_flag=True, help="Exclude internal topics.")
@script_flags
def kafka_get_offsets(
    *,
    topic: str | None,
    partitions: str | None,
    rules: str | None,
    time: str,
    exclude_internal_topics: bool,
    **flags: Unpack[ScriptFlags],
) -> int:
    """Print offsets of partitions, as kafka-get-offsets.sh."""
    if rules is not None and (topic is not None or partitions is not None):
        raise click.UsageError("--topic-partitions cannot be used with --topic or --partitions")
    timestamp = _timestamp(time)
    is_internal_wanted = not exclude_internal_topics
    is_wanted = _by_flags(topic, partitions) if rules is None else _by_rules(rules)

    async def work(client: KafkaClient, out: Output) -> None:
        topic_partitions = sorted(
            topic_partition
            for topic in (await client.metadata()).topics
            for part in topic.partitions
            if is_wanted(topic_partition := TopicPartition(topic.name, part.partition_index))
            and (is_internal_wanted or not topic.is_internal)
        )
        if not topic_partitions:
            raise ClientError("Could not match any topic-partitions with the specified filters")
        offsets = await offsets_for_times(client, dict.fromkeys(topic_partitions, timestamp))
        for topic_partition in topic_partitions:
            if topic_partition in offsets:
                out.line(
                    f"{topic_partition.topic}:{topic_partition.partition}:{offsets[topic_partition]}"
                )

    return run_script(
        flags, work, failed=lambda message: f"Error occurred: {message}", to_stderr=True
    )


def _timestamp(text: str) -> int:
    if text in _TIMES:
        return _TIMES[text]
    try:
        return int(text)
    except ValueError:
        raise click.UsageError(
            f"Malformed time argument {text}: write ms since 1970 or one of {', '.join(_TIMES)}"
        ) from None


def _by_flags(topic: str | None, partitions: str | None) -> Callable[[TopicPartition], bool]:
    is_topic = topic_filter(topic)
    texts = None if partitions is None else partitions.split(",")
    if texts is not None and not all(number.isascii() and number.isdigit() for number in texts):
        raise click.UsageError(f"--partitions {partitions}: write numbers with commas between")
    numbers = None if texts is None else frozenset(map(int, texts))
    return lambda topic_partition: (
        is_topic(topic_partition.topic, False)
        and (numbers is None or topic_partition.partition in numbers)
    )


def _by_rules(text: str) -> Callable[[TopicPartition], bool]:
    rules = [_rule(rule_text) for rule_text in text.split(",")]
    return lambda topic_partition: any(rule(topic_partition) for rule in rules)


def _rule(text: str) -> Callable[[TopicPartition], bool]:
    """Parse a rule; ranges exclude their end."""
    match = _RULE.fullmatch(text)
    if match is None:
        raise click.UsageError(f"Invalid rule specification: {text}")
    name, single, first, stop_text = match.groups()
    is_topic = topic_filter(name or None)
    start = int(single or first or 0)
    stop = start + 1 if single else int(stop_text) if stop_text else None
    return lambda topic_partition: (
        is_topic(topic_partition.topic, False)
        and topic_partition.partition >= start
        and (stop is None or topic_partition.partition < stop)
    )
