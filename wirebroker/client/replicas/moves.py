"""Moves of replicas with their throttle: started, canceled, throttled while they run.

A throttle remains when the moves have ended, until it is removed (KIP-73).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirebroker.base.text import counted
from wirebroker.base.threads import Work, in_thread
from wirebroker.client.configs.configs import BROKER, TOPIC, configs_of
from wirebroker.client.errors import ClientError, NoResponseError, with_text
from wirebroker.client.replicas.reassignment_plan import planned_replicas
from wirebroker.client.replicas.reassignments import list_reassignments, move_replicas, replicas_of
from wirebroker.client.replicas.replication_throttle import (
    DIRECTORY_RATE,
    PATIENCE_S,
    RATES,
    THROTTLED_REPLICAS,
    brokers_of,
    throttle,
    unthrottle,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.client.replicas.reassignments import Reassignment
    from wirebroker.client.topics.leaders import TopicPartition


class Throttles(NamedTuple):
    """The throttles of moves.

    Attributes:
        rates: In bytes per second, of the brokers that have one.
        directory_rates: Those of moves between log directories, likewise.
        silent: The brokers that do not respond.
    """

    rates: dict[int, int]
    directory_rates: dict[int, int]
    silent: list[int]

    @property
    def are_set(self) -> bool:
        """Whether a broker has a throttle, or may have one."""
        return bool(self.rates or self.directory_rates or self.silent)


class ReplicaPlan(NamedTuple):
    """Replicas of partitions, now and as planned."""

    current: dict[TopicPartition, list[int]]
    planned: dict[TopicPartition, list[int]]

    @property
    def moves(self) -> dict[TopicPartition, list[int]]:
        """The planned replicas of partitions that change."""
        return {
            partition: goal
            for partition, goal in self.planned.items()
            if goal != self.current[partition]
        }


async def replicas_of_partitions(
    client: KafkaClient, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, list[int]]:
    """Return the replicas of partitions, in this order.

    Raises:
        ClientError: A topic or partition does not exist.
    """
    requested = list(partitions)
    current = await replicas_of(client, [partition.topic for partition in requested])
    for partition in requested:
        if partition not in current:
            raise ClientError(f"there is no partition {partition}")
    return {partition: current[partition] for partition in requested}


async def spread_replicas(
    client: KafkaClient,
    topics: Sequence[str],
    brokers: Sequence[int] | None = None,
    *,
    count: int | None = None,
) -> ReplicaPlan:
    """Return a plan that spreads topics evenly over brokers and moves few replicas.

    `brokers` are all running ones by default, `count` replicas of a partition as many as now.

    Raises:
        ClientError: A topic or broker does not exist, or there are too few brokers.
    """
    running = await client.broker_ids()
    unknown = sorted(set(brokers or ()) - set(running))
    if unknown:
        listed = ", ".join(map(str, running))
        raise ClientError(f"there is no broker {unknown[0]}; running brokers: {listed}")
    current = await replicas_of(client, topics)
    try:
        planned = await in_thread(
            Work.LISTS, lambda: planned_replicas(current, brokers or running, count=count)
        )
    except ValueError as error:
        raise ClientError(str(error)) from None
    return ReplicaPlan(current, planned)


async def start_moves(
    client: KafkaClient,
    current: Mapping[TopicPartition, Sequence[int]],
    goals: Mapping[TopicPartition, Sequence[int]],
    bytes_per_s: int | None,
) -> list[int]:
    """Start moves from the current replicas, after setting their throttle; None sets none.

    Returns the brokers that do not respond and are not throttled.

    Raises:
        ClientError: A move is refused; others may have started.
    """
    silent: list[int] = []
    if bytes_per_s is not None:
        silent = await throttle_new_moves(client, current, goals, bytes_per_s)
    try:
        await move_replicas(client, goals)
    except ClientError as error:
        if bytes_per_s is None:
            raise
        raise with_text(error, "the throttle is set, and remains") from None
    return silent


async def throttle_new_moves(
    client: KafkaClient,
    current: Mapping[TopicPartition, Sequence[int]],
    goals: Mapping[TopicPartition, Sequence[int]],
    bytes_per_s: int,
) -> list[int]:
    """Set the throttle of new moves, and of running moves, whose lists would otherwise be lost.

    Returns the brokers that do not respond and are not throttled: brokers of running moves, and
    stopped brokers, which copy nothing.

    Source: Kafka's ReassignPartitionsCommand.calculateProposedMoveMap.
    """
    running = await list_reassignments(client)
    alive = await client.broker_ids()
    return await throttle(
        client,
        {**{row.place: row.origin for row in running}, **current},
        {**{row.place: row.goal for row in running}, **goals},
        bytes_per_s,
        required=set(alive).intersection(brokers_of(current, goals)),
    )


class Cancellation(NamedTuple):
    """The result of canceling moves.

    Attributes:
        canceled: Number of canceled moves; others had ended.
        silent: The brokers that do not respond, and may keep their throttle.
    """

    canceled: int
    silent: list[int]


async def cancel_moves(client: KafkaClient, reassignments: Sequence[Reassignment]) -> Cancellation:
    """Cancel moves and remove the throttles of all brokers.

    Raises:
        ClientError: The cluster refuses it; the message says how many were canceled.
    """
    ended = await move_replicas(client, {row.place: None for row in reassignments})
    count = len(reassignments) - len(ended)
    try:
        silent = await unthrottle_moves(client, {row.place.topic for row in reassignments})
    except ClientError as error:
        text = f"{error}; {counted(count, 'move')} canceled before"
        raise ClientError(text, code=error.code) from error
    return Cancellation(count, silent)


async def throttle_moves(
    client: KafkaClient, reassignments: Sequence[Reassignment], bytes_per_s: int
) -> list[int]:
    """Set the throttle of running moves, between two brokers.

    Returns the brokers that do not respond and are not throttled.
    """
    return await throttle(
        client,
        {row.place: row.origin for row in reassignments},
        {row.place: row.goal for row in reassignments},
        bytes_per_s,
        required=(),
    )


async def unthrottle_moves(client: KafkaClient, topics: Iterable[str]) -> list[int]:
    """Remove the throttles of topics and of all brokers; return brokers that do not respond."""
    return await unthrottle(client, sorted(set(topics)), await client.broker_ids())


async def throttles_of(client: KafkaClient) -> Throttles:
    """Return the throttles of all running brokers.

    Raises:
        ClientError: This user may not describe the brokers' configs.
    """
    brief = client.within(min(client.timeout_s, PATIENCE_S))
    broker_ids = await client.broker_ids()
    answers = await client.together(*(_throttle_of(brief, broker_id) for broker_id in broker_ids))
    known = dict(zip(broker_ids, answers, strict=True))
    return Throttles(
        {broker_id: rates[0] for broker_id, rates in known.items() if rates and rates[0]},
        {broker_id: rates[1] for broker_id, rates in known.items() if rates and rates[1]},
        [broker_id for broker_id, rates in known.items() if rates is None],
    )


async def throttled_topics(client: KafkaClient, topics: Iterable[str]) -> list[str]:
    """Return those of the topics that have a list of throttled replicas.

    Raises:
        ClientError: This user may not describe the topics' configs.
    """
    throttled: list[str] = []
    for topic in sorted(set(topics)):
        configs = await configs_of(client, TOPIC, topic, names=THROTTLED_REPLICAS)
        if any(config.is_set and config.value for config in configs):
            throttled.append(topic)
    return throttled


async def _throttle_of(client: KafkaClient, broker_id: int) -> tuple[int, int] | None:
    """Return a broker's throttles, between brokers and directories; None if it does not respond.

    A throttle is 0 if there is none.
    """
    names = (*RATES, DIRECTORY_RATE)
    try:
        configs = await configs_of(client, BROKER, str(broker_id), names=names)
    except NoResponseError:
        return None
    rates = {config.name: int(config.value) for config in configs if config.is_set and config.value}
    directory_rate = rates.pop(DIRECTORY_RATE, 0)
    return min(rates.values(), default=0), directory_rate
