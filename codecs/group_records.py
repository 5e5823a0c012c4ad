"""The records of consumer, share and streams groups in `__consumer_offsets`.

    key    := int16 kind, string group                  a record of the whole group
            | int16 kind, string group, string member   a record of one member
            | int16 16, string group, string regex      the topics of a regular expression
    value  := int16 version (0), body                   a null value is a tombstone

Keys are never flexible, values always. Kinds 0 to 2 are in coordinator_records.py; Kafka 4.4 has no
kinds 9 and 18.

Source: Kafka's CoordinatorRecordType and GroupCoordinatorRecordHelpers; KIP-848, KIP-932, KIP-1071.
"""

from __future__ import annotations

from enum import IntEnum
from functools import cache
from struct import Struct
from struct import error as struct_error
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from wirebroker.codecs.coordinator_records import (
    CoordinatorRecord,
    UnknownKey,
    decode_key,
    decode_versioned,
    encode_versioned,
    read_string,
)
from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.codecs.message import Message, load_message
from wirebroker.codecs.primitives import string

if TYPE_CHECKING:
    from wirebroker.codecs.coordinator_records import GroupKey, OffsetKey

_VERSION: Final = 0
_INT16: Final = Struct(">h")


class GroupRecordKind(IntEnum):
    """The kinds of records under Kafka's names."""

    CONSUMER_GROUP_METADATA = 3
    # Only Kafka before 4.1 writes it.
    CONSUMER_GROUP_PARTITION_METADATA = 4
    CONSUMER_GROUP_MEMBER_METADATA = 5
    CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA = 6
    CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER = 7
    CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT = 8
    SHARE_GROUP_MEMBER_METADATA = 10
    SHARE_GROUP_METADATA = 11
    SHARE_GROUP_TARGET_ASSIGNMENT_METADATA = 12
    SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER = 13
    SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT = 14
    SHARE_GROUP_STATE_PARTITION_METADATA = 15
    CONSUMER_GROUP_REGULAR_EXPRESSION = 16
    STREAMS_GROUP_METADATA = 17
    STREAMS_GROUP_MEMBER_METADATA = 19
    STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA = 20
    STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER = 21
    STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT = 22
    STREAMS_GROUP_TOPOLOGY = 23


_NUMBERS: Final = frozenset(GroupRecordKind)
_OF_MEMBERS: Final = frozenset(
    (
        GroupRecordKind.CONSUMER_GROUP_MEMBER_METADATA,
        GroupRecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER,
        GroupRecordKind.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
        GroupRecordKind.SHARE_GROUP_MEMBER_METADATA,
        GroupRecordKind.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER,
        GroupRecordKind.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT,
        GroupRecordKind.STREAMS_GROUP_MEMBER_METADATA,
        GroupRecordKind.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER,
        GroupRecordKind.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT,
    )
)


class WholeGroupKey(NamedTuple):
    """The key of a record of a whole group."""

    kind: GroupRecordKind
    group_id: str


class GroupMemberKey(NamedTuple):
    """The key of a record of a group's member."""

    kind: GroupRecordKind
    group_id: str
    member_id: str


class RegularExpressionKey(NamedTuple):
    """The key of the topics that a regular expression of a group matches."""

    kind: GroupRecordKind
    group_id: str
    regular_expression: str


GroupRecordKey: TypeAlias = WholeGroupKey | GroupMemberKey | RegularExpressionKey


class KnownRecord(CoordinatorRecord):
    """A record with its decoded value, which the coordinator that wrote it need not decode again.

    As in Kafka, whose coordinators replay the messages that they have written. Only a load decodes
    all values, and must restore the same state.

    Attributes:
        body: What the value decodes to; None if it has to be decoded.
    """

    body: Any = None

    @classmethod
    def of(cls, key: GroupRecordKey, value: bytes, body: Any) -> KnownRecord:
        """Return a record."""
        record = cls(encode_record_key(key), value)
        record.body = body
        return record


def decode_record_key(key: bytes) -> GroupRecordKey | GroupKey | OffsetKey | UnknownKey:
    """Decode the key of any record of `__consumer_offsets`.

    Raises:
        MalformedFrameError.
    """
    classic = decode_key(key)
    if not isinstance(classic, UnknownKey) or classic.kind not in _NUMBERS:
        return classic
    kind = GroupRecordKind(classic.kind)
    try:
        group_id, position = read_string(key, _INT16.size)
        result: GroupRecordKey = WholeGroupKey(kind, group_id)
        if kind in _OF_MEMBERS:
            member_id, position = read_string(key, position)
            result = GroupMemberKey(kind, group_id, member_id)
        elif kind is GroupRecordKind.CONSUMER_GROUP_REGULAR_EXPRESSION:
            regular_expression, position = read_string(key, position)
            result = RegularExpressionKey(kind, group_id, regular_expression)
    except (struct_error, UnicodeDecodeError) as error:
        raise MalformedFrameError(f"the key of {kind.name}: {error}") from None
    if position != len(key):
        raise MalformedFrameError(f"the key of {kind.name} has the wrong length")
    return result


def encode_record_key(key: GroupRecordKey) -> bytes:
    """Encode a key."""
    return _INT16.pack(key.kind) + b"".join(map(string, key[1:]))


def group_record(key: GroupRecordKey, /, **fields: Any) -> CoordinatorRecord:
    """Return a record; fields as in compiling/tables.

    Missing ones get Kafka's defaults, which are empty for most fields that may be null.
    """
    value = encode_versioned(group_record_message(key.kind), _VERSION, fields)
    return CoordinatorRecord(encode_record_key(key), value)


def group_record_tombstone(key: GroupRecordKey) -> CoordinatorRecord:
    """Return the record that deletes a key."""
    return CoordinatorRecord(encode_record_key(key), None)


def decode_record_value(kind: GroupRecordKind, value: bytes) -> Any:
    """Decode a value.

    Raises:
        KafkaError: UNSUPPORTED_VERSION.
        MalformedFrameError.
    """
    return decode_versioned(group_record_message(kind), value)


@cache
def group_record_message(kind: GroupRecordKind) -> Message:
    """Return the codec of a kind's values."""
    return load_message(f"{kind.name.lower()}_value")
