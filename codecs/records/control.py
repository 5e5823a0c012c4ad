"""Control records, which brokers and controllers write between data records.

    key := int16 version (0), int16 type

Values of the KRaft types are flexible messages; ABORT and COMMIT have the older fixed format.

    ABORT, COMMIT    int16 version, int32 coordinator_epoch
    LEADER_CHANGE    int16 version, int32 leader_id, [voters], [granting voters], tags
                     voter := int32 id, (v1) uuid directory_id, tags
    SNAPSHOT_HEADER  int16 version, int64 last_contained_log_timestamp, tags
    SNAPSHOT_FOOTER  int16 version, tags
    KRAFT_VERSION    int16 version, int16 kraft_version, tags
    KRAFT_VOTERS     int16 version, [voters], tags
                     voter := int32 id, uuid directory_id, [endpoints], int16 lowest and int16
                     highest kraft_version, tags, tags
                     endpoint := string name, string host, uint16 port, tags

Source: KIP-98, KIP-595, KIP-630, KIP-853; class ControlRecordType.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from struct import error as struct_error
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from wirebroker.codecs.errors import ErrorCode, KafkaError, MalformedFrameError
from wirebroker.codecs.primitives import (
    ZERO_UUID,
    compact_string,
    read_array_count,
    read_compact_string,
    skip_tagged_fields,
    uvarint,
)

if TYPE_CHECKING:
    from wirebroker.codecs.primitives import Buffer

# Limit on a decompressed control batch, which has a few small records.
MAX_CONTROL_BYTES: Final = 1 << 20

_KEY: Final = Struct(">hh")
_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_UINT16: Final = Struct(">H")
_END_TRANSACTION: Final = Struct(">hi")
_VERSION_AND_INT16: Final = Struct(">hh")
_VERSION_AND_INT32: Final = Struct(">hi")
_VERSION_AND_INT64: Final = Struct(">hq")
_VERSION_RANGE: Final = Struct(">hh")
_NO_TAGS: Final = b"\x00"


class ControlType(IntEnum):
    """The type of a control record."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class EndTransactionMarker(NamedTuple):
    """The end of a transaction in this partition."""

    is_commit: bool
    coordinator_epoch: int


class QuorumVoter(NamedTuple):
    """A voter in a leader change."""

    voter_id: int
    directory_id: bytes = ZERO_UUID


class LeaderChange(NamedTuple):
    """A leader's first record of its epoch."""

    leader_id: int
    voters: tuple[QuorumVoter, ...]
    granting_voters: tuple[QuorumVoter, ...]
    # 1 adds the voters' directory ids (kraft.version 1).
    version: int = 0


class SnapshotHeader(NamedTuple):
    """A snapshot's first record."""

    last_contained_log_timestamp: int


class SnapshotFooter(NamedTuple):
    """A snapshot's last record; without it a snapshot is incomplete."""


class KRaftVersion(NamedTuple):
    """The level of the feature kraft.version."""

    kraft_version: int


class VoterEndpoint(NamedTuple):
    """A listener of a voter."""

    name: str
    host: str
    port: int


class Voter(NamedTuple):
    """A voter of a dynamic quorum."""

    voter_id: int
    directory_id: bytes
    endpoints: tuple[VoterEndpoint, ...]
    min_supported_version: int
    max_supported_version: int


class KRaftVoters(NamedTuple):
    """The voters of a dynamic quorum (kraft.version 1)."""

    voters: tuple[Voter, ...]


ControlRecord: TypeAlias = (
    EndTransactionMarker
    | LeaderChange
    | SnapshotHeader
    | SnapshotFooter
    | KRaftVersion
    | KRaftVoters
)


def encode_control_record(record: ControlRecord) -> tuple[bytes, bytes]:
    """Return key and value."""
    match record:
        case EndTransactionMarker(is_commit, coordinator_epoch):
            kind = ControlType.COMMIT if is_commit else ControlType.ABORT
            value = _END_TRANSACTION.pack(0, coordinator_epoch)
        case LeaderChange():
            kind = ControlType.LEADER_CHANGE
            value = _encode_leader_change(record)
        case SnapshotHeader(last_contained_log_timestamp):
            kind = ControlType.SNAPSHOT_HEADER
            value = _VERSION_AND_INT64.pack(0, last_contained_log_timestamp) + _NO_TAGS
        case SnapshotFooter():
            kind = ControlType.SNAPSHOT_FOOTER
            value = _INT16.pack(0) + _NO_TAGS
        case KRaftVersion(kraft_version):
            kind = ControlType.KRAFT_VERSION
            value = _VERSION_AND_INT16.pack(0, kraft_version) + _NO_TAGS
        case KRaftVoters(voters):
            kind = ControlType.KRAFT_VOTERS
            value = _encode_voters(voters)
    return _KEY.pack(0, kind), value


def _encode_leader_change(record: LeaderChange) -> bytes:
    pieces = [_VERSION_AND_INT32.pack(record.version, record.leader_id)]
    for voters in (record.voters, record.granting_voters):
        pieces.append(uvarint(len(voters) + 1))
        for voter in voters:
            pieces.append(_INT32.pack(voter.voter_id))
            if record.version >= 1:
                pieces.append(voter.directory_id)
            pieces.append(_NO_TAGS)
    pieces.append(_NO_TAGS)
    return b"".join(pieces)


