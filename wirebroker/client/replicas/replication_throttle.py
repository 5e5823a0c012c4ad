"""Replication throttles for moves (KIP-73).

Topic configs name the throttled replicas, broker configs the rate.

Source: kafka-reassign-partitions --throttle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.client.configs.configs import BROKER, TOPIC, alter_configs
from wirebroker.client.errors import ClientError, with_done

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.client.topics.leaders import TopicPartition

_LEADERS: Final = "leader.replication.throttled.replicas"
_FOLLOWERS: Final = "follower.replication.throttled.replicas"
THROTTLED_REPLICAS: Final = (_LEADERS, _FOLLOWERS)
RATES: Final = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")

# The longest wait for a broker that does not respond.
PATIENCE_S: Final = 3.0

# For moves between log directories.
DIRECTORY_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"


async def throttle(
    client: KafkaClient,
    current: Mapping[TopicPartition, Sequence[int]],
    goal: Mapping[TopicPartition, Sequence[int]],
    bytes_per_s: int,
    *,
    required: Collection[int],
) -> list[int]:
    """Throttle moves from the current to the new replicas.

    Returns the brokers that do not respond and are not throttled.

    Raises:
        ClientError: A broker refuses, or one of `required` does not respond.
    """
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
    brief = client.within(min(client.timeout_s, PATIENCE_S))
    silent: list[int] = []
    for count, broker in enumerate(brokers_of(current, goal)):
        chosen = client if broker in required else brief
        try:
            await alter_configs(chosen, BROKER, f"{broker}", dict.fromkeys(RATES, f"{bytes_per_s}"))
        except ClientError as error:
            if error.code or broker in required:
                done = count - len(silent)
                raise with_done(error, done, "broker", "throttled before") from None
            silent.append(broker)
    return silent


async def unthrottle(
    client: KafkaClient, topics: Sequence[str], brokers: Sequence[int]
) -> list[int]:
    """Remove throttles; return the brokers that do not respond, and keep theirs."""
    for topic in topics:
        await alter_configs(client, TOPIC, topic, dict.fromkeys(THROTTLED_REPLICAS))
    silent: list[int] = []
    for count, broker in enumerate(brokers):
        try:
            await alter_configs(
                client, BROKER, f"{broker}", dict.fromkeys((*RATES, DIRECTORY_RATE))
            )
        except ClientError as error:
            if error.code:
                done = count - len(silent)
                text = "unthrottled before"
                raise with_done(error, done, "broker", text) from None
            silent.append(broker)
    return silent


def _topics(partitions: Mapping[TopicPartition, Sequence[int]]) -> list[str]:
    return sorted({partition.topic for partition in partitions})


def brokers_of(*assignments: Mapping[TopicPartition, Sequence[int]]) -> list[int]:
    """Return the brokers of replicas."""
    return sorted(
        {
            broker
            for assignment in assignments
            for replicas in assignment.values()
            for broker in replicas
        }
    )
