"""The records of `__share_group_state`: the delivery state of a share group's partitions.

    key    := int16 kind, string group, uuid topic, int32 partition
    value  := int16 version (0), body          a null value is a tombstone

Kind 0 is a snapshot. Kind 1 is an update, which changes the partition's last snapshot.

Source: KIP-932; Kafka's ShareCoordinatorRecordSerde and ShareCoordinatorRecordHelpers.
"""

from __future__ import annotations

from enum import IntEnum
from functools import cache
from struct import Struct
from struct import error as struct_error
from typing import Any, Final, NamedTuple

from wirebroker.codecs.coordinator_records import (
    CoordinatorRecord,
    decode_versioned,
    encode_versioned,
    read_string,
)
from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.codecs.message import Message, load_message
from wirebroker.codecs.primitives import string

_VERSION: Final = 0
_INT16: Final = Struct(">h")
# Topic id, partition.
_PARTITION: Final = Struct(">16si")


class ShareStateKind(IntEnum):
    """The kinds of records under Kafka's names."""

    SHARE_SNAPSHOT = 0
    SHARE_UPDATE = 1


class ShareStateKey(NamedTuple):
    """The key of a record."""

    kind: ShareStateKind
    group_id: str
    topic_id: bytes
    partition: int


def decode_share_state_key(key: bytes) -> ShareStateKey | None:
    """Decode a key; None if its kind is unknown.

    Raises:
        MalformedFrameError.
    """
    try:
        (number,) = _INT16.unpack_from(key)
        if number not in ShareStateKind._value2member_map_:
            return None
        group_id, position = read_string(key, _INT16.size)
        topic_id, partition = _PARTITION.unpack_from(key, position)
    except (struct_error, UnicodeDecodeError) as error:
        raise MalformedFrameError(f"a share state record's key: {error}") from None
    if position + _PARTITION.size != len(key):
        raise MalformedFrameError("a share state record's key has the wrong length")
    return ShareStateKey(ShareStateKind(number), group_id, topic_id, partition)


def encode_share_state_key(key: ShareStateKey) -> bytes:
    """Encode a key."""
    assert len(key.topic_id) == 16, key.topic_id
    return (
        _INT16.pack(key.kind) + string(key.group_id) + _PARTITION.pack(key.topic_id, key.partition)
    )


def share_state_record(key: ShareStateKey, /, **fields: Any) -> CoordinatorRecord:
    """Return a record; fields as in compiling/tables/share_state_log.txt."""
    value = encode_versioned(share_state_message(key.kind), _VERSION, fields)
    return CoordinatorRecord(encode_share_state_key(key), value)


def share_state_tombstone(key: ShareStateKey) -> CoordinatorRecord:
    """Return the record that deletes a key."""
    return CoordinatorRecord(encode_share_state_key(key), None)


def decode_share_state_value(kind: ShareStateKind, value: bytes) -> Any:
    """Decode a value.

    Raises:
        KafkaError: UNSUPPORTED_VERSION.
        MalformedFrameError.
    """
    return decode_versioned(share_state_message(kind), value)


@cache
def share_state_message(kind: ShareStateKind) -> Message:
    """Return the codec of a kind's values."""
    return load_message(f"{kind.name.lower()}_value")
