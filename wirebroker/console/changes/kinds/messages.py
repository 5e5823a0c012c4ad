"""Changes of messages: produce one, resend one, copy many."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

from wirebroker.client.records.json_lines import record_line
from wirebroker.client.records.partitioning import Partitioner, partition_for
from wirebroker.client.records.producing import TopicWriter
from wirebroker.client.topics.leaders import partitions_of
from wirebroker.codecs.records.codec import Codec
from wirebroker.console.changes.change import (
    ChangeError,
    ChangeKind,
    ConsoleRole,
    Field,
    FieldKind,
    PreparedChange,
)
from wirebroker.console.changes.command_line import piped, verb_line
from wirebroker.console.changes.field_values import number_of
from wirebroker.console.changes.kinds import copies
from wirebroker.console.changes.kinds.record_fields import (
    fields_of,
    record_fields,
    record_lines,
    record_of,
)
from wirebroker.console.records.pages import read_record
from wirebroker.console.view.formats import number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.codecs.records.batch import BareRecord
    from wirebroker.console.model.collector import Collector

_MOST_PARTITION: Final = (1 << 31) - 1
# A longer record is not part of the command, which copies it instead.
_MOST_COMMAND_BYTES: Final = 32 << 10


async def _produce(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    record = record_of(values)
    return await _writing(
        collector, values, record, f"Write a record to topic {values['topic']}", ()
    )


async def _resend(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    source = await _source(collector, values)
    record = record_of(values, source)
    place = f"{values['source_topic']}-{values['source_partition']}"
    origin = f"{place} at offset {values['source_offset']}"
    is_same = (*record[:2], list(record[2])) == (*source[:2], list(source[2]))
    changes = () if is_same else ("the record is changed before it is written",)
    return await _writing(
        collector,
        values,
        record,
        f"Write the record of {origin} to topic {values['topic']} again",
        changes,
    )


async def _source(collector: Collector, values: Mapping[str, str]) -> BareRecord:
    """Read the record that is sent again.

    Raises:
        ChangeError: It does not exist, or is too large.
    """
    partition = number_of(values, "source_partition", 0, _MOST_PARTITION)
    offset = number_of(values, "source_offset", 0)
    assert partition is not None
    assert offset is not None  # both fields are required
    found = await read_record(collector, values["source_topic"], partition, offset)
    if found is None:
        raise ChangeError("there is no record with this offset", "source_offset")
    if found.control is not None:
        raise ChangeError("this is a control record, which only brokers write", "source_offset")
    if found.is_cut:
        raise ChangeError(
            "the record has a key or value of more than 1 MiB, or more than 100 headers: copy it"
            " with Copy records",
            "source_offset",
        )
    return found.key, found.value, found.headers


async def _prefilled(collector: Collector, values: Mapping[str, str]) -> Mapping[str, str]:
    """Return the fields of the record that is sent again."""
    return fields_of(await _source(collector, values))


async def _writing(
    collector: Collector,
    values: Mapping[str, str],
    record: BareRecord,
    summary: str,
    changes: tuple[str, ...],
) -> PreparedChange:
    topic = values["topic"]
    client = collector.client
    count = len(await partitions_of(client, [topic]))
    partition = _partition(values, record, count)
    chosen = "chosen when it is written" if partition is None else str(partition)

    async def apply() -> str:
        writer = TopicWriter(client, topic, Codec.NONE)
        await writer.open()
        partitioner = Partitioner(writer.partition_count, random.Random())  # noqa: S311
        goal = partitioner.partition_of(record[0]) if partition is None else partition
        await writer.write([(goal, record)])
        (stored,) = writer.stored
        return f"stored in {topic}-{stored.partition} at offset {number(stored.first_offset)}"

    return PreparedChange(
        summary,
        (*changes, f"partition: {chosen}", *record_lines(record)),
        _command(collector, values, record, is_edited=bool(changes)),
        apply,
    )


def _partition(values: Mapping[str, str], record: BareRecord, count: int) -> int | None:
    """Return the partition of a record, as Java's producer chooses it; None without a key."""
    partition = number_of(values, "partition", 0, _MOST_PARTITION)
    if partition is not None and partition >= count:
        raise ChangeError(
            f"there is no partition {partition}: the topic has {count}, from 0 on", "partition"
        )
    if partition is None and record[0] is not None:
        return partition_for(record[0], count)
    return partition


def _command(
    collector: Collector, values: Mapping[str, str], record: BareRecord, *, is_edited: bool
) -> str:
    settings = collector.settings
    partition = values["partition"].strip()
    flags = ["--json", *(["-p", partition] if partition else [])]
    producing = verb_line(settings, "produce", flags, [values["topic"]])
    line = record_line(record)
    if len(line) <= _MOST_COMMAND_BYTES:
        return piped(line, producing)
    if is_edited or "source_topic" not in values:
        return f"{producing} < FILE"
    place = ["-p", values["source_partition"], "-o", values["source_offset"], "-n", "1", "--json"]
    consuming = verb_line(settings, "consume", place, [values["source_topic"]])
    return f"{consuming} | {producing}"


_TOPIC: Final = Field("topic", "Topic")
_PARTITION: Final = Field(
    "partition",
    "Partition",
    FieldKind.NUMBER,
    "If empty, the key chooses it, as in Java's producer.",
    is_required=False,
)

KINDS: Final[tuple[ChangeKind, ...]] = (
    ChangeKind(
        "produce-record",
        "Produce a record",
        ConsoleRole.OPERATOR,
        (_TOPIC, _PARTITION, *record_fields(has_source=False)),
        "topic",
        _produce,
        "topics",
        "topic/messages",
    ),
    ChangeKind(
        "resend-record",
        "Edit and resend a record",
        ConsoleRole.OPERATOR,
        (
            Field("source_topic", "Topic of the record"),
            Field("source_partition", "Its partition", FieldKind.NUMBER),
            Field("source_offset", "Its offset", FieldKind.NUMBER),
            _TOPIC._replace(label="Write it to topic"),
            _PARTITION,
            *record_fields(has_source=True),
        ),
        "topic",
        _resend,
        "topics",
        "topic/messages",
        _prefilled,
    ),
    *copies.KINDS,
)
