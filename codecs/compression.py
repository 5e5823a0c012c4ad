"""The only door to the compression libraries: whole payloads in, whole payloads out, bounded.

    GZIP     one or more gzip members
    SNAPPY   raw snappy, or xerial's stream, which Java's clients write: 0x82 "SNAPPY" 0x00,
             int32 version, int32 lowest compatible version, then blocks of
             (int32 length, raw snappy of at most 32 KiB)
    LZ4      one frame; Java's have independent 64 KiB blocks, no checksum, no content size
    ZSTD     one or more frames; Java's stream carries no content size

Laws: `decompress` never holds much more than `max_bytes` of output, whatever the input declares,
and believes no declared size before the input could produce it. Libraries are imported at first
use, because most brokers never need three of the four.

Source: Kafka's package common.compress; the formats' own specifications.
"""

from __future__ import annotations

import importlib
import zlib
from enum import IntEnum
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.errors import ErrorCode, KafkaError, MalformedFrameError
from wirebroker.codecs.primitives import read_uvarint

if TYPE_CHECKING:
    from wirebroker.codecs.primitives import Buffer


class Codec(IntEnum):
    """The lowest three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


# Kafka's default levels (compression.gzip.level and its siblings).
GZIP_DEFAULT_LEVEL: Final = -1
LZ4_DEFAULT_LEVEL: Final = 9
ZSTD_DEFAULT_LEVEL: Final = 3

# Producers write one frame. Concatenated ones are legal, but thousands of empty ones would cost
# time in proportion to the square of their number.
_MAX_FRAMES: Final = 16

# Output is asked for in pieces of this size, so that a small input never reserves `max_bytes`.
_CHUNK_BYTES: Final = 1 << 18

_GZIP_WINDOW_BITS: Final = 31
# 128 MiB, the most that level 22 uses and that zstd's own tools accept unasked.
_ZSTD_MAX_WINDOW_BYTES: Final = 1 << 27

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_VERSIONS: Final = Struct(">ii").pack(1, 1)
_XERIAL_HEADER_BYTES: Final = 16
_XERIAL_BLOCK_BYTES: Final = 1 << 15
_INT32: Final = Struct(">i")
# The best a snappy element does: 3 bytes in, 64 bytes out.
_SNAPPY_MAX_RATIO: Final = 22


def compress(codec: Codec, data: Buffer, level: int | None = None) -> bytes:
    """Compress a batch's records.

    Args:
        codec: How; with NONE the data comes back as it is.
        data: The records.
        level: As in Kafka's config of that codec; None is its default there.
    """
    match codec:
        case Codec.NONE:
            return bytes(data)
        case Codec.GZIP:
            deflater = zlib.compressobj(
                GZIP_DEFAULT_LEVEL if level is None else level, zlib.DEFLATED, _GZIP_WINDOW_BITS
            )
            return deflater.compress(data) + deflater.flush()
        case Codec.SNAPPY:
            return _compress_snappy(data)
        case Codec.LZ4:
            return _compress_lz4(data, level)
        case Codec.ZSTD:
            import zstandard  # noqa: PLC0415 - at first use

            chosen = ZSTD_DEFAULT_LEVEL if level is None else level
            return zstandard.ZstdCompressor(level=chosen).compress(data)


def decompress(codec: Codec, data: Buffer, *, max_bytes: int) -> bytes:
    """Decompress a batch's records.

    Raises:
        KafkaError: INVALID_RECORD if they would be more than `max_bytes`, CORRUPT_MESSAGE if the
            data is not in the codec's format.
    """
    match codec:
        case Codec.NONE:
            return _bounded(bytes(data), max_bytes)
        case Codec.GZIP:
            return _decompress_gzip(data, max_bytes)
        case Codec.SNAPPY:
            return _decompress_snappy(data, max_bytes)
        case Codec.LZ4:
            return _decompress_lz4(data, max_bytes)
        case Codec.ZSTD:
            return _decompress_zstd(data, max_bytes)


def _too_large(max_bytes: int) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_RECORD, f"the records decompress to more than {max_bytes} bytes"
    )


def _corrupt(codec: Codec, cause: object) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the {codec.name.lower()} data is bad: {cause}")


def _bounded(data: bytes, max_bytes: int) -> bytes:
    if len(data) > max_bytes:
        raise _too_large(max_bytes)
    return data


def _decompress_gzip(data: Buffer, max_bytes: int) -> bytes:
    pieces: list[bytes] = []
    budget = max_bytes
    rest: Buffer = data
    for _ in range(_MAX_FRAMES):
        inflater = zlib.decompressobj(_GZIP_WINDOW_BITS)
        try:
            piece = inflater.decompress(rest, budget + 1)
        except zlib.error as error:
            raise _corrupt(Codec.GZIP, error) from None
        budget -= len(piece)
        if budget < 0:
            raise _too_large(max_bytes)
        if not inflater.eof:
            raise _corrupt(Codec.GZIP, "it ends early")
        pieces.append(piece)
        rest = inflater.unused_data
        if not rest:
            return b"".join(pieces)
    raise _corrupt(Codec.GZIP, "too many members")


def _compress_snappy(data: Buffer) -> bytes:
    import cramjam  # noqa: PLC0415 - at first use

    pieces = [_XERIAL_MAGIC, _XERIAL_VERSIONS]
    view = memoryview(data)
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
        pieces += (_INT32.pack(len(block)), block)
    return b"".join(pieces)


def _is_xerial(view: memoryview, position: int) -> bool:
    return bytes(view[position : position + len(_XERIAL_MAGIC)]) == _XERIAL_MAGIC


def _decompress_snappy(data: Buffer, max_bytes: int) -> bytes:
    view = memoryview(data)
    if not _is_xerial(view, 0):
        return _decompress_raw_snappy(view, max_bytes, max_bytes)
    pieces: list[bytes] = []
    budget = max_bytes
    position = 0
    while position < len(view):
        # Streams that were concatenated repeat the header where a block would start.
        if _is_xerial(view, position):
            position += _XERIAL_HEADER_BYTES
            if position > len(view):
                raise _corrupt(Codec.SNAPPY, "it ends within its header")
            continue
        start = position + 4
        length = _INT32.unpack_from(view, position)[0] if start <= len(view) else -1
        if length < 0 or length > len(view) - start:
            raise _corrupt(Codec.SNAPPY, "a block ends beyond the data")
        piece = _decompress_raw_snappy(view[start : start + length], budget, max_bytes)
        budget -= len(piece)
        pieces.append(piece)
        position = start + length
    return b"".join(pieces)


def _decompress_raw_snappy(view: memoryview, budget: int, max_bytes: int) -> bytes:
    import cramjam  # noqa: PLC0415 - at first use

    try:
        declared, _ = read_uvarint(view, 0)
    except MalformedFrameError as error:
        raise _corrupt(Codec.SNAPPY, error) from None
    if declared > len(view) * _SNAPPY_MAX_RATIO:
        raise _corrupt(Codec.SNAPPY, f"{len(view)} bytes cannot hold {declared}")
    if declared > budget:
        raise _too_large(max_bytes)
    try:
        return bytes(cramjam.snappy.decompress_raw(view))
    except cramjam.DecompressionError as error:
        raise _corrupt(Codec.SNAPPY, error) from None


def _lz4_frame() -> Any:
    # The package has no type information; Any says so once.
    return importlib.import_module("lz4.frame")


def _compress_lz4(data: Buffer, level: int | None) -> bytes:
    frame = _lz4_frame()

    # Java takes its fast compressor at the default level, its slow one at each other; the library
    # has the slow ones from 3 up and takes what lies above 16 as 16.
    if level is None or level == LZ4_DEFAULT_LEVEL:
        chosen = 0
    else:
        chosen = max(frame.COMPRESSIONLEVEL_MINHC, level)
    compressed: bytes = frame.compress(
        data,
        compression_level=chosen,
        block_size=frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        store_size=False,
    )
    return compressed


def _decompress_lz4(data: Buffer, max_bytes: int) -> bytes:
    frame = _lz4_frame()

    decompressor = frame.LZ4FrameDecompressor()
    pieces: list[bytes] = []
    budget = max_bytes
    # Each call copies the input that is left, so the number of calls is held to a few dozen.
    chunk_bytes = max(_CHUNK_BYTES, 4 * len(data))
    rest: Buffer = data
    while True:
        try:
            piece: bytes = decompressor.decompress(rest, min(chunk_bytes, budget + 1))
        except (RuntimeError, EOFError) as error:
            raise _corrupt(Codec.LZ4, error) from None
        budget -= len(piece)
        if budget < 0:
            raise _too_large(max_bytes)
        pieces.append(piece)
        if decompressor.eof:
            break
        if decompressor.needs_input or not piece:
            raise _corrupt(Codec.LZ4, "it ends early")
        rest = b""
    if decompressor.unused_data:
        raise _corrupt(Codec.LZ4, "bytes follow the frame")
    return b"".join(pieces)


def _decompress_zstd(data: Buffer, max_bytes: int) -> bytes:
    import zstandard  # noqa: PLC0415 - at first use

    decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_MAX_WINDOW_BYTES)
    pieces: list[bytes] = []
    budget = max_bytes
    try:
        with decompressor.stream_reader(data, read_across_frames=True) as reader:
            while piece := reader.read(min(_CHUNK_BYTES, budget + 1)):
                budget -= len(piece)
                if budget < 0:
                    raise _too_large(max_bytes)
                pieces.append(piece)
    except zstandard.ZstdError as error:
        raise _corrupt(Codec.ZSTD, error) from None
    return b"".join(pieces)
