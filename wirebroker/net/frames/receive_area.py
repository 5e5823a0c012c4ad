"""The receive area that all connections of a loop share.

Nothing is copied if a request is served before the next receive. Bytes that must live longer are
copied out, or kept (shared_block.py): the area then continues after them, or in a new block. A
block lives while views into it exist.
"""

from __future__ import annotations

from typing import Final

from wirebroker.base.shared_block import SharedBlock
from wirebroker.net.frames.frame_buffer import FrameBlocks

# So that no socket holds the loop for longer than about 0.5 ms.
AREA_BYTES: Final = 1 << 20

# A new block begins when less than this is left.
_SMALLEST_VIEW_BYTES: Final = 512 << 10


class ReceiveArea:
    """The shared memory that sockets are read into.

    Attributes:
        view: Memory for the next receive; keeping moves it, so read it each time.
        filled_bytes: How much of it the last receive has filled; set by the receiver.
        blocks: Memory for large frames.
    """

    __slots__ = ("blocks", "filled_bytes", "view")

    # len(view) >= _SMALLEST_VIEW_BYTES; view begins with the filled_bytes.

    def __init__(self) -> None:
        self.view = memoryview(b"")
        self.filled_bytes = 0
        self.blocks = FrameBlocks()
        self._begin_block()

    def _leave(self) -> None:
        """Continue after the last received bytes, which are kept."""
        self.view = self.view[self.filled_bytes :]
        self.filled_bytes = 0
        if len(self.view) < _SMALLEST_VIEW_BYTES:
            self._begin_block()

    def _begin_block(self) -> None:
        block = SharedBlock(AREA_BYTES)
        block.leave = self._leave
        self.view = memoryview(block)
        self.filled_bytes = 0
