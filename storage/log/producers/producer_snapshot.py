"""The format of `<offset>.snapshot` (storage/README.md): all producers when the log ended there.

Only the last of a producer's five batches is stored, so retries of older ones are refused after a
restart (as in Kafka). Source: Kafka's ProducerStateManager.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.codecs.records.checksum import crc32c
from wirebroker.storage.file_names import offset_before

if TYPE_CHECKING:
    from collections.abc import Iterable

SUFFIX: Final = ".snapshot"
_VERSION: Final = 1
_HEAD: Final = struct.Struct(">hIi")
_COUNTED_FROM: Final = 6
_ROW: Final = struct.Struct(">qhiqiqiq")


class SnapshotRow(NamedTuple):
    """One producer; the fields are in file order."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int
    coordinator_epoch: int
    current_txn_first_offset: int  # -1: no transaction is open


class CorruptSnapshotError(Exception):
    """The file is unusable."""


def snapshot_name(offset: int) -> str:
    """Return a snapshot's file name."""
    return f"{offset:020d}{SUFFIX}"


def snapshot_offset(name: str) -> int | None:
    """Return the offset in a file name, or None."""
    return offset_before(name, SUFFIX)


def encode_snapshot(rows: Iterable[SnapshotRow]) -> bytes:
    """Return a snapshot file's content."""
    packed = [_ROW.pack(*row) for row in rows]
    body = struct.pack(">i", len(packed)) + b"".join(packed)
    return _HEAD.pack(_VERSION, crc32c(body), len(packed)) + body[4:]


def decode_snapshot(content: bytes) -> list[SnapshotRow]:
    """Return the rows of a snapshot file.

    Raises:
        CorruptSnapshotError: It is too short, has another version, or its CRC differs.
    """
    if len(content) < _HEAD.size:
        raise CorruptSnapshotError(f"{len(content)} bytes are too short")
    version, crc, count = _HEAD.unpack_from(content)
    if version != _VERSION:
        raise CorruptSnapshotError(f"version {version} is not known")
    if crc != crc32c(content[_COUNTED_FROM:]):
        raise CorruptSnapshotError("the CRC differs")
    if count < 0 or len(content) != _HEAD.size + count * _ROW.size:
        raise CorruptSnapshotError(f"{count} producers don't fill {len(content)} bytes")
    return [SnapshotRow._make(row) for row in _ROW.iter_unpack(content[_HEAD.size :])]
