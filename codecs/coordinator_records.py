"""The records of `__consumer_offsets`: committed offsets and classic groups.

    key    := int16 kind, body              kind 0, 1 an offset; 2 a group; others: group_records
    value  := int16 version, body           a null value is a tombstone

    kind 0, 1   string group, string topic, int32 partition        -> OffsetCommitValue
    kind 2      string group                                       -> GroupMetadataValue

As in Apache Kafka 4.4, commits are written at version 4, or 1 with an expiry time, and groups at
version 3.

Source: Kafka's GroupCoordinatorRecordSerde and GroupCoordinatorRecordHelpers.
"""

from __future__ import annotations

from functools import cache
from struct import Struct
from struct import error as struct_error
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.codecs.errors import ErrorCode, KafkaError, MalformedFrameError
from wirebroker.codecs.message import Message, load_message
from wirebroker.codecs.primitives import ZERO_UUID, uvarint

if TYPE_CHECKING:
    from collections.abc import Mapping

OFFSET_KIND: Final = 1
LEGACY_OFFSET_KIND: Final = 0
GROUP_KIND: Final = 2

OFFSET_VERSION: Final = 4
# The only version with an expiry time.
OFFSET_VERSION_WITH_EXPIRY: Final = 1
GROUP_VERSION: Final = 3

NO_EXPIRY: Final = -1
NO_LEADER_EPOCH: Final = -1

_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_VALUE_HEAD: Final = Struct(">hqi")  # version, offset, leader epoch
_TIMESTAMP: Final = Struct(">q")
# Tag 0 of 16 bytes.
_TOPIC_ID_TAG: Final = b"\x01\x00\x10"
_NO_TAGS: Final = b"\x00"


class CoordinatorRecord(NamedTuple):
    """A record in the log; a value of None deletes the key."""

    key: bytes
    value: bytes | None


class OffsetKey(NamedTuple):
    """The key of a committed offset."""

    group_id: str
    topic: str
    partition: int


class GroupKey(NamedTuple):
    """The key of a classic group."""

    group_id: str


class UnknownKey(NamedTuple):
    """The key of another kind."""

    kind: int


class CommittedOffset(NamedTuple):
    """A group's committed offset for a partition."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    # Set by clients before Kafka 2.1.
    expire_timestamp_ms: int = NO_EXPIRY
    # ZERO_UUID if the client committed by topic name.
    topic_id: bytes = ZERO_UUID


def decode_key(key: bytes) -> OffsetKey | GroupKey | UnknownKey:
    """Decode the key of an offset or a classic group.

    Raises:
        MalformedFrameError.
    """
    try:
        (kind,) = _INT16.unpack_from(key)
        if kind not in {LEGACY_OFFSET_KIND, OFFSET_KIND, GROUP_KIND}:
            return UnknownKey(kind)
        group_id, position = read_string(key, 2)
        if kind == GROUP_KIND:
            result: OffsetKey | GroupKey = GroupKey(group_id)
        else:
            topic, position = read_string(key, position)
            (partition,) = _INT32.unpack_from(key, position)
            position += _INT32.size
            result = OffsetKey(group_id, topic, partition)
    except (struct_error, UnicodeDecodeError) as error:
        raise MalformedFrameError(f"a coordinator record's key: {error}") from None
    if position != len(key):
        raise MalformedFrameError("a coordinator record's key has the wrong length")
    return result


def offset_key(group_id: str, topic: str, partition: int) -> bytes:
    """Return the key of a committed offset."""
    return b"".join((group_prefix(group_id), partition_suffix(topic, partition)))


def group_prefix(group_id: str) -> bytes:
    """Return the common prefix of the keys of a group's offsets."""
    encoded = group_id.encode()
    return b"\x00\x01" + _INT16.pack(len(encoded)) + encoded


def partition_suffix(topic: str, partition: int) -> bytes:
    """Return the part of a committed offset's key after `group_prefix`."""
    encoded = topic.encode()
    return _INT16.pack(len(encoded)) + encoded + _INT32.pack(partition)


def read_partition_suffix(suffix: bytes) -> tuple[str, int]:
    """Return the topic and partition of a `partition_suffix`."""
    return suffix[2:-4].decode(), _INT32.unpack_from(suffix, len(suffix) - 4)[0]


