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
_RATES: Final = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")

# For moves between log directories.
DIRECTORY_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"


async def throttle(
    client: KafkaClient,
    current: Mapping[TopicPartition, Sequence[int]],
    goal: Mapping[TopicPartition, Sequence[int]],
    bytes_per_s: int,
) -> None:
    """Throttle the moves from the current to the new replicas."""
    for topic in _topics(goal):
        moved = [place for place in goal if place.topic == topic]
        sources = [f"{each.partition}:{broker}" for each in moved for broker in current[each]]
        targets = [
            f"{each.partition}:{broker}"
            for each in moved
            for broker in goal[each]
            if broker not in current[each]
        ]
        changes = {_LEADERS: ",".join(sorted(sources)), _FOLLOWERS: ",".join(sorted(targets))}
        await alter_configs(client, TOPIC, topic, changes)
    for broker in _brokers(current, goal):
        await alter_configs(client, BROKER, f"{broker}", dict.fromkeys(_RATES, f"{bytes_per_s}"))


async def unthrottle(
    client: KafkaClient, topics: Sequence[str], brokers: Sequence[int]
) -> list[int]:
    """Remove the throttles.

    Returns:
        Brokers that do not respond, and keep theirs.
    """
    for topic in topics:
        await alter_configs(client, TOPIC, topic, dict.fromkeys((_LEADERS, _FOLLOWERS)))
    silent: list[int] = []
    for broker in brokers:
        try:
            await alter_configs(
                client, BROKER, f"{broker}", dict.fromkeys((*_RATES, DIRECTORY_RATE))
            )
        except ClientError as error:
            if error.code:
                raise
            silent.append(broker)
    return silent


def _topics(places: Mapping[TopicPartition, Sequence[int]]) -> list[str]:
    return sorted({place.topic for place in places})


def _brokers(*of: Mapping[TopicPartition, Sequence[int]]) -> list[int]:
    return sorted({broker for each in of for replicas in each.values() for broker in replicas})
