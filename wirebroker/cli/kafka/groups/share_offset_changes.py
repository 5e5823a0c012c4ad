"""`kafka-share-groups --reset-offsets` and `--delete-offsets`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from wirebroker.cli.kafka.groups.chosen_partitions import check_existing, existing_partitions
from wirebroker.cli.kafka.groups.reset_output import reset_csv, reset_table
from wirebroker.cli.kafka.plumbing.java_words import message_of, thrown
from wirebroker.cli.kafka.plumbing.tables import aligned, width_of
from wirebroker.client.errors import ClientError
from wirebroker.client.groups.share_groups import describe_share_group
from wirebroker.client.groups.share_offsets import (
    alter_share_offsets,
    delete_share_offsets,
    shared_progress_of,
)
from wirebroker.codecs.errors import ErrorCode, without_frames

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.cli.kafka.groups.offset_resets import Reset
    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.client.topics.leaders import TopicPartition

_AT_REST: Final = frozenset({"Empty", "Dead"})
# Errors of a group, whose message the tool prints first.
_OF_GROUP: Final = frozenset(
    {
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.NON_EMPTY_GROUP,
    }
)
_OF_TOPICS: Final = frozenset(
    {ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
)


async def reset_share_offsets(
    client: KafkaClient,
    out: Output,
    reset: Reset,
    topics: Sequence[str],
    *,
    execute: bool,
    export: bool,
) -> None:
    """Reset a group's offsets in topics, or in all that it reads, and print them."""
    name = reset.group
    try:
        state = (await describe_share_group(client, name)).state
    except ClientError as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        state = "Dead"
    if state not in _AT_REST:
        click.echo(f"Share group '{name}' is not empty.", err=True)
        raise click.exceptions.Exit(1)
    goals = await reset.goals(client, out, await _partitions_to_reset(client, name, topics))
    if execute and goals:
        await alter_share_offsets(client, name, goals)
    by_group = {name: goals} if goals else {}
    lines = reset_csv(by_group, has_group=False) if export else reset_table(by_group)
    for line in lines:
        out.line(line)


async def _partitions_to_reset(
    client: KafkaClient, name: str, topics: Sequence[str]
) -> list[TopicPartition]:
    if topics:
        return await existing_partitions(client, topics)
    partitions = [progress.place for progress in await shared_progress_of(client, name)]
    await check_existing(client, partitions)
    return partitions


async def delete_topic_offsets(
    client: KafkaClient, out: Output, name: str, topics: Sequence[str]
) -> None:
    """Delete a group's offsets of topics, and print the outcome."""
    chosen = sorted(set(topics))
    first: ClientError | None = None
    results: dict[str, ClientError | None]
    try:
        results = await delete_share_offsets(client, name, chosen)
        first = next((error for error in results.values() if error is not None), None)
    except ClientError as error:
        if not error.code:
            raise
        first = without_frames(error)
        results = dict.fromkeys(chosen, first)
    if first is not None and first.code in _OF_GROUP:
        out.line(f"\nError: {message_of(first)}")
    elif first is not None and first.code not in _OF_TOPICS:
        out.line(f"\nError: Encounter some unknown error: {thrown(first)}")
    rows: list[list[Any]] = [["TOPIC", "STATUS"]]
    for topic, result in sorted(results.items()):
        rows.append([topic, "Successful" if result is None else f"Error: {message_of(result)}"])
    for line in ("", *aligned(rows, (width_of(results), 0))):
        out.line(line)
