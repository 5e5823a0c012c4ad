"""Where bytes arrive: one area that all connections of a loop share, and a frame's own growing one.

A socket is read into the shared area and its frames are parsed there; nothing is copied as long as
a request is answered before the next socket is read. What must live longer leaves the area:

- a view is copied out by `owned(view)`, or
- `keep(view)` leaves what the last read has filled as it is, with every view into it: the area goes
  on behind it, and in a new block of memory when the block is used up. A block lives as long as
  somebody holds a view into it.

A frame that is still arriving and is too long to be pieced together in the area grows in a
`FrameBuffer`, never by more than what has arrived: declaring 100 MiB costs a peer 100 MiB.
"""

from __future__ import annotations

import mmap
from typing import Final

# One recv_into takes at most this much, so no socket holds the loop for longer than about 0.5 ms.
AREA_BYTES: Final = 1 << 20

# A bytearray beyond 32 MiB is moved once by copying (15 ms measured at 90 MiB); a private mapping
# grows by moving page tables (0.1 ms). Below, the heap's recycled pages are five times as fast.
_LARGEST_BYTEARRAY: Final = 8 << 20


# When keeping has left less than this of a block, the next one begins.
_SMALLEST_VIEW_BYTES: Final = 512 << 10


class _Block(bytearray):
    """Memory of an area; its type tells a view into it from a view that owns its bytes."""

    __slots__ = ("area",)

    area: ReceiveArea


class ReceiveArea:
    """The shared memory that sockets are read into.

    Attributes:
        view: The memory for the next read. Read it anew for every read: keeping moves it.
        filled_bytes: How much of `view` the last read has filled; set by whoever received.
    """

    __slots__ = ("filled_bytes", "view")

    # view is never shorter than _SMALLEST_VIEW_BYTES, and holds the filled_bytes at its beginning.

    def __init__(self) -> None:
        self.view = memoryview(b"")
        self.filled_bytes = 0
        self._begin_block()

    @staticmethod
    def is_shared(view: memoryview) -> bool:
        """Tell whether the view's bytes may be overwritten by the next read of a socket."""
        return type(view.obj) is _Block

    @staticmethod
    def owned(view: memoryview) -> memoryview:
        """Return a writable view of the same bytes that stays as it is."""
        return memoryview(bytearray(view)) if type(view.obj) is _Block else view

    @staticmethod
    def keep(view: memoryview) -> None:
        """Leave what the last read has filled to whoever holds views into it.

        Args:
            view: A view into what the last read has filled, or one that owns its bytes.
        """
        block = view.obj
        if type(block) is not _Block:
            return
        area = block.area
        area.view = area.view[area.filled_bytes :]
        area.filled_bytes = 0
        if len(area.view) < _SMALLEST_VIEW_BYTES:
            area._begin_block()

    def _begin_block(self) -> None:
        block = _Block(AREA_BYTES)
        block.area = self
        self.view = memoryview(block)
        self.filled_bytes = 0


class FrameBuffer:
    """The memory of one frame that is still arriving; grows with what arrives."""

    __slots__ = ("_memory", "frame_bytes", "received_bytes")

    # received_bytes <= frame_bytes; _memory holds received_bytes, a mapping at most twice as many
    # (address space only: pages that have not been written to are not there).

    def __init__(self, frame_bytes: int) -> None:
        self.frame_bytes = frame_bytes
        self.received_bytes = 0
        self._memory: bytearray | mmap.mmap = bytearray()
        if frame_bytes > _LARGEST_BYTEARRAY:
            self._memory = mmap.mmap(-1, AREA_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)

    @property
    def missing_bytes(self) -> int:
        """How much has not arrived."""
        return self.frame_bytes - self.received_bytes

    def append(self, piece: memoryview) -> None:
        """Copy the bytes that arrived."""
        assert len(piece) <= self.missing_bytes
        start = self.received_bytes
        end = start + len(piece)
        memory = self._memory
        if isinstance(memory, bytearray):
            memory += piece
        else:
            if end > len(memory):
                memory.resize(min(self.frame_bytes, max(end, 2 * len(memory))))
            memory[start:end] = piece
        self.received_bytes = end

    def take(self) -> memoryview:
        """Return the whole frame, writable; the buffer must not be used afterwards."""
        assert self.received_bytes == self.frame_bytes
        return memoryview(self._memory)[: self.frame_bytes]
