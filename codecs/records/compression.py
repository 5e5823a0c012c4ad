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
from enum import IntEnum
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, Protocol

from wirebroker.codecs.errors import (
    ErrorCode,
    KafkaError,
    MalformedFrameError,
    TooLargeError,
)
from wirebroker.codecs.primitives import read_uvarint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zstandard import ZstdDecompressor

    from wirebroker.codecs.primitives import Buffer


class Codec(IntEnum):
    """The lowest three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


# Kafka's default levels.
GZIP_DEFAULT_LEVEL: Final = -1
LZ4_DEFAULT_LEVEL: Final = 9
ZSTD_DEFAULT_LEVEL: Final = 3

# Kafka has no limit (docs/compatibility.md). This is over a hundred times max.message.bytes.
MAX_DECOMPRESSED_BYTES: Final = 128 << 20

# Limit on data that cannot be returned in pieces: a block of snappy, or a large window (zstd).
MAX_HELD_BYTES: Final = 48 << 20

# Producers write one frame. The time grows with the square of the number of frames.
_MAX_FRAMES: Final = 16

# Of snappy and zstd: a block takes a microsecond and usually has at least 32 KiB.
_MAX_BLOCKS: Final = 8192

# Output per call, so that a small input never reserves `max_bytes`.
_CHUNK_BYTES: Final = 1 << 17
# Input per call: libraries copy the unconsumed input.
_INPUT_BYTES: Final = 1 << 16

_GZIP_WINDOW_BITS: Final = 31
# Level 22 uses at most 128 MiB, also the default limit of zstd's tools.
_ZSTD_MAX_WINDOW_BYTES: Final = MAX_DECOMPRESSED_BYTES
# Windows up to this size are harmless; level 19 uses 8 MiB.
_ZSTD_WINDOW_BYTES: Final = 1 << 25
# Larger inputs are compressed with the tables for this size: 35 MiB instead of 800 at level 22.
_ZSTD_PACKED_BYTES: Final = 1 << 21
_ZSTD_LONGEST_HEADER_BYTES: Final = 18
_ZSTD_SKIPPABLE_MAGIC: Final = 0x184D2A50
# The flag for independent blocks is in the fifth byte.
_LZ4_FLAGS_POSITION: Final = 4
_LZ4_INDEPENDENT_FLAG: Final = 0x20

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_VERSIONS: Final = Struct(">ii").pack(1, 1)
_XERIAL_HEADER_BYTES: Final = 16
_XERIAL_BLOCK_BYTES: Final = 1 << 15
_INT32: Final = Struct(">i")
# The best ratio of a snappy element: 3 bytes in, 64 bytes out.
_SNAPPY_MAX_RATIO: Final = 22


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
            return _SnappyPacker()
        case Codec.LZ4:
            return _Lz4Packer(level)
        case Codec.ZSTD:
            import zstandard  # noqa: PLC0415 - at first use

            parameters = zstandard.ZstdCompressionParameters.from_level(
                ZSTD_DEFAULT_LEVEL if level is None else level,
                source_size=min(size, _ZSTD_PACKED_BYTES) if size > 0 else _ZSTD_PACKED_BYTES,
                write_content_size=True,
            )
            return zstandard.ZstdCompressor(compression_params=parameters).compressobj(size=size)


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
            return _bounded(_unpack_gzip(data), max_bytes)
        case Codec.SNAPPY:
            return _bounded(_unpack_snappy(data, max_bytes), max_bytes)
        case Codec.LZ4:
            return _bounded(_unpack_lz4(data), max_bytes)
        case Codec.ZSTD:
            return _unpack_zstd(data, max_bytes)


def _too_large(max_bytes: int) -> TooLargeError:
    sentence = f"the records decompress to more than {max_bytes} bytes"
    return TooLargeError(ErrorCode.INVALID_RECORD, sentence)


def _corrupt(codec: Codec, cause: object) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the {codec.name.lower()} data is bad: {cause}")


def _bounded(pieces: Iterator[Buffer], max_bytes: int) -> Iterator[Buffer]:
    budget = max_bytes
    for piece in pieces:
        budget -= len(piece)
        if budget < 0:
            raise _too_large(max_bytes)
        yield piece


def _inputs(data: Buffer) -> Iterator[memoryview]:
    view = memoryview(data)
    for start in range(0, len(view), _INPUT_BYTES):
        yield view[start : start + _INPUT_BYTES]


class _Copier:
    __slots__ = ()

    def compress(self, data: Buffer, /) -> bytes:
        return bytes(data)

    def flush(self) -> bytes:
        return b""


def _unpack_nothing(data: Buffer, max_bytes: int) -> Iterator[Buffer]:
    if len(data) > max_bytes:
        raise _too_large(max_bytes)
    view = memoryview(data)
    for start in range(0, len(view), _CHUNK_BYTES):
        yield view[start : start + _CHUNK_BYTES]


# -- gzip ----------------------------------------------------------------------------------


def _unpack_gzip(data: Buffer) -> Iterator[Buffer]:
    inflater = zlib.decompressobj(_GZIP_WINDOW_BITS)
    member_count = 1
    for given in _inputs(data):
        rest: Buffer = given
        while rest:
            if inflater.eof:
                if member_count == _MAX_FRAMES:
                    raise _corrupt(Codec.GZIP, "too many members")
                member_count += 1
                inflater = zlib.decompressobj(_GZIP_WINDOW_BITS)
            try:
                piece = inflater.decompress(rest, _CHUNK_BYTES)
                rest = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
                if piece:
                    yield piece
                while len(piece) == _CHUNK_BYTES and not rest and not inflater.eof:
                    piece = inflater.decompress(b"", _CHUNK_BYTES)
                    if piece:
                        yield piece
            except zlib.error as error:
                raise _corrupt(Codec.GZIP, error) from None
    if not inflater.eof:
        raise _corrupt(Codec.GZIP, "it ends early")


# -- snappy --------------------------------------------------------------------------------


class _SnappyPacker:
    """A compressor that writes xerial's stream."""

    __slots__ = ("_cramjam", "_is_begun", "_rest")

    def __init__(self) -> None:
        import cramjam  # noqa: PLC0415 - at first use

        self._cramjam = cramjam
        self._is_begun = False
        self._rest = b""

    def compress(self, data: Buffer, /) -> bytes:
        view = memoryview(self._rest + data if self._rest else data)
        whole = len(view) - len(view) % _XERIAL_BLOCK_BYTES
        self._rest = bytes(view[whole:])
        return self._blocks(view[:whole])

    def flush(self) -> bytes:
        return self._blocks(memoryview(self._rest))

    def _blocks(self, view: memoryview) -> bytes:
        pieces: list[bytes] = []
        if not self._is_begun:
            self._is_begun = True
            pieces += (_XERIAL_MAGIC, _XERIAL_VERSIONS)
        for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
            raw = view[start : start + _XERIAL_BLOCK_BYTES]
            block = bytes(self._cramjam.snappy.compress_raw(raw))
            pieces += (_INT32.pack(len(block)), block)
        return b"".join(pieces)


