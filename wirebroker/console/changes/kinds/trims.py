"""Changes that delete the oldest records of topics, or all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.base.durations import ago_ms
from wirebroker.base.text import counted
from wirebroker.client.changes.trimming import planned_trim, trim
from wirebroker.client.checks.dry_runs import check_deletable_records
from wirebroker.client.topics.leaders import partitions_of
from wirebroker.client.topics.partition_choice import of_topic
from wirebroker.codecs.special_offsets import LATEST
from wirebroker.console.changes.change import (
    ChangeError,
    ChangeKind,
    ConsoleRole,
    Field,
    FieldKind,
    PreparedChange,
)
from wirebroker.console.changes.command_line import verb_line
from wirebroker.console.changes.field_values import (
    number_of,
    partitions_of_field,
    time_flag,
    time_of,
)
from wirebroker.console.view.formats import number

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from wirebroker.client.changes.trimming import TrimmedPartition
    from wirebroker.console.model.collector import Collector

_LOST: Final = "The records cannot be restored."
_READERS: Final = "Groups that have not read them continue at the first record that remains."


async def _empty(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    topic = values["topic"]
    client = collector.client
    places = list(await partitions_of(client, [topic]))
    await check_deletable_records(client, places)
    rows = await planned_trim(client, places, timestamp=LATEST)
    return PreparedChange(
        f"Delete all records of topic {topic}",
        (f"{counted(len(places), 'partition')}: all current records are deleted",),
        verb_line(collector.settings, "topic trim", ["--all", "--yes"], [topic]),
        _trimmed(collector, topic, rows),
        warnings=(_LOST, _READERS),
        notes=_texts(rows),
    )


async def _trim(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    topic = values["topic"]
    client = collector.client
    offset = number_of(values, "before_offset", 0)
    time_ms = time_of(values, "before_time", client.clock.now_ms())
    if (offset is None) == (time_ms is None):
        raise ChangeError("write either an offset or a time", "before_offset")
    partitions = partitions_of_field(values, "partitions")
    places = of_topic(list(await partitions_of(client, [topic])), partitions)
    await check_deletable_records(client, places)
    timestamp = LATEST if time_ms is None else time_ms
    rows = await planned_trim(client, places, offset=offset, timestamp=timestamp)
    if not any(row.records for row in rows):
        raise ChangeError(f"topic {topic} has no records before that", _given(values))
    is_relative = ago_ms(values["before_time"].strip()) is not None
    bound = f"offset {number(offset)}" if offset is not None else values["before_time"].strip()
    texts = _texts(rows)
    lines = tuple(
        f"partition {row.place.partition}: start {number(row.start)} → the end"
        if row.is_to_end
        else text
        for row, text in zip((row for row in rows if row.records), texts, strict=True)
    )
    return PreparedChange(
        f"Delete the records of topic {topic} before {bound}",
        (f"{counted(len(places), 'partition')} of topic {topic}",) if is_relative else lines,
        verb_line(collector.settings, "topic trim", _trim_flags(values, offset), [topic]),
        _trimmed(collector, topic, rows),
        warnings=(_LOST, _READERS),
        # With a time or an end that moves, so do the offsets.
        notes=tuple(text for text in texts if is_relative or text not in lines),
    )


def _given(values: Mapping[str, str]) -> str:
    return "before_offset" if values["before_offset"].strip() else "before_time"


def _trim_flags(values: Mapping[str, str], offset: int | None) -> list[str]:
    if offset is None:
        bound = ["--before-time", time_flag(values["before_time"].strip())]
    else:
        bound = ["--before-offset", str(offset)]
    partitions = partitions_of_field(values, "partitions")
    limit = [] if partitions is None else ["-p", ",".join(map(str, partitions))]
    return [*bound, *limit, "--yes"]


def _texts(rows: Sequence[TrimmedPartition]) -> tuple[str, ...]:
    """Return a line for each partition that has such records."""
    return tuple(
        f"partition {row.place.partition}: start {number(row.start)} → {number(row.before)}"
        f" ({counted(row.records, 'offset')})"
        for row in rows
        if row.records
    )


def _trimmed(
    collector: Collector, topic: str, rows: Sequence[TrimmedPartition]
) -> Callable[[], Awaitable[str]]:
    async def apply() -> str:
        await trim(collector.client, rows)
        count = sum(row.records for row in rows)
        return f"{counted(count, 'offset')} deleted from topic {topic}"

    return apply


KINDS: Final[tuple[ChangeKind, ...]] = (
    ChangeKind(
        "empty-topic",
        "Delete all records",
        ConsoleRole.ADMIN,
        (Field("topic", "Topic"),),
        "topic",
        _empty,
        "topics",
        "topic",
    ),
    ChangeKind(
        "trim-topic",
        "Delete old records",
        ConsoleRole.ADMIN,
        (
            Field("topic", "Topic"),
            Field(
                "before_offset",
                "Before offset",
                FieldKind.NUMBER,
                "The first offset to keep.",
                is_required=False,
            ),
            Field(
                "before_time",
                "Before time (UTC)",
                help="Keep records from then on: 2026-11-22T10:00, or 7d for seven days ago.",
                is_required=False,
            ),
            Field(
                "partitions",
                "Partitions",
                help="Such as 0,1,2; if empty, all.",
                is_required=False,
            ),
        ),
        "topic",
        _trim,
        "topics",
        "topic",
    ),
)
