"""New offsets of groups: what `--reset-offsets` sets them to.

Source: Kafka's GroupOffsetsResetter.
"""

from __future__ import annotations

import csv
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from wirebroker.cli.kafka.groups.chosen_partitions import in_printed_order
from wirebroker.client.errors import ClientError
from wirebroker.client.topics.leaders import (
    TopicPartition,
    clamped,
    offsets_at,
    offsets_for_times,
)
from wirebroker.codecs.special_offsets import LATEST

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from wirebroker.cli.plumbing.output import Output
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


class Reset(NamedTuple):
    """A reset of one group.

    Attributes:
        current: Returns the group's offsets.
        has_one_group: Whether lines of a file may lack the group.
    """

    group: str
    scenario: Scenario
    current: Callable[[], Awaitable[dict[TopicPartition, int]]]
    has_one_group: bool

    async def goals(
        self, client: KafkaClient, out: Output, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """Return the new offset of each partition, in the order of Kafka's tools.

        Raises:
            click.UsageError: An offset to shift is missing.
        """
        goals = await self._goals(client, out, partitions)
        return {partition: goals[partition] for partition in in_printed_order(goals)}

    async def _goals(
        self, client: KafkaClient, out: Output, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, int]:
        scenario = self.scenario
        if scenario.timestamp is not None:
            return await _goals_at(client, out, partitions, scenario.timestamp)
        if scenario.offset is not None:
            return await clamped(client, dict.fromkeys(partitions, scenario.offset))
        if scenario.file is not None:
            planned = _planned(scenario.file, self.group, has_one_group=self.has_one_group)
            if planned is None:
                out.line(f"\nError: No reset plan for group {self.group} found.")
            return await clamped(client, planned or {})
        current = await self.current()
        if scenario.shift_by is not None:
            for partition in partitions:
                if partition not in current:
                    raise click.UsageError(
                        f"Cannot shift offset for partition {partition} since there is no current"
                        " committed offset"
                    )
            shifted = {part: current[part] + scenario.shift_by for part in partitions}
            return await clamped(client, shifted)
        assert scenario.to_current
        missing = [partition for partition in partitions if partition not in current]
        ends = await offsets_at(client, dict.fromkeys(missing, LATEST))
        return {part: current[part] if part in current else ends[part] for part in partitions}


async def _goals_at(
    client: KafkaClient, out: Output, partitions: Sequence[TopicPartition], timestamp: int
) -> dict[TopicPartition, int]:
    offsets = await offsets_for_times(client, dict.fromkeys(partitions, timestamp))
    later = [partition for partition in in_printed_order(partitions) if partition not in offsets]
    for topic, number in later:
        out.line(
            f"\nWarn: Partition {number} from topic {topic} is empty. Falling back to latest known"
            " offset."
        )
    return offsets | await offsets_at(client, dict.fromkeys(later, LATEST))


def _planned(file: Path, group: str, *, has_one_group: bool) -> dict[TopicPartition, int] | None:
    """Parse `group,topic,partition,offset`; with one group it may be missing."""
    offsets: dict[TopicPartition, int] = {}
    with file.open(encoding="utf-8", newline="") as lines:
        for row in csv.reader(lines):
            try:
                *names, topic, partition, offset = row
                if names != [group] and (names or not has_one_group):
                    continue
                offsets[TopicPartition(topic, int(partition))] = int(offset)
            except ValueError:
                raise ClientError(
                    f"{file}: {','.join(row)} is not topic,partition,offset"
                ) from None
    return offsets or None
