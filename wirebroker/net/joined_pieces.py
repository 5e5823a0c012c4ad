"""Small responses with file slices, copied into one piece: one send instead of four calls.

Up to 128 KiB, reading a slice into memory is cheaper than a sendfile with its probe of the page
cache. The read is also such a probe: it returns nothing if it would wait for the disk.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from wirebroker.net.slice_error import SliceError
from wirebroker.storage.files import FileSlice

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.net.pages.old_pages import OldPages
    from wirebroker.request.request import Piece

# From 256 KiB on sendfile is cheaper.
MOST_JOINED_BYTES: Final = 128 << 10

# Per loop: filled and sent within a turn.
_memory: Final = threading.local()


def joined(pieces: Iterable[Piece], old_pages: OldPages) -> memoryview | None:
    """Return at most MOST_JOINED_BYTES of pieces as one, valid until the next call.

    Return None if a slice is not in the page cache, or extends beyond its file.

    Raises:
        SliceError: A file cannot be read.
    """
    memory: memoryview | None = getattr(_memory, "view", None)
    if memory is None:
        _memory.view = memory = memoryview(bytearray(MOST_JOINED_BYTES))
    position = 0
    for piece in pieces:
        if isinstance(piece, FileSlice):
            end = position + piece.length
            try:
                count = piece.file.read_cached(piece.position, memory[position:end])
            except OSError as error:
                raise SliceError(piece.file.path, error) from error
            if count != piece.length:
                return None
            old_pages.sent(piece.file, piece.position, count)
        else:
            end = position + len(piece)
            memory[position:end] = piece
        position = end
    return memory[:position]
