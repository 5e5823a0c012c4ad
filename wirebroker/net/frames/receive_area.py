"""Where bytes arrive: one area that all connections of a loop share.

A socket is read into the shared area and its frames are parsed there; nothing is copied as long as
a request is answered before the next socket is read. What must live longer is copied out, or kept
(shared_block.py): then the area goes on behind what the last read has filled, and in a new block of
memory when the block is used up. A block lives as long as somebody holds a view into it.

A frame that is still arriving and is too long to be pieced together in the area has memory of its
own (frame_buffer.py).
"""

from __future__ import annotations

from typing import Final

from wirebroker.base.shared_block import SharedBlock
from wirebroker.net.frames.frame_buffer import FrameBlocks

# One recv_into takes at most this much, so no socket holds the loop for longer than about 0.5 ms.
AREA_BYTES: Final = 1 << 20

# When keeping has left less than this of a block, the next one begins.
_SMALLEST_VIEW_BYTES: Final = 512 << 10


class ReceiveArea:
    """The shared memory that sockets are read into.

    Attributes:
        view: The memory for the next read. Read it anew for every read: keeping moves it.
        filled_bytes: How much of `view` the last read has filled; set by whoever received.
        blocks: The memory for frames that get their own.
    """

    __slots__ = ("blocks", "filled_bytes", "view")

    # view is never shorter than _SMALLEST_VIEW_BYTES, and holds the filled_bytes at its beginning.

    def __init__(self) -> None:
        self.view = memoryview(b"")
        self.filled_bytes = 0
        self.blocks = FrameBlocks()
        self._begin_block()

    def _leave(self) -> None:
        """Go on behind what the last read has filled: somebody holds views into it."""
        self.view = self.view[self.filled_bytes :]
        self.filled_bytes = 0
        if len(self.view) < _SMALLEST_VIEW_BYTES:
            self._begin_block()

    def _begin_block(self) -> None:
        block = SharedBlock(AREA_BYTES)
        block.leave = self._leave
        self.view = memoryview(block)
        self.filled_bytes = 0