def _encode_voters(voters: tuple[Voter, ...]) -> bytes:
    pieces = [_INT16.pack(0), uvarint(len(voters) + 1)]
    for voter in voters:
        pieces += (
            _INT32.pack(voter.voter_id),
            voter.directory_id,
            uvarint(len(voter.endpoints) + 1),
        )
        for endpoint in voter.endpoints:
            pieces += (
                compact_string(endpoint.name),
                compact_string(endpoint.host),
                _UINT16.pack(endpoint.port),
                _NO_TAGS,
            )
        pieces += (
            _VERSION_RANGE.pack(voter.min_supported_version, voter.max_supported_version),
            _NO_TAGS,
            _NO_TAGS,
        )
    pieces.append(_NO_TAGS)
    return b"".join(pieces)


def control_type(key: Buffer | None) -> ControlType | None:
    """Decode a control record's key; None for an unknown type, which callers skip.

    Raises:
        KafkaError: INVALID_RECORD.
    """
    if key is None or len(key) < _KEY.size:
        raise KafkaError(ErrorCode.INVALID_RECORD, "a control record's key is too short")
    version, number = _KEY.unpack_from(key)
    if version < 0:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"a control record's key has version {version}")
    return ControlType(number) if 0 <= number <= ControlType.KRAFT_VOTERS else None


def decode_control_record(key: Buffer | None, value: Buffer | None) -> ControlRecord | None:
    """Decode a control record; None if its type is unknown.

    Raises:
        KafkaError: INVALID_RECORD: key or value do not fit the type.
    """
    kind = control_type(key)
    if kind is None:
        return None
    if value is None:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"a control record {kind.name} has no value")
    try:
        return _decode_value(kind, value)
    except (MalformedFrameError, struct_error) as error:
        raise KafkaError(
            ErrorCode.INVALID_RECORD, f"a control record {kind.name} is cut off: {error}"
        ) from None


def _decode_value(kind: ControlType, value: Buffer) -> ControlRecord:
    match kind:
        case ControlType.ABORT | ControlType.COMMIT:
            _, coordinator_epoch = _END_TRANSACTION.unpack_from(value)
            return EndTransactionMarker(kind is ControlType.COMMIT, coordinator_epoch)
        case ControlType.LEADER_CHANGE:
            return _decode_leader_change(value)
        case ControlType.SNAPSHOT_HEADER:
            return SnapshotHeader(_VERSION_AND_INT64.unpack_from(value)[1])
        case ControlType.SNAPSHOT_FOOTER:
            _INT16.unpack_from(value)
            return SnapshotFooter()
        case ControlType.KRAFT_VERSION:
            return KRaftVersion(_VERSION_AND_INT16.unpack_from(value)[1])
        case ControlType.KRAFT_VOTERS:
            return _decode_voters(value)


def _decode_leader_change(value: Buffer) -> LeaderChange:
    version, leader_id = _VERSION_AND_INT32.unpack_from(value)
    position = _VERSION_AND_INT32.size
    voter_bytes = 21 if version >= 1 else 5
    lists: list[tuple[QuorumVoter, ...]] = []
    for _ in range(2):
        count, position = read_array_count(value, position, compact=True, element_bytes=voter_bytes)
        voters: list[QuorumVoter] = []
        for _ in range(count):
            (voter_id,) = _INT32.unpack_from(value, position)
            position += 4
            directory_id = ZERO_UUID
            if version >= 1:
                directory_id = bytes(value[position : position + 16])
                position += 16
            position = skip_tagged_fields(value, position)
            voters.append(QuorumVoter(voter_id, directory_id))
        lists.append(tuple(voters))
    return LeaderChange(leader_id, lists[0], lists[1], version)


def _decode_voters(value: Buffer) -> KRaftVoters:
    # 27: id, directory id, an empty list, two versions, two empty sections of tags.
    count, position = read_array_count(value, 2, compact=True, element_bytes=27)
    voters: list[Voter] = []
    for _ in range(count):
        (voter_id,) = _INT32.unpack_from(value, position)
        directory_id = bytes(value[position + 4 : position + 20])
        endpoints, position = _decode_endpoints(value, position + 20)
        lowest, highest = _VERSION_RANGE.unpack_from(value, position)
        position = skip_tagged_fields(value, position + _VERSION_RANGE.size)
        position = skip_tagged_fields(value, position)
        voters.append(Voter(voter_id, directory_id, endpoints, lowest, highest))
    return KRaftVoters(tuple(voters))


def _decode_endpoints(value: Buffer, position: int) -> tuple[tuple[VoterEndpoint, ...], int]:
    count, position = read_array_count(value, position, compact=True, element_bytes=5)
    endpoints: list[VoterEndpoint] = []
    for _ in range(count):
        name, position = read_compact_string(value, position)
        host, position = read_compact_string(value, position)
        (port,) = _UINT16.unpack_from(value, position)
        position = skip_tagged_fields(value, position + 2)
        endpoints.append(VoterEndpoint(name, host, port))
    return tuple(endpoints), position
