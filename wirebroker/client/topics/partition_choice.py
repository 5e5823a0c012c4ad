"""Topics and partitions that a user names, such as `orders` or `orders:0,1`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirebroker.client.errors import ClientError
from wirebroker.client.topics.leaders import TopicPartition, partitions_of
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wirebroker.client.kafka_client import KafkaClient


class TopicChoice(NamedTuple):
    """A topic, and some of its partitions (None for all)."""

    topic: str
    partitions: tuple[int, ...] | None = None

    def __str__(self) -> str:
        if self.partitions is None:
            return self.topic
        return f"{self.topic}:{','.join(map(str, self.partitions))}"


def topic_choice(text: str) -> TopicChoice:
    """Parse `orders`, or `orders:0,1`; topic names have no colon.

    Raises:
        ValueError: It has another form.
    """
    topic, colon, numbers = text.partition(":")
    if not topic:
        raise ValueError(f"{text[:100]!r} names no topic: write orders, or orders:0,1")
    return TopicChoice(topic, partition_numbers(numbers) if colon else None)


def partition_numbers(text: str) -> tuple[int, ...]:
    """Parse comma-separated partitions, without repetitions.

    Raises:
        ValueError: It has another form.
    """
    texts = [item.strip() for item in text.split(",")]
    if not all(item.isascii() and item.isdigit() and len(item) < 11 for item in texts):
        raise ValueError(f"{text[:100]!r} is not a list of numbers: write 0,1,2")
    return tuple(dict.fromkeys(map(int, texts)))


def of_topic(
    topic_partitions: list[TopicPartition], partitions: Iterable[int] | None
) -> list[TopicPartition]:
    """Return the selected partitions of one topic; None selects all.

    Raises:
        ClientError: A partition does not exist (UNKNOWN_TOPIC_OR_PARTITION).
    """
    if partitions is None:
        return topic_partitions
    by_partition = {
        topic_partition.partition: topic_partition for topic_partition in topic_partitions
    }
    for partition in partitions:
        if partition not in by_partition:
            raise ClientError(
                f"there is no partition {partition}: the topic has {len(by_partition)}, from 0 on",
                code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            )
    return [by_partition[partition] for partition in partitions]


async def partitions_chosen(
    client: KafkaClient, choices: Sequence[TopicChoice]
) -> list[TopicPartition]:
    """Return the partitions of choices, without repetitions.

    Raises:
        ClientError: A topic or partition does not exist.
    """
    existing = list(await partitions_of(client, [choice.topic for choice in choices]))
    chosen = [
        place
        for choice in choices
        for place in of_topic(
            [place for place in existing if place.topic == choice.topic], choice.partitions
        )
    ]
    return list(dict.fromkeys(chosen))
