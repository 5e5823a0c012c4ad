"""Where bytes arrive: one area that all connections of a loop share.

A socket is read into the shared area and its frames are parsed there; nothing is copied as long as
a request is answered before the next socket is read. What must live longer leaves the area:

- a view is copied out by `owned(view)`, or
- `keep(view)` leaves what the last read has filled as it is, with every view into it: the area goes
  on behind it, and in a new block of memory when the block is used up. A block lives as long as
  somebody holds a view into it.

A frame that is still arriving and is too long to be pieced together in the area has memory of its
own (frame_buffer.py).
"""

from __future__ import annotations

from typing import Final

from wirebroker.net.area_block import AreaBlock
from wirebroker.net.frame_buffer import FrameBlocks

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

    @staticmethod
    def is_shared(view: memoryview) -> bool:
        """Tell whether the view's bytes may be overwritten by the next read of a socket."""
        return type(view.obj) is AreaBlock

    @staticmethod
    def owned(view: memoryview) -> memoryview:
        """Return a writable view of the same bytes that stays as it is."""
        return memoryview(bytearray(view)) if type(view.obj) is AreaBlock else view

    @staticmethod
    def keep(view: memoryview) -> None:
        """Leave what the last read has filled to whoever holds views into it.

        Args:
            view: A view into what the last read has filled, or one that owns its bytes.
        """
        block = view.obj
        if type(block) is not AreaBlock:
            return
        area = block.area
        area.view = area.view[area.filled_bytes :]
        area.filled_bytes = 0
        if len(area.view) < _SMALLEST_VIEW_BYTES:
            area._begin_block()

    def _begin_block(self) -> None:
        block = AreaBlock(AREA_BYTES)
        block.area = self
        self.view = memoryview(block)
        self.filled_bytes = 0
