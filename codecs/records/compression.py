"""Compression of record batches (formats: codecs/README.md).

`unpack` returns pieces of about 100 KiB (a block of snappy is one piece) and holds only one piece
and the codec's window, whatever size the input declares. Data that Java's consumers cannot read
(linked LZ4 blocks) is refused. Libraries are imported at first use, because most brokers need at
most one, and release the GIL.

Source: Kafka's package common.compress; the formats' own specifications.
"""

from __future__ import annotations

import importlib
import zlib
from typing import TYPE_CHECKING, Any, Final, Protocol

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.codec import Codec
from wirebroker.codecs.records.decompression_limits import (
    CHUNK_BYTES,
    INPUT_BYTES,
    MAX_DECOMPRESSED_BYTES,
    MAX_FRAMES,
    bounded,
    corrupt,
    inputs,
    too_large,
)
from wirebroker.codecs.records.snappy_blocks import SnappyPacker, unpack_snappy
from wirebroker.codecs.records.zstd_frames import unpack_zstd, zstd_packer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirebroker.codecs.primitives import Buffer


# Kafka's default levels.
GZIP_DEFAULT_LEVEL: Final = -1
LZ4_DEFAULT_LEVEL: Final = 9

_GZIP_WINDOW_BITS: Final = 31
# The flag for independent blocks is in the fifth byte.
_LZ4_FLAGS_POSITION: Final = 4
_LZ4_INDEPENDENT_FLAG: Final = 0x20


class Packer(Protocol):
    """A compressor that works in pieces."""

    def compress(self, data: Buffer, /) -> bytes:
        """Compress a piece; return the output so far."""
        ...

    def flush(self) -> bytes:
        """Return the rest of the output."""
        ...


def packer(codec: Codec, level: int | None = None, *, size: int = -1) -> Packer:
    """Return a compressor for the records of one batch.

    `level` is as in Kafka's config of that codec; `size` is the input's, -1 if unknown.
    """
    match codec:
        case Codec.NONE:
            return _Copier()
        case Codec.GZIP:
            chosen = GZIP_DEFAULT_LEVEL if level is None else level
            return zlib.compressobj(chosen, zlib.DEFLATED, _GZIP_WINDOW_BITS)
        case Codec.SNAPPY:
            return SnappyPacker()
        case Codec.LZ4:
            return _Lz4Packer(level)
        case Codec.ZSTD:
            return zstd_packer(level, size)


def compress(codec: Codec, data: Buffer, level: int | None = None) -> bytes:
    """Compress a batch's records; see `packer`."""
    if codec is Codec.NONE:
        return bytes(data)
    made = packer(codec, level, size=len(data))
    return made.compress(data) + made.flush()


def decompress(codec: Codec, data: Buffer, *, max_bytes: int = MAX_DECOMPRESSED_BYTES) -> bytes:
    """Decompress a batch's records in one piece; see `unpack`."""
    return b"".join(unpack(codec, data, max_bytes=max_bytes))


def unpack(
    codec: Codec, data: Buffer, *, max_bytes: int = MAX_DECOMPRESSED_BYTES
) -> Iterator[Buffer]:
    """Decompress a batch's records in pieces.

    Raises:
        TooLargeError: They exceed `max_bytes`.
        KafkaError: CORRUPT_MESSAGE: the format is wrong; INVALID_RECORD: bytes follow that Java
            would not read. Earlier pieces have been yielded by then.
    """
    match codec:
        case Codec.NONE:
            return _unpack_nothing(data, max_bytes)
        case Codec.GZIP:
            return bounded(_unpack_gzip(data), max_bytes)
        case Codec.SNAPPY:
            return bounded(unpack_snappy(data, max_bytes), max_bytes)
        case Codec.LZ4:
            return bounded(_unpack_lz4(data), max_bytes)
        case Codec.ZSTD:
            return unpack_zstd(data, max_bytes)


class _Copier:
    __slots__ = ()

    def compress(self, data: Buffer, /) -> bytes:
        return bytes(data)

    def flush(self) -> bytes:
        return b""


def _unpack_nothing(data: Buffer, max_bytes: int) -> Iterator[Buffer]:
    if len(data) > max_bytes:
        raise too_large(max_bytes)
    view = memoryview(data)
    for start in range(0, len(view), CHUNK_BYTES):
        yield view[start : start + CHUNK_BYTES]


# -- gzip ----------------------------------------------------------------------------------


def _unpack_gzip(data: Buffer) -> Iterator[Buffer]:
    inflater = zlib.decompressobj(_GZIP_WINDOW_BITS)
    member_count = 1
    for given in inputs(data):
        rest: Buffer = given
        while rest:
            if inflater.eof:
                if member_count == MAX_FRAMES:
                    raise corrupt("gzip", "too many members")
                member_count += 1
                inflater = zlib.decompressobj(_GZIP_WINDOW_BITS)
            try:
                piece = inflater.decompress(rest, CHUNK_BYTES)
                rest = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
                if piece:
                    yield piece
                while len(piece) == CHUNK_BYTES and not rest and not inflater.eof:
                    piece = inflater.decompress(b"", CHUNK_BYTES)
                    if piece:
                        yield piece
            except zlib.error as error:
                raise corrupt("gzip", error) from None
    if not inflater.eof:
        raise corrupt("gzip", "it ends early")


# -- lz4 -----------------------------------------------------------------------------------


def _lz4_frame() -> Any:
    # The package has no type information.
    return importlib.import_module("lz4.frame")


class _Lz4Packer:
    """A compressor that writes one frame, as Java does."""

    __slots__ = ("_compressor", "_is_begun")

    def __init__(self, level: int | None) -> None:
        frame = _lz4_frame()
        # Java uses its fast compressor only at the default level; the library does below 3.
        if level is None or level == LZ4_DEFAULT_LEVEL:
            chosen = 0
        else:
            chosen = max(frame.COMPRESSIONLEVEL_MINHC, level)
        self._compressor: Any = frame.LZ4FrameCompressor(
            compression_level=chosen, block_size=frame.BLOCKSIZE_MAX64KB, block_linked=False
        )
        self._is_begun = False

    def compress(self, data: Buffer, /) -> bytes:
        begin: bytes = b"" if self._is_begun else self._compressor.begin()
        self._is_begun = True
        packed: bytes = self._compressor.compress(data)
        return begin + packed

    def flush(self) -> bytes:
        begin: bytes = b"" if self._is_begun else self._compressor.begin()
        end: bytes = self._compressor.flush()
        return begin + end


def _unpack_lz4(data: Buffer) -> Iterator[Buffer]:
    if len(data) > _LZ4_FLAGS_POSITION and not data[_LZ4_FLAGS_POSITION] & _LZ4_INDEPENDENT_FLAG:
        raise corrupt("lz4", "its blocks are linked")
    frame = _lz4_frame()
    # LZ4FrameDecompressor would copy the input, and again the unconsumed rest.
    context = frame.create_decompression_context()
    view = memoryview(data)
    position = 0
    is_whole = False
    while position < len(view) and not is_whole:
        given = view[position : position + INPUT_BYTES]
        try:
            found = frame.decompress_chunk(context, given, max_length=CHUNK_BYTES)
        except (RuntimeError, EOFError) as error:
            raise corrupt("lz4", error) from None
        piece, taken, is_whole = found
        position += taken
        if piece:
            yield piece
        elif not taken:
            break
    if not is_whole:
        raise corrupt("lz4", "it ends early")
    if position < len(view):
        raise KafkaError(ErrorCode.INVALID_RECORD, "bytes follow the lz4 frame")
