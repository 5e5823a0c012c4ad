"""Memory of frames that are too long for the shared area.

Sockets are read directly into it. A page of its address space uses memory only when bytes arrive in
it: to use 100 MiB a peer must send 100 MiB. Page faults are as expensive as writing the bytes to a
log, so frames of up to 1 MiB use blocks that are reused.
"""

from __future__ import annotations

import mmap
from typing import Final

# max.request.size of the Java producer is 1 MiB, batch.size of librdkafka 1 MB without the rest of
# the request.
BLOCK_BYTES: Final = (1 << 20) + (64 << 10)
_MOST_BLOCKS: Final = 4
# So that no socket holds the loop for longer than about 0.5 ms.
_RECEIVE_BYTES: Final = 1 << 20
# Address space needs no backing; Python has the flag since 3.11.
_FLAGS: Final = getattr(mmap, "MAP_NORESERVE", 0)


def _memory(length: int) -> mmap.mmap:
    if hasattr(mmap, "MAP_PRIVATE"):
        return mmap.mmap(-1, length, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _FLAGS)
    return mmap.mmap(-1, length)  # Windows


class FrameBlocks:
    """The reusable blocks of one loop, free or in use."""

    __slots__ = ("_blocks",)

    def __init__(self) -> None:
        self._blocks: list[mmap.mmap] = []

    def take(self) -> mmap.mmap:
        """Return a block without views into it."""
        for index, block in enumerate(self._blocks):
            if _is_free(block):
                return self._blocks.pop(index)
        return _memory(BLOCK_BYTES)

    def give_back(self, block: mmap.mmap) -> None:
        """Return a block, which is reused when its last view is gone."""
        if len(self._blocks) < _MOST_BLOCKS:
            self._blocks.append(block)


class FrameBuffer:
    """Memory of one frame that is still arriving."""

    __slots__ = ("_blocks", "_memory", "_view", "frame_bytes", "received_bytes")

    # received_bytes never exceeds frame_bytes, the length of _view.

    def __init__(self, frame_bytes: int, blocks: FrameBlocks) -> None:
        """Allocate memory.

        Raises:
            OSError: There is no address space.
        """
        self._blocks = blocks
        is_small = frame_bytes <= BLOCK_BYTES
        self._memory = blocks.take() if is_small else _memory(frame_bytes)
        self._view = memoryview(self._memory)[:frame_bytes]
        self.frame_bytes = frame_bytes
        self.received_bytes = 0

    @property
    def missing_bytes(self) -> int:
        """Bytes that have not arrived."""
        return self.frame_bytes - self.received_bytes

    def room(self) -> memoryview:
        """Return the memory to receive into; call `received` afterwards."""
        return self._view[self.received_bytes : self.received_bytes + _RECEIVE_BYTES]

    def received(self, count: int) -> None:
        """Count received bytes."""
        assert count <= self.missing_bytes
        self.received_bytes += count

    def append(self, piece: memoryview) -> None:
        """Copy bytes that arrived elsewhere."""
        self._view[self.received_bytes : self.received_bytes + len(piece)] = piece
        self.received(len(piece))

    def take(self) -> memoryview:
        """Return the whole, writable frame; do not use the buffer afterwards."""
        assert self.received_bytes == self.frame_bytes
        if self.frame_bytes <= BLOCK_BYTES:
            self._blocks.give_back(self._memory)
        return self._view


def _is_free(block: mmap.mmap) -> bool:
    """Return whether the block has no views: only then it can be resized."""
    try:
        block.resize(BLOCK_BYTES)
    except (BufferError, SystemError):  # SystemError: the platform cannot resize
        return False
    return True
