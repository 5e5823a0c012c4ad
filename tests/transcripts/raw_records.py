"""Records byte by byte, and batches with any payload, which no encoder would write."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from wirebroker.codecs.primitives import varint
from wirebroker.codecs.records.batch import write_crc
from wirebroker.codecs.records.codec import Codec
from wirebroker.codecs.records.compression import compress
from wirebroker.codecs.records.layout import HEADER, HEADER_BYTES, OVERHEAD_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

_BASE_TIMESTAMP = 1_700_000_000_000


def wide(number: int, size: int) -> bytes:
    """Return a zigzag varint with redundant bytes."""
    raw = (number << 1 if number >= 0 else (-number << 1) - 1) & (1 << 64) - 1
    digits = [raw >> 7 * index & 0x7F for index in range(size)]
    return bytes([*(digit | 0x80 for digit in digits[:-1]), digits[-1]])


def _field(value: str | None, length: int | None, size: int) -> bytes:
    data = b"" if value is None else value.encode()
    if length is None:
        length = -1 if value is None else len(data)
    return (wide(length, size) if size else varint(length)) + data


def record(
    value: str | None = "a",
    *,
    key: str | None = "k",
    offset: int = 0,
    time: int = 0,
    attributes: int = 0,
    headers: Sequence[tuple[str | None, str | None]] = (),
    length: int | None = None,
    longer: int = 0,
    key_length: int | None = None,
    value_length: int | None = None,
    header_count: int | None = None,
    tail: bytes = b"",
    widths: int = 0,
) -> bytes:
    """Return one record.

    Args:
        value: Its value, or None.
        key: Its key, or None.
        offset: The offset delta.
        time: The timestamp delta.
        attributes: Unused by Kafka.
        headers: Key and value of each.
        length: False length.
        longer: Added to the true length.
        key_length: False key length.
        value_length: False value length.
        header_count: False header count.
        tail: Bytes after the headers.
        widths: Size of each varint.
    """

    def number(value: int) -> bytes:
        return wide(value, widths) if widths else varint(value)

    body = struct.pack(">B", attributes) + number(time) + number(offset)
    body += _field(key, key_length, widths) + _field(value, value_length, widths)
    body += number(len(headers) if header_count is None else header_count)
    body += b"".join(_field(part, None, widths) for header in headers for part in header) + tail
    return number(len(body) + longer if length is None else length) + body


def batch_of(
    *records: bytes,
    codec: str = "none",
    packed: bytes | None = None,
    count: int | None = None,
    attributes: int = 0,
    base_timestamp: int = _BASE_TIMESTAMP,
    max_timestamp: int | None = None,
    producer: tuple[int, int, int] = (-1, -1, -1),
    cut: int = 0,
    tail: bytes = b"",
) -> bytes:
    """Return a batch with a correct CRC and the given header fields.

    Args:
        records: The encoded records.
        codec: The compression's name.
        packed: Replaces the compressed records.
        count: Record count, and the last offset delta plus one.
        attributes: Added to the codec's.
        base_timestamp: Header field.
        max_timestamp: Header field; by default the base.
        producer: Id, epoch and sequence.
        cut: Bytes to remove from the end of the compressed records.
        tail: Bytes after them.
    """
    number = Codec[codec.upper()]
    payload = compress(number, b"".join(records)) if packed is None else packed
    payload = payload[: len(payload) - cut] + tail
    if count is None:
        count = len(records)
    batch_bytes = bytearray(HEADER_BYTES) + payload
    length = len(batch_bytes) - OVERHEAD_BYTES
    latest = base_timestamp if max_timestamp is None else max_timestamp
    numbers = (number | attributes, count - 1, base_timestamp, latest, *producer, count)
    HEADER.pack_into(batch_bytes, 0, 0, length, -1, 2, 0, *numbers)
    write_crc(batch_bytes, 0)
    return bytes(batch_bytes)
