"""Output of `--reset-offsets`, as a table or as CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.cli.kafka.plumbing.java_map import in_map_order
from wirebroker.cli.kafka.plumbing.tables import aligned, width_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wirebroker.client.topics.leaders import TopicPartition

_TITLES = ("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET")


def reset_table(
    goals: Mapping[str, Mapping[TopicPartition, int]], widths: Sequence[int] | None = None
) -> list[str]:
    """Return the new offsets of groups as a table, by default as wide as its names."""
    if not goals:
        return [""]
    if widths is None:
        topics = (partition.topic for offsets in goals.values() for partition in offsets)
        widths = (width_of(goals), width_of(topics), 10, 0)
    rows: list[Sequence[object]] = [_TITLES]
    for group in in_map_order(goals, str):
        rows += [[group, *partition, offset] for partition, offset in goals[group].items()]
    return ["", *aligned(rows, widths)]


def reset_csv(goals: Mapping[str, Mapping[TopicPartition, int]], *, has_group: bool) -> list[str]:
    """Return the new offsets of groups as lines for `--from-file`, and an empty line."""
    lines: list[str] = []
    for group in in_map_order(goals, str):
        prefix = f"{group}," if has_group else ""
        lines += [
            f"{prefix}{partition.topic},{partition.partition},{offset}"
            for partition, offset in goals[group].items()
        ]
    return [*lines, ""]
