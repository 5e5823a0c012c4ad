"""The records of a group in `__consumer_offsets`, in the order of their offsets, as lines.

Batches are not compared: Apache Kafka joins operations that arrive together. Records that follow
each other in the order of a hash table are sorted: the members' targets, and the tombstones of a
deleted group.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tests.support.protocol.message_schemas import schema_of
from tests.transcripts.printing import Names, is_generated, lines_of
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.coordinator_records import (
    GroupKey,
    OffsetKey,
    UnknownKey,
    decode_committed_offset,
)
from wirebroker.codecs.group_records import (
    GroupMemberKey,
    GroupRecordKind,
    RegularExpressionKey,
    decode_record_key,
    decode_record_value,
    group_record_message,
)
from wirebroker.codecs.records.batch import iterate_batches, iterate_records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from wirebroker.codecs.records.record import Record

    _Ask = Callable[[ApiKey, int, dict[str, Any]], Any]

_TOPIC: Final = "__consumer_offsets"
_METADATA_VERSION: Final = 9
_OFFSETS_VERSION: Final = 7
_FETCH_VERSION: Final = 11
_LATEST: Final = -1
_MAX_BYTES: Final = 64 << 20
_SORTED: Final = frozenset(
    {
        GroupRecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER,
        GroupRecordKind.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER,
        GroupRecordKind.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER,
    }
)
# Values that differ between brokers, unless they are 0.
_VARYING: Final = {
    "metadata_hash": "HASH",
    "version": "AN OFFSET",
    "assignment_timestamp": "NOW",
    "timestamp": "NOW",
}


class _Line(NamedTuple):
    # Records with equal runs that follow each other are sorted by text.
    run: str
    text: str


def group_records(ask: _Ask, group_id: str, names: Names) -> list[str]:
    """Return the lines of a group.

    Args:
        ask: Sends a request and returns the response.
        group_id: Id of the group.
        names: The names of ids so far.
    """
    lines = [
        line
        for record in stored_records(ask, _TOPIC)
        if (line := _line(record, group_id, names)) is not None
    ]
    return [
        line.text
        for run, equals in groupby(lines, key=lambda line: line.run)
        for line in (sorted(equals) if run else equals)
    ]


def stored_records(ask: _Ask, topic: str) -> Iterator[Record]:
    """Yield all records of a topic."""
    metadata = ask(ApiKey.METADATA, _METADATA_VERSION, {"topics": [{"name": topic}]})
    for partition in sorted(entry.partition_index for entry in metadata.topics[0].partitions):
        yield from _records_of(ask, topic, partition)


def _records_of(ask: _Ask, topic: str, partition: int) -> Iterator[Record]:
    requested = [{"partition_index": partition, "timestamp": _LATEST}]
    topics = [{"name": topic, "partitions": requested}]
    offsets = ask(ApiKey.LIST_OFFSETS, _OFFSETS_VERSION, {"replica_id": -1, "topics": topics})
    end = offsets.topics[0].partitions[0].offset
    at = 0
    while at < end:
        wanted = {"partition": partition, "fetch_offset": at, "partition_max_bytes": _MAX_BYTES}
        request = {
            "replica_id": -1,
            "max_wait_ms": 0,
            "min_bytes": 0,
            "max_bytes": _MAX_BYTES,
            "topics": [{"topic": topic, "partitions": [wanted]}],
        }
        fetched = ask(ApiKey.FETCH, _FETCH_VERSION, request).responses[0].partitions[0]
        assert fetched.error_code == 0, f"error {fetched.error_code}"
        view = memoryview(fetched.records)
        for position, header in iterate_batches(view):
            at = header.last_offset + 1
            if not header.is_control:
                batch = view[position : position + header.size]
                yield from iterate_records(batch, header, max_bytes=_MAX_BYTES)


def _line(record: Record, group_id: str, names: Names) -> _Line | None:
    """Return the line of a record, or None if it is of another group."""
    key = decode_record_key(bytes(record.key or b""))
    if isinstance(key, UnknownKey) or key.group_id != group_id:
        return None
    is_tombstone = record.value is None
    value = b"" if record.value is None else bytes(record.value)
    if isinstance(key, OffsetKey):
        text = f"OFFSET {key.topic}-{key.partition}"
        if not is_tombstone:
            committed = decode_committed_offset(value)
            text += f" = offset {committed.offset}, metadata {committed.metadata!r}"
        return _Line("offset" if is_tombstone else "", text + " deleted" * is_tombstone)
    if isinstance(key, GroupKey):
        return _Line("", "CLASSIC" + " deleted" * is_tombstone)
    text = key.kind.name
    if isinstance(key, GroupMemberKey):
        text += f" {_member(key.member_id, names)}"
    elif isinstance(key, RegularExpressionKey):
        text += f" {key.regular_expression!r}"
    if is_tombstone:
        return _Line(f"{key.kind.name} deleted", f"{text} deleted")
    run = key.kind.name if key.kind in _SORTED else ""
    return _Line(run, f"{text} = {', '.join(_fields(key.kind, value, names))}")


def _member(member_id: str, names: Names) -> str:
    return (names.member(member_id) if is_generated(member_id) else None) or member_id


def _sort_partitions(body: Any) -> None:
    """Sort the partitions of each topic, in which Kafka has the order of a hash table."""
    for name in ("assigned_partitions", "partitions_pending_revocation"):
        for topic in getattr(body, name, ()):
            if not hasattr(topic, "assignment_epochs"):
                continue
            pairs = sorted(zip(topic.partitions, topic.assignment_epochs, strict=True))
            topic.partitions = [partition for partition, _ in pairs]
            topic.assignment_epochs = [epoch for _, epoch in pairs]


def _fields(kind: GroupRecordKind, value: bytes, names: Names) -> Iterator[str]:
    body = decode_record_value(kind, value)
    _sort_partitions(body)
    schema = schema_of(group_record_message(kind))
    for line in lines_of(schema, int.from_bytes(value[:2]), body, names):
        path, _, printed = line.partition(" = ")
        word = _VARYING.get(path)
        yield f"{path} {printed if word is None or printed == '0' else word}"
