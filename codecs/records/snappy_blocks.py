"""Snappy: raw blocks, and the stream of blocks that Java's clients write (xerial's).

The library is imported at first use.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.codecs.primitives import read_uvarint
from wirebroker.codecs.records.decompression_limits import (
    MAX_BLOCKS,
    MAX_HELD_BYTES,
    corrupt,
    too_large,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirebroker.codecs.primitives import Buffer

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_VERSIONS: Final = Struct(">ii").pack(1, 1)
_XERIAL_HEADER_BYTES: Final = 16
_XERIAL_BLOCK_BYTES: Final = 1 << 15
_INT32: Final = Struct(">i")
# The best ratio of a snappy element: 3 bytes in, 64 bytes out.
_SNAPPY_MAX_RATIO: Final = 22


class SnappyPacker:
    """A compressor that writes xerial's stream."""

    __slots__ = ("_cramjam", "_is_begun", "_rest")

    def __init__(self) -> None:
        import cramjam  # noqa: PLC0415 - at first use

        self._cramjam = cramjam
        self._is_begun = False
        self._rest = b""

    def compress(self, data: Buffer, /) -> bytes:
        """See Packer."""
        view = memoryview(self._rest + data if self._rest else data)
        whole = len(view) - len(view) % _XERIAL_BLOCK_BYTES
        self._rest = bytes(view[whole:])
        return self._blocks(view[:whole])

    def flush(self) -> bytes:
        """See Packer."""
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


def unpack_snappy(data: Buffer, max_bytes: int) -> Iterator[Buffer]:
    """Decompress one raw block, or xerial's streams block by block.

    Raises:
        TooLargeError: A block exceeds `max_bytes` or MAX_HELD_BYTES.
        KafkaError: CORRUPT_MESSAGE.
    """
    view = memoryview(data)
    if not _is_xerial(view, 0):
        yield _unpack_raw_snappy(view, max_bytes)
        return
    position = block_count = 0
    while position < len(view):
        block_count += 1
        if block_count > MAX_BLOCKS:
            raise corrupt("snappy", "too many blocks")
        # Concatenated streams repeat the header.
        if _is_xerial(view, position):
            position += _XERIAL_HEADER_BYTES
            if position > len(view):
                raise corrupt("snappy", "it ends within its header")
            continue
        start = position + 4
        length = _INT32.unpack_from(view, position)[0] if start <= len(view) else -1
        if length < 0 or length > len(view) - start:
            raise corrupt("snappy", "a block ends beyond the data")
        yield _unpack_raw_snappy(view[start : start + length], max_bytes)
        position = start + length


def _unpack_raw_snappy(view: memoryview, max_bytes: int) -> Buffer:
    import cramjam  # noqa: PLC0415 - at first use

    try:
        declared, _ = read_uvarint(view, 0)
    except MalformedFrameError as error:
        raise corrupt("snappy", error) from None
    if declared > len(view) * _SNAPPY_MAX_RATIO:
        raise corrupt("snappy", f"{len(view)} bytes cannot hold {declared}")
    limit = min(max_bytes, MAX_HELD_BYTES)
    if declared > limit:
        raise too_large(limit)
    try:
        return memoryview(cramjam.snappy.decompress_raw(view))
    except cramjam.DecompressionError as error:
        raise corrupt("snappy", error) from None
