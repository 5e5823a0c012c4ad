"""Elections of leaders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.base.text import counted, few_of
from wirebroker.client.checks.dry_runs import check_cluster_rights
from wirebroker.client.errors import ClientError
from wirebroker.client.replicas.elections import PREFERRED, UNCLEAN, elect_leaders, led_partitions
from wirebroker.console.changes.change import (
    ChangeError,
    ChangeKind,
    ConsoleRole,
    Field,
    FieldKind,
    PreparedChange,
)
from wirebroker.console.changes.command_line import verb_line
from wirebroker.console.changes.field_values import number_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wirebroker.client.replicas.elections import PartitionLeadership
    from wirebroker.client.topics.leaders import TopicPartition
    from wirebroker.console.model.collector import Collector

_MOST_PARTITION: Final = (1 << 31) - 1


async def _partitions(collector: Collector, values: Mapping[str, str]) -> list[PartitionLeadership]:
    """Return the partitions of the fields `topic` and `partition`; without a topic, all."""
    topic = values["topic"]
    partition = number_of(values, "partition", 0, _MOST_PARTITION)
    if partition is not None and not topic:
        raise ChangeError("a partition needs a topic", "topic")
    found = [
        row
        for row in await led_partitions(collector.client, [topic] if topic else None)
        if partition in {None, row.place.partition}
    ]
    if partition is not None and not found:
        raise ChangeError(f"topic {topic} has no partition {partition}", "partition")
    return found


def _arguments(values: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Return the flags and arguments of the verb `elect` for the chosen partitions."""
    partition = values["partition"]
    return (
        ["--partition", partition] if partition else [],
        [values["topic"]] if values["topic"] else [],
    )


async def _elect(collector: Collector, kind: int, places: Sequence[TopicPartition]) -> str:
    results = await elect_leaders(collector.client, kind, places)
    refused = [f"{result.place}: {result.message}" for result in results if result.is_refused]
    elected = counted(sum(not result.code for result in results), "leader")
    if refused:
        raise ClientError(f"{elected} elected; refused: {few_of(refused, 3)}")
    return f"{elected} elected"


async def _preferred(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    partitions = await _partitions(collector, values)
    await check_cluster_rights(collector.client, "alter", "leaders cannot be elected")
    other = [row for row in partitions if row.replicas and row.leader != row.replicas[0]]
    ready = [row for row in other if row.replicas[0] in row.isr]
    waiting = [row for row in other if row.replicas[0] not in row.isr]
    if not ready:
        reason = "every leader is the preferred one"
        if waiting:
            names = few_of([str(row.place) for row in waiting], 5)
            reason = f"the preferred replicas are not in sync: {names}"
        raise ChangeError(reason)
    places = [row.place for row in ready]

    async def apply() -> str:
        return await _elect(collector, PREFERRED, places)

    return PreparedChange(
        f"Elect the preferred leaders of {counted(len(ready), 'partition')}",
        (
            *(f"{row.place}: leader {row.leader} → {row.replicas[0]}" for row in ready),
            *(
                f"{row.place} keeps its leader: broker {row.replicas[0]} is not in sync"
                for row in waiting
            ),
        ),
        verb_line(collector.settings, "elect preferred", *_arguments(values)),
        apply,
    )


async def _unclean(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    partitions = await _partitions(collector, values)
    await check_cluster_rights(collector.client, "alter", "leaders cannot be elected")
    leaderless = [row for row in partitions if row.leader < 0]
    if not leaderless:
        raise ChangeError("no such partition is without a leader", "topic")
    places = [row.place for row in leaderless]

    async def apply() -> str:
        return await _elect(collector, UNCLEAN, places)

    flags, arguments = _arguments(values)
    return PreparedChange(
        f"Elect any running replica of {counted(len(leaderless), 'partition')}",
        tuple(
            f"{row.place}: no leader → one of the brokers"
            f" {', '.join(map(str, row.replicas))} that run"
            for row in leaderless
        ),
        verb_line(collector.settings, "elect unclean", ["--yes", *flags], arguments),
        apply,
        ("records that the new leader lacks are lost, also acknowledged ones",),
    )


_PARTITION: Final = Field(
    "partition", "Partition", FieldKind.NUMBER, help="Empty: all.", is_required=False
)

KINDS: Final[tuple[ChangeKind, ...]] = (
    ChangeKind(
        "elect-preferred",
        "Elect preferred leaders",
        ConsoleRole.ADMIN,
        (Field("topic", "Topic", help="Empty: all topics.", is_required=False), _PARTITION),
        "topic",
        _preferred,
        "reassignments",
    ),
    ChangeKind(
        "elect-unclean",
        "Elect leaders of partitions without one",
        ConsoleRole.ADMIN,
        (Field("topic", "Topic"), _PARTITION),
        "topic",
        _unclean,
        "reassignments",
    ),
)
