"""Entries of the pending topic, and their format, version 1.

Each record of the pending topic is an entry. Its key is the entry's name in UTF-8: the place and
the timestamp of the input record (`deliver/3/17/1798711200000`), or `command/` and a unique text. A
null value ends the entry.

    value := version (1 byte, 1)  kind (1 byte)  length of id (2 bytes)  length of fields (4 bytes)
             due time (8 bytes, ms since 1970)  id  fields  record
    kind 1: a record to be delivered; id is its deliver-id, empty if it has none
    kind 2: cancels the entry with the id, else the one whose name is in fields; no record
    kind 3: makes that entry due at once; no record

Numbers are big-endian. `fields` are texts in UTF-8, separated by zero bytes: target, dead-letter
topic, partition, expiry, attempt; more may follow. An empty one has no value. `record` is a record
in the format of Kafka's batches (magic 2), with the headers that it is delivered with.
"""

from __future__ import annotations

import enum
import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.codecs.errors import KafkaError
from wirebroker.codecs.records.record import encode_record, read_records

if TYPE_CHECKING:
    from wirebroker.codecs.records.record import Headers

FORMAT_VERSION: Final = 1
_HEAD: Final = struct.Struct(">BBHIq")
_SEPARATOR: Final = "\0"
_SEPARATOR_BYTE: Final = b"\0"


class EntryKind(enum.IntEnum):
    """The kinds of entries; the numbers are stored."""

    RECORD = 1
    CANCEL = 2
    HURRY = 3


class EntryFormatError(ValueError):
    """An entry cannot be read."""


class NewerFormatError(EntryFormatError):
    """An entry was written by a newer version of the service."""


class PendingEntry(NamedTuple):
    """A record that waits for its time.

    Attributes:
        name: See the module.
        due_ms: When it is delivered, in milliseconds since 1970.
        target: The topic that it is delivered to.
        partition: The partition, or None for the one that its key selects.
        delivery_id: The id with which a later record replaces or cancels it, or None.
        expires_ms: After this time it becomes a dead letter; None for never.
        attempt: The number of the attempt that a retried record is delivered for, else 0.
        dead_letters: The topic for it if it cannot be delivered.
        key: As delivered, like `value` and `headers`.
    """

    name: str
    due_ms: int
    target: str
    partition: int | None
    delivery_id: str | None
    expires_ms: int | None
    attempt: int
    dead_letters: str
    key: bytes | None
    value: bytes | None
    headers: Headers


class EntryCommand(NamedTuple):
    """Cancels an entry or makes it due; the entry is given by its id or its name."""

    name: str
    kind: EntryKind
    delivery_id: str | None
    entry: str | None


class EntryHead(NamedTuple):
    """The first part of an entry, with the fields that an index needs.

    Attributes:
        kind: Its kind.
        due_ms: See PendingEntry; 0 for a command.
        delivery_id: See PendingEntry.
        target: See PendingEntry, if it is readable; for a command, the name of the entry.
        fields_at: Where the fields begin.
        record_at: Where the record begins.
    """

    kind: EntryKind
    due_ms: int
    delivery_id: str | None
    target: str
    fields_at: int
    record_at: int


def encode_entry(entry: PendingEntry | EntryCommand) -> bytes:
    """Return the value of an entry's record."""
    if isinstance(entry, EntryCommand):
        return _joined(entry.kind, 0, entry.delivery_id, entry.entry or "", b"")
    fields = _SEPARATOR.join(
        (
            entry.target,
            entry.dead_letters,
            "" if entry.partition is None else str(entry.partition),
            "" if entry.expires_ms is None else str(entry.expires_ms),
            str(entry.attempt),
        )
    )
    record = encode_record(entry.key, entry.value, entry.headers, offset_delta=0, timestamp_delta=0)
    return _joined(EntryKind.RECORD, entry.due_ms, entry.delivery_id, fields, record)


def read_head(name: str, value: bytes) -> EntryHead:
    """Parse the first part of an entry.

    Raises:
        NewerFormatError: Its format is newer than this program.
        EntryFormatError: It is malformed.
    """
    try:
        version, kind, id_length, length, due_ms = _HEAD.unpack_from(value)
        if version > FORMAT_VERSION:
            raise NewerFormatError(  # noqa: TRY301 - the same try reads the version
                f"entry {name} has format {version}, and this program reads {FORMAT_VERSION}:"
                " update it"
            )
        fields_at = _HEAD.size + id_length
        record_at = fields_at + length
        identity = value[_HEAD.size : fields_at].decode()
        target = value[fields_at:record_at].partition(_SEPARATOR_BYTE)[0].decode(errors="replace")
        return EntryHead(EntryKind(kind), due_ms, identity or None, target, fields_at, record_at)
    except NewerFormatError:
        raise
    except (struct.error, ValueError) as error:
        raise _malformed(name, error) from None


def decode_entry(name: str, value: bytes) -> PendingEntry | EntryCommand:
    """Parse an entry.

    Raises:
        NewerFormatError: Its format is newer than this program.
        EntryFormatError: It is malformed.
    """
    head = read_head(name, value)
    try:
        fields = value[head.fields_at : head.record_at].decode().split(_SEPARATOR)
        if head.kind is not EntryKind.RECORD:
            return EntryCommand(name, head.kind, head.delivery_id, fields[0] or None)
        target, dead_letters, partition, expires_ms, attempt = fields[:5]
        (record,) = read_records(
            value[head.record_at :], count=1, base_offset=0, base_timestamp=0, append_time=None
        )
        return PendingEntry(
            name=name,
            due_ms=head.due_ms,
            target=target,
            partition=int(partition) if partition else None,
            delivery_id=head.delivery_id,
            expires_ms=int(expires_ms) if expires_ms else None,
            attempt=int(attempt),
            dead_letters=dead_letters,
            key=record.key,
            value=record.value,
            headers=tuple(record.headers),
        )
    except (KafkaError, ValueError) as error:
        raise _malformed(name, error) from None


def _malformed(name: str, error: Exception) -> EntryFormatError:
    return EntryFormatError(f"entry {name[:80]} is malformed: {error}")


def _joined(
    kind: EntryKind, due_ms: int, delivery_id: str | None, fields: str, record: bytes
) -> bytes:
    identity, text = (delivery_id or "").encode(), fields.encode()
    head = _HEAD.pack(FORMAT_VERSION, kind, len(identity), len(text), due_ms)
    return b"".join((head, identity, text, record))
