"""Zstandard: one frame per batch; several are read.

The library is imported at first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.codecs.records.decompression_limits import (
    CHUNK_BYTES,
    INPUT_BYTES,
    MAX_BLOCKS,
    MAX_DECOMPRESSED_BYTES,
    MAX_HELD_BYTES,
    corrupt,
    too_large,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zstandard import ZstdCompressionObj, ZstdDecompressor

    from wirebroker.codecs.primitives import Buffer

# Kafka's default level.
ZSTD_DEFAULT_LEVEL: Final = 3
# Level 22 uses at most 128 MiB, also the default limit of zstd's tools.
_MAX_WINDOW_BYTES: Final = MAX_DECOMPRESSED_BYTES
# Windows up to this size are harmless; level 19 uses 8 MiB.
_WINDOW_BYTES: Final = 1 << 25
# Larger inputs are compressed with the tables for this size: 35 MiB instead of 800 at level 22.
_PACKED_BYTES: Final = 1 << 21
_LONGEST_HEADER_BYTES: Final = 18
_SKIPPABLE_MAGIC: Final = 0x184D2A50
# Idle decompressors, for any thread; each keeps its window.
_kept_decompressors: Final[list[ZstdDecompressor]] = []
_MOST_KEPT: Final = 2
# The window of level 3, the default.
_KEPT_WINDOW_BYTES: Final = 1 << 21


def zstd_packer(level: int | None, size: int) -> ZstdCompressionObj:
    """Return a compressor that writes one frame; `size` is the input's, -1 if unknown."""
    import zstandard  # noqa: PLC0415 - at first use

    parameters = zstandard.ZstdCompressionParameters.from_level(
        ZSTD_DEFAULT_LEVEL if level is None else level,
        source_size=min(size, _PACKED_BYTES) if size > 0 else _PACKED_BYTES,
        write_content_size=True,
    )
    return zstandard.ZstdCompressor(compression_params=parameters).compressobj(size=size)


def unpack_zstd(data: Buffer, max_bytes: int) -> Iterator[Buffer]:
    """Decompress frames in pieces.

    Raises:
        TooLargeError: They exceed `max_bytes`, or MAX_HELD_BYTES with a large window.
        KafkaError: CORRUPT_MESSAGE.
    """
    import zstandard  # noqa: PLC0415 - at first use

    try:
        # The library's reader does not report an incomplete last frame.
        window_bytes = _check_frames(memoryview(data))
        if window_bytes > _WINDOW_BYTES:
            # The window is used only as far as output is written.
            max_bytes = min(max_bytes, MAX_HELD_BYTES)
        decompressor = _decompressor()
        piece_bytes = min(CHUNK_BYTES, max(INPUT_BYTES, 4 * len(data)))
        budget = max_bytes
        with decompressor.stream_reader(data, read_across_frames=True) as reader:
            while piece := reader.read(piece_bytes):
                budget -= len(piece)
                if budget < 0:
                    raise too_large(max_bytes)
                yield piece
    except zstandard.ZstdError as error:
        raise corrupt("zstd", error) from None
    if window_bytes <= _KEPT_WINDOW_BYTES and len(_kept_decompressors) < _MOST_KEPT:
        _kept_decompressors.append(decompressor)


def _decompressor() -> ZstdDecompressor:
    """Return an idle decompressor: a new one costs 11 us."""
    try:
        return _kept_decompressors.pop()
    except IndexError:  # another thread may have taken the last one
        import zstandard  # noqa: PLC0415 - at first use

        return zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW_BYTES)


def _check_frames(view: memoryview) -> int:
    """Check that all frames are complete; return the largest window.

    Raises:
        KafkaError: CORRUPT_MESSAGE.
        ZstdError: A frame's header is malformed.
    """
    import zstandard  # noqa: PLC0415 - at first use

    window_bytes = position = block_count = 0
    while position < len(view):
        head = view[position : position + _LONGEST_HEADER_BYTES]
        if len(head) >= 8 and int.from_bytes(head[:4], "little") & ~0xF == _SKIPPABLE_MAGIC:
            position += 8 + int.from_bytes(head[4:8], "little")
            block_count += 1
            is_last = True
        else:
            window_bytes = max(window_bytes, zstandard.get_frame_parameters(head).window_size)
            position += zstandard.frame_header_size(head)
            is_last = False
        while not is_last:
            block_count += 1
            if block_count > MAX_BLOCKS:
                raise corrupt("zstd", "too many blocks")
            block = int.from_bytes(view[position : position + 3], "little")
            is_last = bool(block & 1)
            # A run-length block stores only the repeated byte.
            position += 3 + (1 if block & 6 == 2 else block >> 3)
            if position > len(view):
                raise corrupt("zstd", "it ends early")
            if is_last and head[4] & 4:
                position += 4  # a checksum
    if position > len(view):
        raise corrupt("zstd", "it ends early")
    return window_bytes
