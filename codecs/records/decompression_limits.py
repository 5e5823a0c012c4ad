"""Limits and errors of decompression, shared by all codecs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.codecs.errors import ErrorCode, KafkaError, TooLargeError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirebroker.codecs.primitives import Buffer

# Kafka has no limit (docs/compatibility.md). This is over a hundred times max.message.bytes.
MAX_DECOMPRESSED_BYTES: Final = 128 << 20

# Limit on data that cannot be returned in pieces: a block of snappy, or a large window (zstd).
MAX_HELD_BYTES: Final = 48 << 20

# Producers write one frame. The time grows with the square of the number of frames.
MAX_FRAMES: Final = 16

# Of snappy and zstd: a block takes a microsecond and usually has at least 32 KiB.
MAX_BLOCKS: Final = 8192

# Output per call, so that a small input never reserves `max_bytes`.
CHUNK_BYTES: Final = 1 << 17
# Input per call: libraries copy the unconsumed input.
INPUT_BYTES: Final = 1 << 16


def too_large(max_bytes: int) -> TooLargeError:
    """Return the error for records that decompress to more than the limit."""
    sentence = f"the records decompress to more than {max_bytes} bytes"
    return TooLargeError(ErrorCode.INVALID_RECORD, sentence)


def corrupt(codec: str, cause: object) -> KafkaError:
    """Return the error for data that is not in the codec's format."""
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the {codec} data is bad: {cause}")


def bounded(pieces: Iterator[Buffer], max_bytes: int) -> Iterator[Buffer]:
    """Yield the pieces; raise TooLargeError after `max_bytes`."""
    budget = max_bytes
    for piece in pieces:
        budget -= len(piece)
        if budget < 0:
            raise too_large(max_bytes)
        yield piece


def inputs(data: Buffer) -> Iterator[memoryview]:
    """Yield the input in views of INPUT_BYTES."""
    view = memoryview(data)
    for start in range(0, len(view), INPUT_BYTES):
        yield view[start : start + INPUT_BYTES]
