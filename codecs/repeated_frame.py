"""Tells a frame that differs from the last Produce request only where each of them must.

    int16 key, int16 version | int32 correlation id | all the same | length | records | no tags

The length is an int32, or (flexible versions) a varint of the length plus one; flexible ones end
with three bytes that say that partition, topic and request have no tagged fields.

Its answer is the last one's with other numbers. A compiled build has both functions in C (_hot.c),
for which these are the reference.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from wirebroker.codecs.record_batch import HEADER_BYTES

try:
    from wirebroker.codecs import _hot
except ImportError:  # not compiled
    _hot = None  # type: ignore[assignment]

NO_TAGS: Final = b"\x00\x00\x00"
CLASSIC_LENGTH: Final = Struct(">i")
HEAD_BYTES: Final = 4
SAME_START: Final = 8
# In a frame, and in an answer behind its size.
CORRELATION_ID_AT: Final = 4
_CORRELATION_ID: Final = Struct(">i")
_NUMBERS: Final = Struct(">qqq")
_LENGTH_BYTES: Final = 3
# In a batch header: attributes' second byte.
_ATTRIBUTES_POSITION: Final = 22


def match(
    frame: memoryview, head: bytes, same: bytes, is_flexible: bool
) -> tuple[int, int, int, int] | None:
    """Compare a frame with what is the same in all.

    Args:
        frame: A whole frame, without its size.
        head: Its first four bytes.
        same: What stands between the correlation id and the length of the records.
        is_flexible: How lengths are written.

    Returns:
        Correlation id, where the records begin and end, and the low byte of their batch's
        attributes; None if anything differs, or they are no batch, or of more than 2 MiB in a
        flexible version.
    """
    length_at = SAME_START + len(same)
    if len(frame) < length_at + HEADER_BYTES:
        return None
    if bytes(frame[:HEAD_BYTES]) != head or bytes(frame[SAME_START:length_at]) != same:
        return None
    start, stop = length_at + CLASSIC_LENGTH.size, len(frame)
    if is_flexible:
        stop -= len(NO_TAGS)
        start = length_at + 1
        length = frame[length_at]
        while frame[start - 1] >= 0x80:
            if start - length_at == _LENGTH_BYTES:
                return None
            length += (frame[start] - 1) << 7 * (start - length_at)
            start += 1
        length -= 1
        if bytes(frame[stop:]) != NO_TAGS:
            return None
    else:
        (length,) = CLASSIC_LENGTH.unpack_from(frame, length_at)
    if length != stop - start or length < HEADER_BYTES:
        return None
    (correlation_id,) = _CORRELATION_ID.unpack_from(frame, CORRELATION_ID_AT)
    return correlation_id, start, stop, frame[start + _ATTRIBUTES_POSITION]


def fill(  # noqa: PLR0917 - one per request: keywords would cost as much as it does
    answer: bytes,
    numbers_at: int,
    correlation_id: int,
    base_offset: int,
    log_append_time_ms: int,
    log_start_offset: int,
) -> bytes:
    """Return another answer of the same kind, its size before it: only four numbers differ.

    Args:
        answer: The kind.
        numbers_at: Where the last three stand in it, one after the other.
        correlation_id: That of the request.
        base_offset: See codecs/produce_response.py, like the next two.
        log_append_time_ms: -1 if the records keep their own.
        log_start_offset: The log's.
    """
    filled = bytearray(answer)
    _CORRELATION_ID.pack_into(filled, CORRELATION_ID_AT, correlation_id)
    _NUMBERS.pack_into(filled, numbers_at, base_offset, log_append_time_ms, log_start_offset)
    return bytes(filled)


if _hot is not None:
    match = _hot.match
    fill = _hot.fill
