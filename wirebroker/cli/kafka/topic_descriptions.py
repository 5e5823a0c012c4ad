"""Output of `kafka-topics --describe`: tab-separated fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.cli.kafka.plumbing.java_map import in_map_order
from wirebroker.client.configs.configs import TOPIC, configs_of
from wirebroker.client.replicas.reassignments import list_reassignments
from wirebroker.client.topics.leaders import TopicPartition
from wirebroker.client.topics.topic_details import topic_details
from wirebroker.codecs.primitives import uuid_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.client.configs.configs import ConfigEntry
    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.client.replicas.reassignments import Reassignment
    from wirebroker.client.topics.topic_details import PartitionDetails

_DEFAULT: Final = "default"
_MIN_ISR: Final = "min.insync.replicas"


class TopicSelection(NamedTuple):
    """Filters; without any, everything is shown."""

    overrides: bool
    under_replicated: bool
    unavailable: bool
    under_min_isr: bool
    at_min_isr: bool


async def description_lines(
    client: KafkaClient, names: Sequence[str], selection: TopicSelection
) -> list[str]:
    """Return the description of topics."""
    moves = (
        {reassignment.place: reassignment for reassignment in await list_reassignments(client)}
        if names
        else {}
    )
    is_whole = not any(selection)
    lines: list[str] = []
    for topic in await topic_details(client, names):
        configs = await configs_of(client, TOPIC, topic.name)
        set_here = ",".join(
            f"{config.name}={config.value}"
            for config in in_map_order(configs, lambda config: config.name)
            if config.source != _DEFAULT
        )
        if is_whole or (selection.overrides and set_here):
            replicas = topic.partitions[0].replicas
            move = moves.get(TopicPartition(topic.name, topic.partitions[0].partition))
            factor = len(replicas) - (len(move.adding) if move else 0)
            lines.append(
                f"Topic: {topic.name}\tTopicId: {uuid_text(topic.topic_id)}"
                f"\tPartitionCount: {len(topic.partitions)}\tReplicationFactor: {factor}"
                f"\tConfigs: {set_here}"
            )
        if selection.overrides:
            continue
        min_isr = _least_isr(configs)
        for partition in topic.partitions:
            move = moves.get(TopicPartition(topic.name, partition.partition))
            if is_whole or _is_shown(partition, selection, min_isr, move):
                lines.append(_partition_line(topic.name, partition, move))
    return lines


def _least_isr(configs: Sequence[ConfigEntry]) -> int:
    return next((int(config.value or 1) for config in configs if config.name == _MIN_ISR), 1)


def _is_shown(
    partition: PartitionDetails,
    selection: TopicSelection,
    least_isr: int,
    move: Reassignment | None,
) -> bool:
    expected = len(partition.replicas) - (len(move.adding) if move else 0)
    in_sync = len(partition.isr)
    return (
        (selection.under_replicated and in_sync < expected)
        or (selection.unavailable and partition.leader < 0)
        or (selection.under_min_isr and in_sync < least_isr)
        or (selection.at_min_isr and in_sync == least_isr)
    )


def _partition_line(topic: str, partition: PartitionDetails, move: Reassignment | None) -> str:
    leader = partition.leader if partition.leader >= 0 else "none"
    fields = [
        f"\tTopic: {topic}",
        f"Partition: {partition.partition}",
        f"Leader: {leader}",
        f"Replicas: {_listed(partition.replicas)}",
        f"Isr: {_listed(partition.isr)}",
    ]
    if move is not None:
        fields.append(f"Adding Replicas: {_listed(move.adding)}")
        fields.append(f"Removing Replicas: {_listed(move.removing)}")
    fields.append(f"Elr: {_listed(partition.eligible)}")
    fields.append(f"LastKnownElr: {_listed(partition.last_known_eligible)}")
    return "\t".join(fields)


def _listed(numbers: Sequence[int] | None) -> str:
    return "N/A" if numbers is None else ",".join(map(str, numbers))
