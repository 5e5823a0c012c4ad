"""Targets of `kafka-consumer-groups --reset-offsets`: scopes, scenarios, files."""

from __future__ import annotations

import csv
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from wirebroker.client.errors import ClientError
from wirebroker.client.groups.groups import committed_of
from wirebroker.client.topics.leaders import TopicPartition, clamped, offsets_at, partitions_of
from wirebroker.codecs.special_offsets import EARLIEST, LATEST

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from wirebroker.client.kafka_client import KafkaClient

_DURATION: Final = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")


class Scenario(NamedTuple):
    """Target of a reset; one attribute is set.

    Attributes:
        timestamp: ms since 1970, EARLIEST or LATEST.
        offset: This offset, or the nearest existing one.
        shift_by: Number of records forward, or back.
    """

    timestamp: int | None = None
    offset: int | None = None
    shift_by: int | None = None
    to_current: bool = False
    file: Path | None = None


def moment_ms(text: str) -> int:
    """Parse a date with a time, by default UTC, or raise click.UsageError."""
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise click.UsageError(f"{text} is no time: write 2026-11-22T10:00:00.000") from None
    if parsed.tzinfo is None:
        parsed = parsed.replace(tzinfo=UTC)
    return int(parsed.timestamp() * 1000)


def duration_ms(text: str) -> int:
    """Parse an ISO 8601 duration, or raise click.UsageError."""
    match = _DURATION.fullmatch(text)
    if match is None or text in {"P", "PT"}:
        raise click.UsageError(f"{text} is no duration: write P1DT2H3M4S")
    days, hours, minutes, seconds = (float(number or 0) for number in match.groups())
    duration = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    return int(duration.total_seconds() * 1000)


async def places_of(
    client: KafkaClient, group: str, topics: Sequence[str], *, all_topics: bool
) -> list[TopicPartition]:
    """Return partitions: of topics, of `topic:0,1`, or with committed offsets."""
    if all_topics:
        return sorted(await committed_of(client, group))
    topic_partitions: list[TopicPartition] = []
    for text in topics:
        topic, colon, numbers = text.partition(":")
        existing = list(await partitions_of(client, [topic]))
        if not colon:
            topic_partitions += existing
            continue
        for number in numbers.split(","):
            if not number.isdecimal():
                raise ClientError(f"Invalid partition '{number}' specified in topic arg '{text}'")
            topic_partition = TopicPartition(topic, int(number))
            if topic_partition not in existing:
                raise ClientError(f"The partition {topic_partition} does not exist")
            topic_partitions.append(topic_partition)
    return topic_partitions


async def goals_of(
    client: KafkaClient, group: str, topic_partitions: Sequence[TopicPartition], scenario: Scenario
) -> dict[TopicPartition, int]:
    """Return the new offset of each partition.

    Raises:
        ClientError: Nothing can be shifted, or the file names a missing partition.
    """
    if scenario.timestamp is not None:
        return await offsets_at(client, dict.fromkeys(topic_partitions, scenario.timestamp))
    if scenario.offset is not None:
        return await clamped(client, dict.fromkeys(topic_partitions, scenario.offset))
    if scenario.file is not None:
        return await clamped(client, _in_file(scenario.file, group))
    committed = await committed_of(client, group)
    if scenario.shift_by is not None:
        for topic_partition in topic_partitions:
            if topic_partition not in committed:
                raise ClientError(
                    f"Cannot shift offset for partition {topic_partition} since there is no"
                    " current committed offset"
                )
        return await clamped(
            client,
            {
                topic_partition: committed[topic_partition] + scenario.shift_by
                for topic_partition in topic_partitions
            },
        )
    assert scenario.to_current
    ends = await offsets_at(client, dict.fromkeys(topic_partitions, LATEST))
    return {
        topic_partition: committed.get(topic_partition, ends[topic_partition])
        for topic_partition in topic_partitions
    }


def _in_file(file: Path, group: str) -> dict[TopicPartition, int]:
    """Parse `topic,partition,offset`, with an optional group first."""
    offsets: dict[TopicPartition, int] = {}
    with file.open(encoding="utf-8", newline="") as lines:
        for row in csv.reader(lines):
            try:
                *names, topic, partition, offset = row
                if names and names != [group]:
                    continue
                offsets[TopicPartition(topic, int(partition))] = int(offset)
            except ValueError:
                raise ClientError(
                    f"{file}: {','.join(row)} is not topic,partition,offset"
                ) from None
    return offsets


def scenario_of(
    *,
    to_offset: int | None,
    to_datetime: str | None,
    by_duration: str | None,
    to_earliest: bool,
    to_latest: bool,
    to_current: bool,
    shift_by: int | None,
    from_file: Path | None,
    now_ms: int,
) -> Scenario:
    """Return the requested scenario, or raise click.UsageError unless there is exactly one."""
    scenarios = [
        *([Scenario(offset=to_offset)] if to_offset is not None else []),
        *([Scenario(timestamp=moment_ms(to_datetime))] if to_datetime is not None else []),
        *([Scenario(timestamp=now_ms - duration_ms(by_duration))] if by_duration else []),
        *([Scenario(timestamp=EARLIEST)] if to_earliest else []),
        *([Scenario(timestamp=LATEST)] if to_latest else []),
        *([Scenario(to_current=True)] if to_current else []),
        *([Scenario(shift_by=shift_by)] if shift_by is not None else []),
        *([Scenario(file=from_file)] if from_file is not None else []),
    ]
    if len(scenarios) != 1:
        raise click.UsageError(
            "give one of --to-offset, --to-datetime, --by-duration, --to-earliest, --to-latest,"
            " --to-current, --shift-by and --from-file"
        )
    return scenarios[0]
