"""The memory of frames that arrive in several parts and are too long to be pieced together.

Sockets are read straight into it. Its whole size is address space from the beginning, but a page
of it costs memory only when bytes arrive in it: declaring 100 MiB costs a peer 100 MiB.

A new page costs a page fault, 250 of them a MiB: as much as writing the MiB to a log. So frames of
up to a MiB (what stock producers send at most, unless they are told otherwise) arrive in blocks
that are used again.
"""

from __future__ import annotations

import mmap
from typing import Final

# Frames up to this size arrive in a block that is used again: max.request.size of the Java
# producer is 1 MiB, batch.size of librdkafka 1 MB; what is around the records comes on top.
BLOCK_BYTES: Final = (1 << 20) + (64 << 10)
# So many blocks are kept for the next frames.
_MOST_BLOCKS: Final = 4
# One receive takes at most this much, so no socket holds the loop for longer than about 0.5 ms.
_RECEIVE_BYTES: Final = 1 << 20
# Address space needs no backing; Python knows the flag from 3.11 on.
_FLAGS: Final = getattr(mmap, "MAP_NORESERVE", 0)


def _memory(length: int) -> mmap.mmap:
    """Return address space of this process alone."""
    if hasattr(mmap, "MAP_PRIVATE"):
        return mmap.mmap(-1, length, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _FLAGS)
    return mmap.mmap(-1, length)  # Windows


class FrameBlocks:
    """The blocks of one loop that were used before, free or not."""

    __slots__ = ("_blocks",)

    def __init__(self) -> None:
        self._blocks: list[mmap.mmap] = []

    def take(self) -> mmap.mmap:
        """Return a block that nobody looks into."""
        for index, block in enumerate(self._blocks):
            if _is_free(block):
                return self._blocks.pop(index)
        return _memory(BLOCK_BYTES)

    def give_back(self, block: mmap.mmap) -> None:
        """Take back a block; it is used again when its last view has gone."""
        if len(self._blocks) < _MOST_BLOCKS:
            self._blocks.append(block)


class FrameBuffer:
    """The memory of one frame that is still arriving."""

    __slots__ = ("_blocks", "_memory", "_view", "frame_bytes", "received_bytes")

    # received_bytes never exceeds frame_bytes, the length of _view.

    def __init__(self, frame_bytes: int, blocks: FrameBlocks) -> None:
        """Make room for a frame.

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
        """How much has not arrived."""
        return self.frame_bytes - self.received_bytes

    def room(self) -> memoryview:
        """Return the memory to receive into, then tell `received` how much it was."""
        return self._view[self.received_bytes : self.received_bytes + _RECEIVE_BYTES]

    def received(self, count: int) -> None:
        """Count bytes that are in place."""
        assert count <= self.missing_bytes
        self.received_bytes += count

    def append(self, piece: memoryview) -> None:
        """Copy bytes that arrived elsewhere."""
        self._view[self.received_bytes : self.received_bytes + len(piece)] = piece
        self.received(len(piece))

    def take(self) -> memoryview:
        """Return the whole frame, writable; the buffer must not be used afterwards."""
        assert self.received_bytes == self.frame_bytes
        if self.frame_bytes <= BLOCK_BYTES:
            self._blocks.give_back(self._memory)
        return self._view


def _is_free(block: mmap.mmap) -> bool:
    """Say whether no view into the block is left: only then may its size be set."""
    try:
        block.resize(BLOCK_BYTES)
    except (BufferError, SystemError):  # SystemError: the system cannot tell
        return False
    return True
