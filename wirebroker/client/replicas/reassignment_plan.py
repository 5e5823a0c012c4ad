"""Reassignment plans: Kafka's file format, and generated plans.

    {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2]}]}

A generated plan spreads the replicas of each topic evenly over the allowed brokers: their numbers
differ by at most one. It moves few replicas. A leader stays where it is, unless its replica moves:
a new broker may lead few partitions. Source: kafka-reassign-partitions.
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
    brokers = list(dict.fromkeys(brokers))
    totals = Counter(dict.fromkeys(brokers, 0))
    for replicas in current.values():
        totals.update(broker for broker in replicas if broker in totals)
    planned: dict[TopicPartition, list[int]] = {}
    for partition, replicas in current.items():
        replica_count = len(replicas) if count is None else count
        if replica_count > len(brokers):
            raise ValueError(
                f"{partition} cannot have {counted(replica_count, 'replica')}"
                f" on {counted(len(brokers), 'broker')}"
            )
        planned[partition] = _with_count(replicas, replica_count, totals)
    by_topic: dict[str, dict[TopicPartition, list[int]]] = {}
    for partition, replicas in planned.items():
        by_topic.setdefault(partition.topic, {})[partition] = replicas
    for partitions in by_topic.values():
        _level(partitions, current, totals)
    return _with_leaders(planned, current)


def _with_count(replicas: Sequence[int], count: int, totals: Counter[int]) -> list[int]:
    """Return the replicas on allowed brokers; drop or add some to have this number."""
    chosen = [broker for broker in replicas if broker in totals]
    while len(chosen) > count:  # remove from the fullest broker
        dropped = max(chosen, key=lambda broker: (totals[broker], chosen.index(broker)))
        chosen.remove(dropped)
        totals[dropped] -= 1
    while len(chosen) < count:
        added = min(
            (broker for broker in totals if broker not in chosen),
            key=lambda broker: totals[broker],
        )
        chosen.append(added)
        totals[added] += 1
    return chosen


def _level(
    planned: Mapping[TopicPartition, list[int]],
    current: Mapping[TopicPartition, Sequence[int]],
    totals: Counter[int],
) -> None:
    """Move replicas of a topic until its brokers have equal numbers, or one more than others.

    Which brokers have one more is chosen by `totals`, the replicas of all topics.
    """
    # For each broker, the partitions in the reverse order in which they are moved: those with a new
    # replica first, then those that it follows, then those that it leads.
    owned: dict[int, list[TopicPartition]] = {broker: [] for broker in totals}
    for wanted in range(3):
        for partition, replicas in planned.items():
            for place, broker in enumerate(replicas):
                rank = 2 if broker not in current[partition] else min(place, 1)
                if rank == wanted:
                    owned[broker].append(partition)
    while True:
        fullest = max(totals, key=lambda broker: (len(owned[broker]), totals[broker]))
        emptiest = min(totals, key=lambda broker: (len(owned[broker]), totals[broker]))
        surplus = len(owned[fullest]) - len(owned[emptiest])
        if surplus == 0 or (surplus == 1 and totals[fullest] - totals[emptiest] <= 1):
            return
        partitions = owned[fullest]
        # There is one: the fullest broker has more partitions than the emptiest.
        at = next(
            index
            for index in reversed(range(len(partitions)))
            if emptiest not in planned[partitions[index]]
        )
        partition = partitions.pop(at)
        replicas = planned[partition]
        replicas[replicas.index(fullest)] = emptiest
        owned[emptiest].append(partition)
        totals[fullest] -= 1
        totals[emptiest] += 1


def _with_leaders(
    planned: Mapping[TopicPartition, list[int]], current: Mapping[TopicPartition, Sequence[int]]
) -> dict[TopicPartition, list[int]]:
    """Put the leaders first: those of before, else the brokers that lead the fewest."""
    kept = {
        partition: replicas[0]
        for partition, replicas in planned.items()
        if replicas[0] == current[partition][0]
    }
    leader_counts = Counter(kept.values())
    result: dict[TopicPartition, list[int]] = {}
    for partition, replicas in planned.items():
        leader = kept.get(partition)
        if leader is None:
            leader = min(replicas, key=lambda broker: leader_counts[broker])
            leader_counts[leader] += 1
        result[partition] = [leader, *(broker for broker in replicas if broker != leader)]
    return result


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
