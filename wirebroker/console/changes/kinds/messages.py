"""Changes of messages: produce one, resend one, copy many."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

from wirebroker.client.errors import ClientError
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
    from wirebroker.console.model.settings import ClusterSettings

_MOST_PARTITION: Final = (1 << 31) - 1
# A longer record is not part of the command, which copies it instead.
_MOST_COMMAND_BYTES: Final = 32 << 10


async def _produce(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    record = record_of(values)
    return await _writing(collector, values, record, f"Write a record to topic {values['topic']}")


async def _resend(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    source = await _source(collector, values)
    record = record_of(values, source)
    place = f"{values['source_topic']}-{values['source_partition']}"
    origin = f"{place} at offset {values['source_offset']}"
    return await _writing(
        collector,
        values,
        record,
        f"Write the record of {origin} to topic {values['topic']} again",
        is_edited=_is_edited(record, source),
    )


async def _forward(
    collector: Collector, other: Collector, values: Mapping[str, str]
) -> PreparedChange:
    """Return the plan that writes a record of one cluster to another one."""
    source = await _source(collector, values)
    record = record_of(values, source)
    name = other.settings.name
    try:
        plan = await _writing(
            other,
            values,
            record,
            _forward_text(values),
            is_edited=_is_edited(record, source),
            origin=collector,
        )
    except ClientError as error:
        raise _of_cluster(name, error) from error
    write = plan.apply

    async def apply() -> str:
        try:
            stored = await write()
        except ClientError as error:
            raise _of_cluster(name, error) from error
        return f"{stored} of cluster {name}"

    return plan._replace(apply=apply, notes=(f"user in Kafka there: {other.kafka_user}",))


def _of_cluster(name: str, error: ClientError) -> ClientError:
    """Return an error that names its cluster."""
    return ClientError(f"cluster {name}: {error}", code=error.code, broker_message=error.told)


def _forward_text(values: Mapping[str, str]) -> str:
    origin = f"{values['source_topic']}-{values['source_partition']}"
    return (
        f"Write the record of {origin} at offset {values['source_offset']} to topic"
        f" {values['topic']} of cluster {values['cluster']}"
    )


async def _not_alone(_collector: Collector, _values: Mapping[str, str]) -> PreparedChange:
    raise ChangeError("name the other cluster", "cluster")


def _is_edited(record: BareRecord, source: BareRecord) -> bool:
    return (*record[:2], list(record[2])) != (*source[:2], list(source[2]))


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
        is_forwarded = "cluster" in values
        way = "wirebroker consume --json and wirebroker produce --json"
        raise ChangeError(
            "the record has a key or value of more than 1 MiB, or more than 100 headers: copy it"
            f" with {way if is_forwarded else 'Copy records'}",
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
    *,
    is_edited: bool = False,
    origin: Collector | None = None,
) -> PreparedChange:
    """Return the plan that writes a record, which may come from another cluster."""
    topic = values["topic"]
    client = collector.client
    count = len(await partitions_of(client, [topic]))
    partition = _partition(values, record, count, collector.settings.name)
    chosen = "chosen when it is written" if partition is None else str(partition)
    changes = ("the record is changed before it is written",) if is_edited else ()
    settings = collector.settings
    if origin is not None:
        # Not every viewer of the record's cluster may know the other one's address.
        settings = settings._replace(bootstrap=f"BROKERS_OF_{settings.name}")

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
        _command((origin or collector).settings, settings, values, record, is_edited=is_edited),
        apply,
    )


def _partition(
    values: Mapping[str, str], record: BareRecord, count: int, cluster: str
) -> int | None:
    """Return the partition of a record, as Java's producer chooses it; None without a key."""
    partition = number_of(values, "partition", 0, _MOST_PARTITION)
    if partition is not None and partition >= count:
        existing = "only partition 0" if count == 1 else f"partitions 0 to {count - 1}"
        raise ChangeError(
            f"topic {values['topic']} of cluster {cluster} has {existing}", "partition"
        )
    if partition is None and record[0] is not None:
        return partition_for(record[0], count)
    return partition


def _command(
    source: ClusterSettings,
    settings: ClusterSettings,
    values: Mapping[str, str],
    record: BareRecord,
    *,
    is_edited: bool,
) -> str:
    partition = values["partition"].strip()
    flags = ["--json", *(["-p", partition] if partition else [])]
    producing = verb_line(settings, "produce", flags, [values["topic"]])
    line = record_line(record)
    if len(line) <= _MOST_COMMAND_BYTES:
        return piped(line, producing)
    if is_edited or "source_topic" not in values:
        return f"{producing} < FILE"
    place = ["-p", values["source_partition"], "-o", values["source_offset"], "-n", "1", "--json"]
    consuming = verb_line(source, "consume", place, [values["source_topic"]])
    return f"{consuming} | {producing}"


_TOPIC: Final = Field("topic", "Topic")
_SOURCE: Final = (
    Field("source_topic", "Topic of the record"),
    Field("source_partition", "Its partition", FieldKind.NUMBER),
    Field("source_offset", "Its offset", FieldKind.NUMBER),
)
_OTHER_CLUSTER: Final = "Another cluster of this console, in which you have the role operator."
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
            *_SOURCE,
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
    ChangeKind(
        "forward-record",
        "Forward a record to another cluster",
        ConsoleRole.OPERATOR,
        (
            *_SOURCE,
            Field("cluster", "To cluster", FieldKind.CHOICE, _OTHER_CLUSTER),
            _TOPIC._replace(label="Write it to topic", help="It must exist there."),
            _PARTITION,
            *record_fields(has_source=True),
        ),
        "source_topic",
        _not_alone,
        "topics",
        "topic/messages",
        _prefilled,
        "cluster",
        "topic",
        _forward,
    ),
    *copies.KINDS,
)