def _is_xerial(view: memoryview, position: int) -> bool:
    return bytes(view[position : position + len(_XERIAL_MAGIC)]) == _XERIAL_MAGIC


def _unpack_snappy(data: Buffer, max_bytes: int) -> Iterator[Buffer]:
    view = memoryview(data)
    if not _is_xerial(view, 0):
        yield _unpack_raw_snappy(view, max_bytes)
        return
    position = block_count = 0
    while position < len(view):
        block_count += 1
        if block_count > _MAX_BLOCKS:
            raise _corrupt(Codec.SNAPPY, "too many blocks")
        # Concatenated streams repeat the header.
        if _is_xerial(view, position):
            position += _XERIAL_HEADER_BYTES
            if position > len(view):
                raise _corrupt(Codec.SNAPPY, "it ends within its header")
            continue
        start = position + 4
        length = _INT32.unpack_from(view, position)[0] if start <= len(view) else -1
        if length < 0 or length > len(view) - start:
            raise _corrupt(Codec.SNAPPY, "a block ends beyond the data")
        yield _unpack_raw_snappy(view[start : start + length], max_bytes)
        position = start + length


def _unpack_raw_snappy(view: memoryview, max_bytes: int) -> Buffer:
    import cramjam  # noqa: PLC0415 - at first use

    try:
        declared, _ = read_uvarint(view, 0)
    except MalformedFrameError as error:
        raise _corrupt(Codec.SNAPPY, error) from None
    if declared > len(view) * _SNAPPY_MAX_RATIO:
        raise _corrupt(Codec.SNAPPY, f"{len(view)} bytes cannot hold {declared}")
    limit = min(max_bytes, MAX_HELD_BYTES)
    if declared > limit:
        raise _too_large(limit)
    try:
        return memoryview(cramjam.snappy.decompress_raw(view))
    except cramjam.DecompressionError as error:
        raise _corrupt(Codec.SNAPPY, error) from None


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
        raise _corrupt(Codec.LZ4, "its blocks are linked")
    frame = _lz4_frame()
    # LZ4FrameDecompressor would copy the input, and again the unconsumed rest.
    context = frame.create_decompression_context()
    view = memoryview(data)
    position = 0
    is_whole = False
    while position < len(view) and not is_whole:
        given = view[position : position + _INPUT_BYTES]
        try:
            found = frame.decompress_chunk(context, given, max_length=_CHUNK_BYTES)
        except (RuntimeError, EOFError) as error:
            raise _corrupt(Codec.LZ4, error) from None
        piece, taken, is_whole = found
        position += taken
        if piece:
            yield piece
        elif not taken:
            break
    if not is_whole:
        raise _corrupt(Codec.LZ4, "it ends early")
    if position < len(view):
        raise KafkaError(ErrorCode.INVALID_RECORD, "bytes follow the lz4 frame")


