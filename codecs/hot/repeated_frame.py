"""Recognition of Produce requests that repeat the previous one with new records.

    int16 key, int16 version | int32 correlation id | unchanged part | count | partitions | no tags
    partition   int32 index | length | records | no tags

The request has one topic, with partitions in any number and order. Count and length are int32s; in
flexible versions they are varints, increased by one, and each partition, the topic and the request
end with a byte for no tagged fields. The response differs from the previous one only in numbers.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from struct import Struct
from typing import TYPE_CHECKING, Final, TypeAlias

from wirebroker.codecs.records.layout import (
    HEADER_BYTES,
    LENGTH_MAGIC_FLAGS,
    MAGIC,
    OVERHEAD_BYTES,
)

if TYPE_CHECKING:
    from collections.abc import Callable

try:
    from wirebroker.codecs import _hot
except ImportError:  # not compiled
    _hot = None  # type: ignore[assignment]

HEAD_BYTES: Final = 4
SAME_START: Final = 8
# Larger counts would be varints of two bytes.
MOST_PARTITIONS: Final = 100
# In a frame, and in a response after its size.
CORRELATION_ID_AT: Final = 4
_INT32_BYTES: Final = 4
_THREE_INT32_BYTES: Final = 12
_COUNT_INDEX_AND_BYTE_BYTES: Final = 6
# The first byte of a length decides how it continues.
_INDEX_AND_BYTE: Final = Struct(">iB")
_INDEX_AND_LENGTH: Final = Struct(">ii")

# In a response: index, error code, base offset, log append time, log start offset.
_NUMBERS_BYTES: Final = 4 + 2 + 3 * 8

# Cached layouts, of at most 18 KB each; connections share them.
_MOST_LAYOUTS: Final = 128

# A partition's index, its records, and the low byte of their attributes.
Part: TypeAlias = tuple[int, memoryview, int]


def match(  # noqa: C901, PLR0911, PLR0912 - flat for speed: it runs for each request
    frame: memoryview, head: bytes, same: bytes, is_flexible: bool
) -> tuple[int, list[Part]] | None:
    """Compare a frame with the unchanged parts of the previous request.

    `head` are the first four bytes, `same` those between the correlation id and the count of
    partitions.

    Returns:
        Correlation id and partitions, each with one batch by size and magic. None if anything
        differs, there are no partitions or more than MOST_PARTITIONS, or, in a flexible version, a
        batch has more than 2 MiB.
    """
    parts: list[Part] = []
    end = len(frame)
    try:
        found, correlation_id, middle, count, index, length = _start(
            len(same), is_flexible
        ).unpack_from(frame)
        if found != head or middle != same:
            return None
        start = SAME_START + len(same)
        if is_flexible:
            start += _COUNT_INDEX_AND_BYTE_BYTES
            count -= 1
            end -= 2
            if frame[end] or frame[end + 1]:
                return None
        else:
            start += _THREE_INT32_BYTES
        if not 0 < count <= MOST_PARTITIONS:
            return None
        while True:
            if is_flexible:
                if length >= 0x80:
                    length += (frame[start] - 1) << 7
                    start += 1
                    if length >= 0x4000:
                        length += (frame[start] - 1) << 14
                        start += 1
                        if length >= 0x200000:
                            return None
                stop = start + length - 1
                position = stop + 1
                if frame[stop]:
                    return None
            else:
                position = stop = start + length
            if stop - start < HEADER_BYTES:
                return None
            records = frame[start:stop]
            size, magic, attributes = LENGTH_MAGIC_FLAGS.unpack_from(records)
            if size + OVERHEAD_BYTES != stop - start or magic != MAGIC:
                return None
            parts.append((index, records, attributes))
            if len(parts) == count:
                break
            numbers = _INDEX_AND_BYTE if is_flexible else _INDEX_AND_LENGTH
            index, length = numbers.unpack_from(frame, position)
            start = position + numbers.size
    except (IndexError, struct.error):  # the frame or a batch ends too early
        return None
    return (correlation_id, parts) if position == end else None


@lru_cache(_MOST_LAYOUTS)
def _start(same_bytes: int, is_flexible: bool) -> Struct:
    """Return the layout down to the first partition's index and length."""
    return Struct(f">{HEAD_BYTES}si{same_bytes}s{'BiB' if is_flexible else 'iii'}")


class AnswerKind:
    """A template of responses that differ only in some numbers.

    Attributes:
        fill: Makes a response from `before` (its size), the correlation id, `between`; for each
            partition its index, base offset, log append time (-1: the records' own), log start
            offset and `tail`; and `behind`.
    """

    __slots__ = ("_layout", "before", "behind", "between", "tail")

    def __init__(self, answer: bytes, count: int, *, at: int, part_bytes: int) -> None:
        """Make a template from a response without errors, with its size.

        Its `count` partitions begin at `at` and have `part_bytes` each.
        """
        start = CORRELATION_ID_AT + _INT32_BYTES
        end = at + count * part_bytes
        tail_bytes = part_bytes - _NUMBERS_BYTES
        assert start <= at, "the partitions are behind the correlation id"
        assert end <= len(answer), "the partitions are within the answer"
        assert tail_bytes >= 0, "the numbers are within the partition"
        self.before = answer[:CORRELATION_ID_AT]
        self.between = answer[start:at]
        self.tail = answer[at + _NUMBERS_BYTES : at + part_bytes]
        self.behind = answer[end:]
        self._layout = count, at - start, tail_bytes, len(answer) - end

    @property
    def fill(self) -> Callable[..., bytes]:
        """See the class; not stored, because it is larger than the response."""
        return _filler(self._layout)


@lru_cache(_MOST_LAYOUTS)
def _filler(layout: tuple[int, int, int, int]) -> Callable[..., bytes]:
    count, between_bytes, tail_bytes, behind_bytes = layout
    parts = f"i2xqqq{tail_bytes}s" * count
    # A single call: our own C code saved only 0.2 us.
    return Struct(f">{CORRELATION_ID_AT}si{between_bytes}s{parts}{behind_bytes}s").pack


if _hot is not None:
    match = _hot.match
