"""Partitions that flags such as `--topic orders:0,1` name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from wirebroker.cli.kafka.plumbing.java_map import in_hash_order, partition_hash
from wirebroker.client.errors import ClientError
from wirebroker.client.topics.leaders import TopicPartition, partitions_of
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wirebroker.client.kafka_client import KafkaClient


def in_printed_order(partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Return partitions in the order of a Java HashMap, as Kafka's tools print them."""
    return in_hash_order(partitions, lambda partition: partition_hash(*partition))


def listed_partitions(text: str) -> list[TopicPartition]:
    """Parse `topic:0,1`, or raise click.UsageError."""
    topic, _, numbers = text.partition(":")
    if not topic or not numbers or ":" in numbers:
        raise click.UsageError(f"Invalid topic arg '{text}', expected topic name and partitions")
    for number in numbers.split(","):
        if not number.isdecimal():
            raise click.UsageError(f"Invalid partition '{number}' specified in topic arg '{text}'")
    return [TopicPartition(topic, int(number)) for number in numbers.split(",")]


async def existing_partitions(client: KafkaClient, texts: Sequence[str]) -> list[TopicPartition]:
    """Return the partitions of topics and of `topic:0,1`.

    Raises:
        ClientError: UNKNOWN_TOPIC_OR_PARTITION for what does not exist.
    """
    listed = [partition for text in texts if ":" in text for partition in listed_partitions(text)]
    whole = list(await partitions_of(client, [text for text in texts if ":" not in text]))
    await check_existing(client, listed)
    return list(dict.fromkeys([*listed, *whole]))


async def check_existing(client: KafkaClient, partitions: Sequence[TopicPartition]) -> None:
    """Raise a ClientError unless all partitions exist."""
    existing = await partitions_of(client, sorted({partition.topic for partition in partitions}))
    missing = [str(partition) for partition in partitions if partition not in existing]
    if missing:
        message = f'The partitions "{",".join(missing)}" do not exist'
        raise ClientError(
            message, code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, broker_message=message
        )
