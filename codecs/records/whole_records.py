"""Validation of records that lie completely in one buffer; the rules are those of walk.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.codecs.primitives import read_varint, read_varlong

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.codecs.primitives import Buffer

LONG_MIN: Final = -(1 << 63)
LONG_MAX: Final = (1 << 63) - 1
NO_TIMESTAMP: Final = -1

CONTRADICTS: Final = "a record contradicts its lengths"
MISNUMBERED: Final = "the records' offsets do not count 0, 1, 2"

# Python skips this many in 5 ms.
_MOST_PLAIN_HEADERS: Final = 8192


class RecordFaultError(Exception):
    """The records are malformed; the message says why."""


def walk_whole(  # noqa: PLR0912, PLR0915, PLR0917, C901 - flat: 0.6 us per record
    data: bytes,
    position: int,
    index: int,
    count: int,
    base_timestamp: int,
    note: Callable[[int, int, bool], None] | None = None,
    most_headers: int = LONG_MAX,
    most_bytes: int = LONG_MAX,
) -> tuple[int, int, int, int, bool, int]:
    """Validate records up to an incomplete one, a too large one, or the declared count.

    `note` gets each record's index, timestamp (not wrapped) and whether it has a key.

    Returns:
        The end position and index; the oldest and latest timestamp, whether a key is missing, and
        the number of headers.

    Raises:
        RecordFaultError, MalformedFrameError, IndexError: A record is refused.
    """
    end = len(data)
    header_count = 0
    most_raw = most_bytes << 1 | 1
    oldest, latest, lacks_key = LONG_MAX, NO_TIMESTAMP, False
    while index < count and position < end:
        start = position
        # Short numbers are decoded inline, which saves a third of the time.
        raw = data[position]
        position += 1
        if raw >= 0x80:
            if position < end and (byte := data[position]) < 0x80:
                raw = raw & 0x7F | byte << 7
                position += 1
            else:
                try:
                    length, position = read_varint(data, start)
                except MalformedFrameError:
                    # Reading byte by byte finds the reason.
                    return start, index, oldest, latest, lacks_key, header_count
                raw = length << 1 if length >= 0 else 1
        record_end = position + (raw >> 1)
        if raw & 1 or record_end > end or raw > most_raw:
            return start, index, oldest, latest, lacks_key, header_count
        raw = data[position + 1]
        if raw < 0x80:
            timestamp = base_timestamp + (raw >> 1 ^ -(raw & 1))
            position += 2
        else:
            timestamp, position = read_varlong(data, position + 1)
            timestamp += base_timestamp
        raw = data[position]
        if raw < 0x80:
            position += 1
        else:
            offset_delta, position = read_varint(data, position)
            raw = offset_delta << 1
        if raw != index << 1:
            raise RecordFaultError(MISNUMBERED)
        raw = data[position]
        if raw < 0x80:
            position += 1
        else:
            length, position = read_varint(data, position)
            raw = length << 1 if length >= 0 else 1
        has_key = not raw & 1
        if has_key:
            position += raw >> 1
        else:
            lacks_key = True
        raw = data[position]
        position += 1
        if raw >= 0x80:
            byte = data[position]
            if byte < 0x80:
                raw = raw & 0x7F | byte << 7
                position += 1
            else:
                length, position = read_varint(data, position - 1)
                raw = length << 1 if length >= 0 else 1
        if not raw & 1:
            position += raw >> 1
        if data[position]:
            count_here, position = _pass_headers(data, position, most_headers - header_count)
            header_count += count_here
        else:
            position += 1
        if position != record_end:
            raise RecordFaultError(CONTRADICTS)
        latest = max(latest, timestamp)
        if timestamp < oldest and timestamp != NO_TIMESTAMP:
            oldest = timestamp
        if note is not None:
            note(index, timestamp, has_key)
        index += 1
    return position, index, oldest, latest, lacks_key, header_count


def _pass_headers(data: bytes, position: int, most: int) -> tuple[int, int]:
    count, position = read_varint(data, position)
    if not 0 <= count <= most:
        raise RecordFaultError(CONTRADICTS)
    for _ in range(count):
        length, position = read_varint(data, position)
        if length < 0:
            raise RecordFaultError(CONTRADICTS)
        length, position = read_varint(data, position + length)
        if length > 0:
            position += length
    return count, position


def walks_plainly(records: Buffer, *, count: int, base_timestamp: int, max_timestamp: int) -> bool:
    """Return whether uncompressed records fit the header and none precedes `base_timestamp`.

    Very many headers give False too, because the event loop waits.
    """
    data = bytes(records)
    try:
        position, index, oldest, latest, _, _ = walk_whole(
            data, 0, 0, count, base_timestamp, most_headers=_MOST_PLAIN_HEADERS
        )
    except (RecordFaultError, MalformedFrameError, IndexError):
        return False
    return (
        position == len(data)
        and index == count
        and latest == max_timestamp
        and oldest >= base_timestamp
    )
