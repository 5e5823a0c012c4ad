"""Replication throttles for moves (KIP-73).

Topic configs name the throttled replicas, broker configs the rate.

Source: kafka-reassign-partitions --throttle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.client.configs.configs import BROKER, TOPIC, alter_configs
from wirebroker.client.errors import NoResponseError, with_done

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from wirebroker.client.errors import ClientError
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
        ClientError: A broker refuses, or one of `required` or all do not respond.
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
    brokers = brokers_of(current, goal)
    rates: dict[str, str | None] = dict.fromkeys(RATES, f"{bytes_per_s}")
    results = await client.settled(
        *(
            alter_configs(client if broker in required else brief, BROKER, f"{broker}", rates)
            for broker in brokers
        )
    )
    silent = _silent(brokers, results, "throttled", required=required)
    if silent and len(silent) == len(brokers):
        raise NoResponseError(f"no broker is throttled: {results[0]}")
    return silent


async def unthrottle(
    client: KafkaClient, topics: Sequence[str], brokers: Sequence[int]
) -> list[int]:
    """Remove throttles; return the brokers that do not respond, and keep theirs.

    Raises:
        ClientError: A broker refuses.
    """
    for topic in topics:
        await alter_configs(client, TOPIC, topic, dict.fromkeys(THROTTLED_REPLICAS))
    defaults: dict[str, str | None] = dict.fromkeys((*RATES, DIRECTORY_RATE))
    results = await client.settled(
        *(alter_configs(client, BROKER, f"{broker}", defaults) for broker in brokers)
    )
    return _silent(brokers, results, "unthrottled")


def _silent(
    brokers: Sequence[int],
    results: Sequence[ClientError | None],
    done: str,
    *,
    required: Collection[int] = (),
) -> list[int]:
    """Return the brokers that do not respond.

    Raises:
        ClientError: A broker refuses, or one of `required` does not respond.
    """
    errors = {
        broker: error for broker, error in zip(brokers, results, strict=True) if error is not None
    }
    for broker, error in errors.items():
        if broker in required or not isinstance(error, NoResponseError):
            raise with_done(error, len(brokers) - len(errors), "other broker", done) from None
    return list(errors)


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
