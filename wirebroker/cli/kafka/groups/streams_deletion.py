"""`kafka-streams-groups --delete`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.cli.kafka.groups.group_selection import group_failures, groups_of
from wirebroker.cli.kafka.groups.streams_internal_topics import (
    delete_internal_topics,
    internal_topics_of,
    outcome_of_deletion,
)
from wirebroker.cli.kafka.plumbing.java_words import thrown
from wirebroker.client.errors import ClientError
from wirebroker.client.groups.groups import delete_group
from wirebroker.client.groups.streams_groups import STREAMS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.kafka_client import KafkaClient


async def delete_streams_groups(
    client: KafkaClient, out: Output, chosen: Sequence[str] | None, *, deletes_topics: bool
) -> None:
    """Delete groups (None for all), with `deletes_topics` also their internal topics.

    Prints the outcome.
    """
    listed = {group.name: group.state for group in await groups_of(client, (STREAMS,))}
    names = list(listed) if chosen is None else list(dict.fromkeys(chosen))
    refusals = {name: _why_not_deletable(name, listed) for name in names}
    failures = {name: reason for name, reason in refusals.items() if reason is not None}
    deletable = [name for name in names if name not in failures]
    internal = await internal_topics_of(client, out, deletable) if deletes_topics else {}
    deleted: list[str] = []
    for name in deletable:
        try:
            await delete_group(client, name)
            deleted.append(name)
        except ClientError as error:
            if not error.code:
                raise
            failures[name] = thrown(error)
    failed_topics = await delete_internal_topics(client, out, internal, deleted)
    lines = group_failures("streams groups", deleted, failures, none="''", end=".")
    if internal and deleted:
        lines += outcome_of_deletion([name for name in deleted if name in internal], failed_topics)
    for line in lines:
        out.line(line)


def _why_not_deletable(name: str, listed: Mapping[str, str | None]) -> str | None:
    if name not in listed:
        return (
            f"java.lang.IllegalArgumentException: Group '{name}' does not exist or is not a"
            " streams group."
        )
    if listed[name] == "Dead":
        return f"java.lang.IllegalStateException: Streams group '{name}' group state is DEAD."
    if listed[name] != "Empty":
        return (
            "org.apache.kafka.common.errors.GroupNotEmptyException: Streams group"
            f" '{name}' is not EMPTY."
        )
    return None