# -- zstd ----------------------------------------------------------------------------------

# Idle decompressors, for any thread; each keeps its window.
_kept_decompressors: Final[list[ZstdDecompressor]] = []
_MOST_KEPT: Final = 2
# The window of level 3, the default.
_ZSTD_KEPT_WINDOW_BYTES: Final = 1 << 21


def _unpack_zstd(data: Buffer, max_bytes: int) -> Iterator[Buffer]:
    import zstandard  # noqa: PLC0415 - at first use

    try:
        # The library's reader does not report an incomplete last frame.
        window_bytes = _check_zstd_frames(memoryview(data))
        if window_bytes > _ZSTD_WINDOW_BYTES:
            # The window is used only as far as output is written.
            max_bytes = min(max_bytes, MAX_HELD_BYTES)
        decompressor = _zstd_decompressor()
        piece_bytes = min(_CHUNK_BYTES, max(_INPUT_BYTES, 4 * len(data)))
        budget = max_bytes
        with decompressor.stream_reader(data, read_across_frames=True) as reader:
            while piece := reader.read(piece_bytes):
                budget -= len(piece)
                if budget < 0:
                    raise _too_large(max_bytes)
                yield piece
    except zstandard.ZstdError as error:
        raise _corrupt(Codec.ZSTD, error) from None
    if window_bytes <= _ZSTD_KEPT_WINDOW_BYTES and len(_kept_decompressors) < _MOST_KEPT:
        _kept_decompressors.append(decompressor)


def _zstd_decompressor() -> ZstdDecompressor:
    """Return an idle decompressor: a new one costs 11 us."""
    try:
        return _kept_decompressors.pop()
    except IndexError:  # another thread may have taken the last one
        import zstandard  # noqa: PLC0415 - at first use

        return zstandard.ZstdDecompressor(max_window_size=_ZSTD_MAX_WINDOW_BYTES)


def _check_zstd_frames(view: memoryview) -> int:
    """Check that all frames are complete; return the largest window.

    Raises:
        KafkaError: CORRUPT_MESSAGE.
        ZstdError: A frame's header is malformed.
    """
    import zstandard  # noqa: PLC0415 - at first use

    window_bytes = position = block_count = 0
    while position < len(view):
        head = view[position : position + _ZSTD_LONGEST_HEADER_BYTES]
        if len(head) >= 8 and int.from_bytes(head[:4], "little") & ~0xF == _ZSTD_SKIPPABLE_MAGIC:
            position += 8 + int.from_bytes(head[4:8], "little")
            block_count += 1
            is_last = True
        else:
            window_bytes = max(window_bytes, zstandard.get_frame_parameters(head).window_size)
            position += zstandard.frame_header_size(head)
            is_last = False
        while not is_last:
            block_count += 1
            if block_count > _MAX_BLOCKS:
                raise _corrupt(Codec.ZSTD, "too many blocks")
            block = int.from_bytes(view[position : position + 3], "little")
            is_last = bool(block & 1)
            # A run-length block stores only the repeated byte.
            position += 3 + (1 if block & 6 == 2 else block >> 3)
            if position > len(view):
                raise _corrupt(Codec.ZSTD, "it ends early")
            if is_last and head[4] & 4:
                position += 4  # a checksum
    if position > len(view):
        raise _corrupt(Codec.ZSTD, "it ends early")
    return window_bytes
