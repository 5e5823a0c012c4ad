"""The records of `__cluster_metadata-0`: the cluster's whole state, as changes.

    uvarint   frame version, always 1
    uvarint   record type
    uvarint   version of the record
    ...       the body, flexible (compiling/tables/metadata_log.txt)

A record of an unknown type or version stops the replay. Records are written at the versions of
metadata.version 30 (4.3-IV0) and above.

Source: KIP-631; Kafka's MetadataRecordSerde and MetadataVersion.
"""

from __future__ import annotations

from enum import IntEnum
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.message import Message, load_message
from wirebroker.codecs.primitives import read_uvarint, uvarint

if TYPE_CHECKING:
    from wirebroker.codecs.primitives import Buffer
    from wirebroker.codecs.values import Struct

_FRAME_VERSION: Final = 1


class RecordType(IntEnum):
    """The types of metadata records."""

    REGISTER_BROKER = 0
    UNREGISTER_BROKER = 1
    TOPIC = 2
    PARTITION = 3
    CONFIG = 4
    PARTITION_CHANGE = 5
    FENCE_BROKER = 7
    UNFENCE_BROKER = 8
    REMOVE_TOPIC = 9
    DELEGATION_TOKEN = 10
    USER_SCRAM_CREDENTIAL = 11
    FEATURE_LEVEL = 12
    CLIENT_QUOTA = 14
    PRODUCER_IDS = 15
    BROKER_REGISTRATION_CHANGE = 17
    ACCESS_CONTROL_ENTRY = 18
    REMOVE_ACCESS_CONTROL_ENTRY = 19
    NO_OP = 20
    ZK_MIGRATION_STATE = 21
    REMOVE_USER_SCRAM_CREDENTIAL = 22
    BEGIN_TRANSACTION = 23
    END_TRANSACTION = 24
    ABORT_TRANSACTION = 25
    REMOVE_DELEGATION_TOKEN = 26
    REGISTER_CONTROLLER = 27
    CLEAR_ELR = 28
    UNREGISTER_CONTROLLER = 29


# Newest version of each type; 0 for the others. `_change_version` handles BrokerRegistrationChange.
_WRITTEN_VERSIONS: Final = {
    RecordType.REGISTER_BROKER: 4,
    RecordType.PARTITION: 2,
    RecordType.PARTITION_CHANGE: 2,
}


class MetadataRecord(NamedTuple):
    """One change to the cluster's state."""

    type: RecordType
    version: int
    # A Struct.
    body: Any


def metadata_record(record_type: RecordType, /, **fields: Any) -> MetadataRecord:
    """Return a record; missing fields get Kafka's defaults.

    Raises:
        TypeError: The record has no such field.
    """
    body = record_message(record_type).struct_class(**fields)
    if record_type is RecordType.BROKER_REGISTRATION_CHANGE:
        return MetadataRecord(record_type, _change_version(body), body)
    return MetadataRecord(record_type, _WRITTEN_VERSIONS.get(record_type, 0), body)


def encode_metadata_record(record: MetadataRecord) -> bytes:
    """Encode the value of a record."""
    body = record_message(record.type).encode(record.version, record.body)
    return _head(record.type, record.version) + body


def decode_metadata_record(value: Buffer) -> MetadataRecord:
    """Decode the value of a record.

    Raises:
        KafkaError: UNSUPPORTED_VERSION: the type, its version or the frame version is unknown.
        MalformedFrameError.
    """
    frame_version, position = read_uvarint(value, 0)
    if frame_version != _FRAME_VERSION:
        raise _unsupported(f"metadata record frame of version {frame_version}")
    number, position = read_uvarint(value, position)
    version, position = read_uvarint(value, position)
    if number not in RecordType._value2member_map_:
        raise _unsupported(f"metadata record of type {number}")
    record_type = RecordType(number)
    message = record_message(record_type)
    if version not in message.versions:
        raise _unsupported(f"{message.name} of version {version}")
    return MetadataRecord(record_type, version, message.decode(version, value, position))


@cache
def record_message(record_type: RecordType) -> Message:
    """Return the codec of a record type."""
    return load_message(f"{record_type.name.lower()}_record")


def _unsupported(what: str) -> KafkaError:
    return KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"{what} is not supported")


def _change_version(body: Struct) -> int:
    """Return the lowest version that carries the change, as Kafka's controller does."""
    change: Any = body
    if change.cordoned_log_dirs is not None:
        return 3
    if change.log_dirs:
        return 2
    return 1 if change.in_controlled_shutdown else 0


@cache
def _head(record_type: RecordType, version: int) -> bytes:
    return uvarint(_FRAME_VERSION) + uvarint(record_type) + uvarint(version)