def is_partition_suffix(suffix: bytes) -> bool:
    """Return whether the bytes have the length that they declare."""
    return len(suffix) >= 6 and _INT16.unpack_from(suffix)[0] == len(suffix) - 6


def group_key(group_id: str) -> bytes:
    """Return the key of a classic group."""
    encoded = group_id.encode()
    return _INT16.pack(GROUP_KIND) + _INT16.pack(len(encoded)) + encoded


def offset_commit_record(
    group_id: str, topic: str, partition: int, committed: CommittedOffset
) -> CoordinatorRecord:
    """Return the record of a commit."""
    return CoordinatorRecord(
        offset_key(group_id, topic, partition), encode_committed_offset(committed)
    )


def group_metadata_record(group_id: str, /, **fields: Any) -> CoordinatorRecord:
    """Return the record of a classic group; fields as in compiling/tables/group_log.txt."""
    value = encode_versioned(_message(GROUP_KIND), GROUP_VERSION, fields)
    return CoordinatorRecord(group_key(group_id), value)


def group_tombstone(group_id: str) -> CoordinatorRecord:
    """Return the record that deletes a classic group."""
    return CoordinatorRecord(group_key(group_id), None)


def encode_committed_offset(committed: CommittedOffset) -> bytes:
    """Encode the value of a commit."""
    if committed.expire_timestamp_ms != NO_EXPIRY:
        version = OFFSET_VERSION_WITH_EXPIRY
        return encode_versioned(
            _message(OFFSET_KIND),
            version,
            {
                "offset": committed.offset,
                "metadata": committed.metadata,
                "commit_timestamp": committed.commit_timestamp_ms,
                "expire_timestamp": committed.expire_timestamp_ms,
            },
        )
    metadata = committed.metadata.encode()
    has_id = committed.topic_id != ZERO_UUID
    return b"".join(
        (
            _VALUE_HEAD.pack(OFFSET_VERSION, committed.offset, committed.leader_epoch),
            uvarint(len(metadata) + 1),
            metadata,
            _TIMESTAMP.pack(committed.commit_timestamp_ms),
            _TOPIC_ID_TAG + committed.topic_id if has_id else _NO_TAGS,
        )
    )


def decode_committed_offset(value: bytes) -> CommittedOffset:
    """Decode the value of a commit, of any version.

    Raises:
        KafkaError: UNSUPPORTED_VERSION.
        MalformedFrameError.
    """
    body = decode_offset_commit(value)
    return CommittedOffset(
        body.offset,
        body.leader_epoch,
        body.metadata,
        body.commit_timestamp,
        body.expire_timestamp,
        body.topic_id,
    )


def decode_offset_commit(value: bytes) -> Any:
    """Decode all fields of a commit's value; raise as `decode_committed_offset` does."""
    return decode_versioned(_message(OFFSET_KIND), value)


def decode_group_metadata(value: bytes) -> Any:
    """Decode a classic group's value; raise as `decode_committed_offset` does."""
    return decode_versioned(_message(GROUP_KIND), value)


def encode_versioned(message: Message, version: int, fields: Mapping[str, Any]) -> bytes:
    """Encode a message after its version; the counterpart of `decode_versioned`."""
    return _INT16.pack(version) + message.encode(version, fields)


def decode_versioned(message: Message, value: bytes) -> Any:
    """Decode a message that follows its version, as in every coordinator's records.

    Raises:
        KafkaError: UNSUPPORTED_VERSION.
        MalformedFrameError.
    """
    if len(value) < _INT16.size:
        raise MalformedFrameError(f"{message.name}: the version is cut off")
    (version,) = _INT16.unpack_from(value)
    if version not in message.versions:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"{message.name} of version {version} is not supported",
        )
    return message.decode(version, value, _INT16.size)


def read_string(key: bytes, position: int) -> tuple[str, int]:
    """Return a string in a key and the position after it.

    Raises:
        MalformedFrameError, struct.error, UnicodeDecodeError.
    """
    (length,) = _INT16.unpack_from(key, position)
    start = position + _INT16.size
    end = start + length
    if length < 0 or end > len(key):
        raise MalformedFrameError(f"a coordinator record's key has a string of {length} bytes")
    return key[start:end].decode(), end


@cache
def _message(kind: int) -> Message:
    return load_message("group_metadata_value" if kind == GROUP_KIND else "offset_commit_value")
