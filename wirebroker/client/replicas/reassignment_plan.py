"""Reassignment plans: Kafka's file format, and generated plans.

    {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2]}]}

A generated plan gives each allowed broker the same number of replicas, or one more than others, and
moves few. Leaders that move are spread over all brokers. Source: kafka-reassign-partitions.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.text import counted
from wirebroker.client.topics.leaders import TopicPartition
from wirebroker.codecs.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_VERSION: Final = 1
# The broker chooses the directory.
ANY_DIRECTORY: Final = "any"


def planned_replicas(
    current: Mapping[TopicPartition, Sequence[int]],
    brokers: Sequence[int],
    *,
    count: int | None = None,
) -> dict[TopicPartition, list[int]]:
    """Return a plan that spreads all replicas over the given brokers, `count` or as many as now.

    Raises:
        ValueError: A partition would have more replicas than there are brokers.
    """
    replica_counts = Counter(dict.fromkeys(brokers, 0))
    for replicas in current.values():
        replica_counts.update(broker for broker in replicas if broker in replica_counts)
    planned: dict[TopicPartition, list[int]] = {}
    for partition, replicas in current.items():
        replica_count = len(replicas) if count is None else count
        if replica_count > len(brokers):
            raise ValueError(
                f"{partition} cannot have {counted(replica_count, 'replica')}"
                f" on {counted(len(brokers), 'broker')}"
            )
        new_replicas = [broker for broker in replicas if broker in replica_counts]
        while len(new_replicas) > replica_count:  # remove from the fullest broker
            dropped = max(
                new_replicas,
                key=lambda broker: (replica_counts[broker], new_replicas.index(broker)),
            )
            new_replicas.remove(dropped)
            replica_counts[dropped] -= 1
        while len(new_replicas) < replica_count:
            added = min(
                (broker for broker in brokers if broker not in new_replicas),
                key=lambda broker: replica_counts[broker],
            )
            new_replicas.append(added)
            replica_counts[added] += 1
        planned[partition] = new_replicas
    _level(planned, replica_counts)
    leader_counts: Counter[int] = Counter()
    for partition, new_replicas in planned.items():
        leader = new_replicas[0]
        if leader != current[partition][0]:
            leader = min(new_replicas, key=lambda broker: leader_counts[broker])
        leader_counts[leader] += 1
        planned[partition] = [leader, *(broker for broker in new_replicas if broker != leader)]
    return planned


def _level(planned: Mapping[TopicPartition, list[int]], replica_counts: Counter[int]) -> None:
    """Move replicas from the brokers with the most to those with the fewest, followers first."""
    # Of each broker: the partitions that it leads, then those that it follows.
    owned: dict[int, list[TopicPartition]] = {broker: [] for broker in replica_counts}
    for is_follower in (False, True):
        for partition, replicas in planned.items():
            for broker in replicas[1:] if is_follower else replicas[:1]:
                owned[broker].append(partition)
    while True:
        fullest = max(replica_counts, key=lambda broker: replica_counts[broker])
        emptiest = min(replica_counts, key=lambda broker: replica_counts[broker])
        if replica_counts[fullest] - replica_counts[emptiest] <= 1:
            return
        partitions = owned[fullest]
        # There is one: the fullest broker has more partitions.
        at = next(
            index
            for index in reversed(range(len(partitions)))
            if emptiest not in planned[partitions[index]]
        )
        partition = partitions.pop(at)
        replicas = planned[partition]
        replicas[replicas.index(fullest)] = emptiest
        owned[emptiest].append(partition)
        replica_counts[fullest] -= 1
        replica_counts[emptiest] += 1


def plan_text(plan: Mapping[TopicPartition, Sequence[int]]) -> str:
    """Return a plan as text."""
    rows = [
        {**partition._asdict(), "replicas": list(replicas)} for partition, replicas in plan.items()
    ]
    return json.dumps({"version": _VERSION, "partitions": rows}, separators=(",", ":"))


def plan_directories(text: str) -> dict[tuple[TopicPartition, int], str]:
    """Return a plan's log directories, by partition and broker.

    Raises:
        ValueError: A partition has another number of directories than replicas.
    """
    planned: dict[tuple[TopicPartition, int], str] = {}
    for row in parse_json(text)["partitions"]:
        partition = TopicPartition(row["topic"], row["partition"])
        directories = row.get("log_dirs", [ANY_DIRECTORY] * len(row["replicas"]))
        if len(directories) != len(row["replicas"]):
            raise ValueError(
                f"Size of replicas list {row['replicas']} is different from size of log dirs list"
                f" {directories} for partition {partition}"
            )
        for broker, directory in zip(row["replicas"], directories, strict=True):
            if directory != ANY_DIRECTORY:
                planned[partition, broker] = directory
    return planned


def read_plan(text: str) -> dict[TopicPartition, list[int]]:
    """Parse a plan.

    Raises:
        ValueError: It is invalid.
    """
    try:
        document: Any = parse_json(text)
        if document.get("version", _VERSION) != _VERSION:
            raise ValueError(f"its version is {document['version']}, not {_VERSION}")
        rows = [
            (TopicPartition(row["topic"], row["partition"]), list(row["replicas"]))
            for row in document["partitions"]
        ]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"a field is missing or invalid: {error}") from None
    plan: dict[TopicPartition, list[int]] = {}
    for partition, replicas in rows:
        numbers: list[Any] = [partition.partition, *replicas]
        if not all(isinstance(number, int) and number >= 0 for number in numbers) or not replicas:
            raise ValueError(f"{partition} needs a number and a list of brokers")
        if partition in plan or len(set(replicas)) < len(replicas):
            raise ValueError(f"{partition} is listed twice, or lists a broker twice")
        plan[partition] = replicas
    return plan
