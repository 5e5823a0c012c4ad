"""Topics with their partitions in groups' records, as compact arrays with thousands of topics.

    length   of the array, plus one (unsigned varint)
    topics   each: topic id (16 bytes), number of partitions plus one, partitions (int32), ...

What follows the partitions of a topic depends on the record.
"""

from __future__ import annotations

from struct import Struct
from struct import error as struct_error
from typing import TYPE_CHECKING, Any, Final, TypeVar

from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.codecs.primitives import read_uvarint, uvarint

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from wirebroker.base.clock import Steps

T = TypeVar("T")
# The partitions of a topic, possibly with a value for each.
ContentT = TypeVar("ContentT", bound="Collection[int]")

NO_TAGS: Final = b"\0"
# Between two yields of an encoder, in topics and partitions: half a millisecond at most.
WORK_PER_STEP: Final = 1_000
_TOPIC_ID_BYTES: Final = 16


class UnusualError(Exception):
    """The generic codec has to read the value."""


# What decoders of values raise for one that they leave to the generic codec.
LEFT_TO_GENERIC: Final = (
    struct_error,
    IndexError,
    MalformedFrameError,
    UnusualError,
    ValueError,
)


def encode_topics(
    parts: list[bytes],
    topics: Mapping[bytes, ContentT],
    encode: Callable[[bytes, list[int], ContentT], bytes],
    work: int = 0,
) -> Steps[int]:
    """Append an array to `parts`: topics in the mapping's order, their partitions sorted.

    `encode` encodes a topic from its id, partitions and content. `work` is the amount of work since
    the caller's last yield. Return the amount since the last yield.
    """
    parts.append(uvarint(len(topics) + 1))
    for topic_id, content in topics.items():
        count = len(content)
        indexes = sorted(content) if count > 1 else list(content)
        parts.append(encode(topic_id, indexes, content))
        work += 1 + count
        if work >= WORK_PER_STEP:
            work = 0
            yield
    return work


def decode_topics(
    value: bytes,
    position: int,
    layout_of: Callable[[int], Struct],
    content_of: Callable[[int, tuple[Any, ...]], T],
) -> tuple[dict[bytes, T], int]:
    """Decode an array; return the topics' contents by their ids, and the position after it.

    `layout_of` returns the layout of a topic with a number of partitions, whose first field is the
    id; `content_of` returns the content of that number and the fields. Both raise UnusualError.

    Raises:
        UnusualError: Also other errors of a short or malformed value: see LEFT_TO_GENERIC.
    """
    length, position = read_uvarint(value, position)
    if not length or length > len(value):
        raise UnusualError
    contents: dict[bytes, T] = {}
    for _ in range(length - 1):
        count = value[position + _TOPIC_ID_BYTES] - 1
        layout = layout_of(count)
        fields = layout.unpack_from(value, position)
        contents[fields[0]] = content_of(count, fields)
        position += layout.size
    return contents, position
