"""Replication throttles for moves (KIP-73).

Topic configs name the throttled replicas, broker configs the rate.

Source: kafka-reassign-partitions --throttle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.client.configs.configs import BROKER, TOPIC, alter_configs
from wirebroker.client.errors import ClientError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.client.topics.leaders import TopicPartition

_LEADERS: Final = "leader.replication.throttled.replicas"
_FOLLOWERS: Final = "follower.replication.throttled.replicas"
THROTTLED_REPLICAS: Final = (_LEADERS, _FOLLOWERS)
RATES: Final = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")

# For moves between log directories.
DIRECTORY_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"


async def throttle(
    client: KafkaClient,
    current: Mapping[TopicPartition, Sequence[int]],
    goal: Mapping[TopicPartition, Sequence[int]],
    bytes_per_s: int,
) -> None:
    """Throttle moves from the current to the new replicas."""
    for topic in _topics(goal):
        moved = [partition for partition in goal if partition.topic == topic]
        sources = [
            f"{partition.partition}:{broker}"
            for partition in moved
            for broker in current[partition]
        ]
        targets = [
            f"{partition.partition}:{broker}"
            for partition in moved
            for broker in goal[partition]
            if broker not in current[partition]
        ]
        changes = {_LEADERS: ",".join(sorted(sources)), _FOLLOWERS: ",".join(sorted(targets))}
        await alter_configs(client, TOPIC, topic, changes)
    for broker in _brokers(current, goal):
        await alter_configs(client, BROKER, f"{broker}", dict.fromkeys(RATES, f"{bytes_per_s}"))


async def unthrottle(
    client: KafkaClient, topics: Sequence[str], brokers: Sequence[int]
) -> list[int]:
    """Remove throttles; return the brokers that do not respond, and keep theirs."""
    for topic in topics:
        await alter_configs(client, TOPIC, topic, dict.fromkeys(THROTTLED_REPLICAS))
    silent: list[int] = []
    for broker in brokers:
        try:
            await alter_configs(
                client, BROKER, f"{broker}", dict.fromkeys((*RATES, DIRECTORY_RATE))
            )
        except ClientError as error:
            if error.code:
                raise
            silent.append(broker)
    return silent


def _topics(partitions: Mapping[TopicPartition, Sequence[int]]) -> list[str]:
    return sorted({partition.topic for partition in partitions})


def _brokers(*assignments: Mapping[TopicPartition, Sequence[int]]) -> list[int]:
    return sorted(
        {
            broker
            for assignment in assignments
            for replicas in assignment.values()
            for broker in replicas
        }
    )
