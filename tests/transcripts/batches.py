"""Hand-made record batches for Produce requests, valid and damaged."""

from __future__ import annotations

import importlib
import struct
from typing import TYPE_CHECKING, Any

import cramjam

from tests.transcripts.raw_records import batch_of, record, wide
from tests.transcripts.topologies import internal, subtopology, tasks, topology
from wirebroker.codecs.records.batch import build_batch, write_crc
from wirebroker.codecs.records.codec import Codec
from wirebroker.codecs.records.compression import compress
from wirebroker.codecs.records.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable

# Position and format of each header field (magic 2).
_FIELDS = {
    "base_offset": (0, ">q"),
    "length": (8, ">i"),
    "leader_epoch": (12, ">i"),
    "magic": (16, ">b"),
    "crc": (17, ">I"),
    "attributes": (21, ">h"),
    "last_offset_delta": (23, ">i"),
    "base_timestamp": (27, ">q"),
    "max_timestamp": (35, ">q"),
    "producer_id": (43, ">q"),
    "producer_epoch": (51, ">h"),
    "base_sequence": (53, ">i"),
    "record_count": (57, ">i"),
}


def batch(
    *values: str,
    codec: str = "none",
    key: str | None = "k",
    timestamp_ms: int = 1_700_000_000_000,
    cut: int = 0,
    damage: dict[str, int] | None = None,
    **header: Any,
) -> bytes:
    """Return a batch with one record per value.

    Args:
        values: The records' values; "null" means none.
        codec: The compression's name.
        key: The key of each record, or None.
        timestamp_ms: The first timestamp; each record adds one millisecond.
        cut: Bytes to remove at the end.
        damage: Header fields to overwrite; the CRC is recomputed unless it is one of them.
        header: Arguments of build_batch: producer_id, producer_epoch, base_sequence, …
    """
    key_bytes = None if key is None else key.encode()
    base_offset = int(header.get("base_offset", 0))
    records = [
        Record(
            offset=base_offset + number,
            timestamp=timestamp_ms + number,
            key=key_bytes,
            value=None if value == "null" else value.encode(),
            headers=(),
        )
        for number, value in enumerate(values)
    ]
    batch_bytes = build_batch(records, codec=Codec[codec.upper()], **header)
    for name, value in (damage or {}).items():
        position, layout = _FIELDS[name]
        struct.pack_into(layout, batch_bytes, position, value)
    if damage and "crc" not in damage and len(batch_bytes) > _FIELDS["attributes"][0]:
        write_crc(batch_bytes, 0)
    return bytes(batch_bytes[: len(batch_bytes) - cut] if cut else batch_bytes)


def old_message(*, magic: int, value: str = "old") -> bytes:
    """Return a message with magic 0 or 1 and CRC zero."""
    body = struct.pack(">bb", magic, 0)
    if magic == 1:
        body += struct.pack(">q", 1_700_000_000_000)
    body += struct.pack(">i", -1) + struct.pack(">i", len(value)) + value.encode()
    return struct.pack(">qi", 0, 4 + len(body)) + struct.pack(">I", 0) + body


def marker(*, producer_id: int, producer_epoch: int, is_transactional: bool) -> bytes:
    """Return a commit marker, which only brokers may write."""
    commit = Record(
        offset=0,
        timestamp=1_700_000_000_000,
        key=struct.pack(">hh", 0, 1),
        value=struct.pack(">hi", 0, 0),
        headers=(),
    )
    batch_bytes = build_batch(
        [commit],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_control=True,
        is_transactional=is_transactional,
    )
    return bytes(batch_bytes)


def repeat(text: str, count: int) -> str:
    return text * count


def zeros(count: int) -> bytes:
    return bytes(count)


def subscription(*topics: str) -> bytes:
    """Return a consumer's JoinGroup metadata for these topics."""
    names = b"".join(struct.pack(">h", len(topic)) + topic.encode() for topic in topics)
    return struct.pack(">hi", 0, len(topics)) + names + struct.pack(">i", -1)


def hex_bytes(text: str) -> bytes:
    return bytes.fromhex(text)


def packed(codec: str, *pieces: bytes) -> bytes:
    """Compress bytes like a batch's records."""
    return compress(Codec[codec.upper()], b"".join(pieces))


def raw_snappy(*pieces: bytes) -> bytes:
    """Return one snappy block without a stream header, as librdkafka writes it."""
    return bytes(cramjam.snappy.compress_raw(b"".join(pieces)))


def lz4_frame(*pieces: bytes, **options: Any) -> bytes:
    """Return a frame with options of the lz4 package."""
    frame: bytes = importlib.import_module("lz4.frame").compress(b"".join(pieces), **options)
    return frame


HELPERS: dict[str, Callable[..., Any]] = {
    "record": record,
    "batch_of": batch_of,
    "wide": wide,
    "packed": packed,
    "raw_snappy": raw_snappy,
    "lz4_frame": lz4_frame,
    "batch": batch,
    "old_message": old_message,
    "marker": marker,
    "subscription": subscription,
    "repeat": repeat,
    "zeros": zeros,
    "hex": hex_bytes,
    "topology": topology,
    "subtopology": subtopology,
    "internal": internal,
    "tasks": tasks,
}
