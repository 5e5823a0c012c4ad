"""Reassignment plans: Kafka's file format, and generated plans.

    {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2]}]}

A generated plan moves few replicas: those on allowed brokers stay, the others go to the brokers
with the fewest. Leaders are spread over all brokers.

Source: the format of kafka-reassign-partitions.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.wording import counted
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
    """Return a plan that puts all replicas on the given brokers.

    Args:
        current: Replicas by partition, the preferred leader first.
        brokers: The allowed brokers.
        count: Replicas of each partition; None for as many as now.

    Raises:
        ValueError: A partition would have more replicas than there are brokers.
    """
    held = Counter(dict.fromkeys(brokers, 0))
    led: Counter[int] = Counter()
    for replicas in current.values():
        held.update(each for each in replicas if each in held)
    planned: dict[TopicPartition, list[int]] = {}
    for place, replicas in current.items():
        wanted = len(replicas) if count is None else count
        if wanted > len(brokers):
            raise ValueError(
                f"{place} cannot have {counted(wanted, 'replica')}"
                f" on {counted(len(brokers), 'broker')}"
            )
        kept = [each for each in replicas if each in held]
        while len(kept) > wanted:  # remove from the fullest broker
            dropped = max(kept, key=lambda each: (held[each], kept.index(each)))
            kept.remove(dropped)
            held[dropped] -= 1
        while len(kept) < wanted:
            added = min((each for each in brokers if each not in kept), key=lambda each: held[each])
            kept.append(added)
            held[added] += 1
        leader = kept[0] if kept[0] == replicas[0] else min(kept, key=lambda each: led[each])
        led[leader] += 1
        planned[place] = [leader, *(each for each in kept if each != leader)]
    return planned


def plan_text(plan: Mapping[TopicPartition, Sequence[int]]) -> str:
    """Return a plan in the file format."""
    rows = [{**place._asdict(), "replicas": list(replicas)} for place, replicas in plan.items()]
    return json.dumps({"version": _VERSION, "partitions": rows}, separators=(",", ":"))


def plan_directories(text: str) -> dict[tuple[TopicPartition, int], str]:
    """Return a plan's log directories, by partition and broker.

    Raises:
        ValueError: A partition has a different number of directories and replicas.
    """
    found: dict[tuple[TopicPartition, int], str] = {}
    for each in parse_json(text)["partitions"]:
        place = TopicPartition(each["topic"], each["partition"])
        directories = each.get("log_dirs", [ANY_DIRECTORY] * len(each["replicas"]))
        if len(directories) != len(each["replicas"]):
            raise ValueError(
                f"Size of replicas list {each['replicas']} is different from size of log dirs list"
                f" {directories} for partition {place}"
            )
        for broker, directory in zip(each["replicas"], directories, strict=True):
            if directory != ANY_DIRECTORY:
                found[place, broker] = directory
    return found


def read_plan(text: str) -> dict[TopicPartition, list[int]]:
    """Parse a plan's file.

    Raises:
        ValueError: The plan is invalid; the message explains it.
    """
    try:
        found: Any = parse_json(text)
        if found.get("version", _VERSION) != _VERSION:
            raise ValueError(f"its version is {found['version']}, which is not {_VERSION}")
        rows = [
            (TopicPartition(each["topic"], each["partition"]), list(each["replicas"]))
            for each in found["partitions"]
        ]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"it lacks what a plan has: {error}") from None
    plan: dict[TopicPartition, list[int]] = {}
    for place, replicas in rows:
        numbers: list[Any] = [place.partition, *replicas]
        if not all(isinstance(each, int) and each >= 0 for each in numbers) or not replicas:
            raise ValueError(f"{place} needs a number, and a list of brokers")
        if place in plan or len(set(replicas)) < len(replicas):
            raise ValueError(f"{place} stands there twice, or has a broker twice")
        plan[place] = replicas
    return plan
