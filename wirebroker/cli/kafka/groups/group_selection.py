"""Lists of groups by their states, and the outcome of deleting them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from wirebroker.cli.kafka.plumbing.java_map import in_map_order
from wirebroker.cli.kafka.plumbing.tables import aligned, width_of
from wirebroker.client.groups.groups import listed_groups

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from wirebroker.client.groups.groups import ListedGroup
    from wirebroker.client.kafka_client import KafkaClient


async def groups_of(client: KafkaClient, kinds: Collection[str | None]) -> list[ListedGroup]:
    """Return the groups of these kinds, in the order of Kafka's tools."""
    groups = [group for group in await listed_groups(client) if group.kind in kinds]
    return in_map_order(groups, lambda group: group.name)


def chosen_states(text: str | None, states: Sequence[str]) -> list[str]:
    """Parse names of states, separated by commas, or raise click.UsageError."""
    by_lower_case = {state.lower(): state for state in states}
    requested = [item.strip().lower() for item in (text or "").split(",") if item.strip()]
    for item in requested:
        if item not in by_lower_case:
            raise click.UsageError(f"{item} is not among {', '.join(states)}")
    return [by_lower_case[item] for item in requested]


def group_table(groups: Sequence[ListedGroup]) -> list[str]:
    """Return groups with their states as lines."""
    rows = [("GROUP", "STATE"), *((group.name, group.state) for group in groups)]
    return aligned(rows, (width_of(group.name for group in groups), 0))


def group_failures(
    kind: str,
    deleted: Sequence[str],
    failures: Mapping[str, str],
    *,
    none: str = "",
    end: str = "",
    copied: int = 0,
) -> list[str]:
    """Return the outcome of deleting groups of a kind.

    `end` follows the deleted ones, and `none` is printed if there are none.
    `copied` is the number of failures that Kafka's tool copies from another map.
    """
    names = ", ".join(f"'{name}'" for name in in_map_order(deleted, str))
    if not failures:
        return [f"Deletion of requested {kind} ({names or none}) was successful."]
    lines = ["", f"Error: Deletion of some {kind} failed:"]
    lines += [
        f"* Group '{name}' could not be deleted due to: {failures[name]}"
        for name in in_map_order(failures, str, copied=copied)
    ]
    if deleted:
        lines += ["", f"These {kind} were deleted successfully: {names}{end}"]
    return lines
