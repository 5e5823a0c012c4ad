"""What nearly every producer sends, a batch that needs no second look: its check and its placing.

A build with the C extension has both in C (_hot.c), for which this is the reference.
"""

from __future__ import annotations

from typing import Final

from wirebroker.codecs.records.batch import BatchHeader, batch_crc, set_base_offset_and_epoch
from wirebroker.codecs.records.compression import Codec
from wirebroker.codecs.records.layout import (
    CODEC_MASK,
    HEADER,
    HEADER_BYTES,
    MAGIC,
    OVERHEAD_BYTES,
)
from wirebroker.codecs.records.walk import walks_plainly

try:
    from wirebroker.codecs import _hot
except ImportError:  # not compiled
    _hot = None  # type: ignore[assignment]

# A codec (perhaps), perhaps transactional.
_PLAIN_ATTRIBUTES: Final = 0x17
# A record's length, attributes, two deltas, two lengths of nothing, the count of headers.
SMALLEST_RECORD_BYTES: Final = 7


def checked_header(records: memoryview, is_walked: bool) -> BatchHeader | None:
    """Read the header of a producer's batch if all is plain.

    Plain is one whole batch of magic 2 at base offset 0 whose CRC is right, whose count agrees with
    its offsets and could fit, of a known codec, no control batch, with a sequence if it has a
    producer id. If it is walked and not compressed, its records are what the header says, and none
    is older than its base timestamp.

    Args:
        records: A partition's bytes in a Produce request.
        is_walked: Whether its records are looked at.

    Returns:
        None if anything is not so; that may still be allowed.
    """
    size = len(records)
    if size < HEADER_BYTES:
        return None
    fields = HEADER.unpack_from(records)
    base_offset, length, _, magic, crc, attributes, last_offset_delta = fields[:7]
    base_timestamp, max_timestamp, producer_id, _, base_sequence, count = fields[7:]
    if (
        length + OVERHEAD_BYTES != size
        or magic != MAGIC
        or base_offset != 0
        or count <= 0
        or last_offset_delta + 1 != count
        or attributes & ~_PLAIN_ATTRIBUTES
        or attributes & CODEC_MASK > Codec.ZSTD
        or (base_sequence < 0 and producer_id >= 0)
        or count * SMALLEST_RECORD_BYTES > size - HEADER_BYTES
        or batch_crc(records, 0, size) != crc
        or (
            is_walked
            and not attributes & CODEC_MASK
            and not (
                (count == 1 and base_timestamp == max_timestamp and _is_one_record(records, size))
                or walks_plainly(
                    records[HEADER_BYTES:],
                    count=count,
                    base_timestamp=base_timestamp,
                    max_timestamp=max_timestamp,
                )
            )
        )
    ):
        return None
    return tuple.__new__(BatchHeader, fields)  # pyright: ignore[reportUnknownMemberType]


def _is_one_record(records: memoryview, size: int) -> bool:
    """Tell at a glance whether a batch holds one record with nothing special in it.

    That is what small requests hold; the walk would add a microsecond to each. The record has the
    batch's base timestamp, a key of less than 64 bytes or none, a value of less than 1 MiB or none
    and no headers.

    Args:
        records: A batch.
        size: Of the batch.

    Returns:
        False: it may well be one, but not such a one.
    """
    try:
        raw, position = records[HEADER_BYTES], HEADER_BYTES + 1
        if raw >= 0x80:
            raw, position = raw & 0x7F | records[position] << 7, position + 1
            if raw >= 0x4000:
                raw, position = raw & 0x3FFF | records[position] << 14, position + 1
                if raw >= 0x200000:
                    return False
        # The length (of all that follows), two deltas of nothing, a key.
        if raw != size - position << 1 or records[position + 1] or records[position + 2]:
            return False
        raw = records[position + 3]
        position += 4
        if raw >= 0x80:
            return False
        if not raw & 1:
            position += raw >> 1
        raw = records[position]
        position += 1
        if raw >= 0x80:
            raw, position = raw & 0x7F | records[position] << 7, position + 1
            if raw >= 0x4000:
                raw, position = raw & 0x3FFF | records[position] << 14, position + 1
                if raw >= 0x200000:
                    return False
        if not raw & 1:
            position += raw >> 1
        return position + 1 == size and not records[position]
    except IndexError:
        return False


def place(
    records: memoryview, header: BatchHeader, base_offset: int, leader_epoch: int
) -> BatchHeader:
    """Give a batch its offset and epoch, in place and outside of what the CRC covers.

    Args:
        records: Begins with the batch; writable.
        header: The batch's.
        base_offset: Of its first record.
        leader_epoch: Of the leader that appends it.

    Returns:
        Its header now.
    """
    set_base_offset_and_epoch(records, 0, base_offset, leader_epoch)
    # A third of the time that reading the header again would take.
    fields = (base_offset, header[1], leader_epoch, *header[3:])
    return tuple.__new__(BatchHeader, fields)  # pyright: ignore[reportUnknownMemberType]


if _hot is not None:
    checked_header = _hot.checked_header
    place = _hot.place
