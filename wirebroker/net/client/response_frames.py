"""Splits received bytes into responses, without I/O.

Small responses are copied out of a reused buffer. The first one that does not fit is received into
its own memory (net/frames/frame_buffer.py). From then on the buffer is a block of such memory: long
responses are returned without a copy, and later ones use another block. Views into a response stay
valid.

Connections that share blocks keep the small buffer instead, so that none has a block while it waits
for a response.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.net.frames.frame_buffer import BLOCK_BYTES, FrameBlocks, FrameBuffer

if TYPE_CHECKING:
    import mmap

_BUFFER_BYTES: Final = 64 << 10
# Copying this much takes as long as finding another block.
_COPIED_BYTES: Final = 32 << 10
_LENGTH: Final = Struct(">i")


class LongFrameError(MalformedFrameError):
    """A response is longer than the limit."""


class ResponseFrames:
    """One connection's framing."""

    __slots__ = (
        "_block",
        "_blocks",
        "_buffer",
        "_end",
        "_has_long",
        "_has_own_blocks",
        "_large",
        "_most_bytes",
        "_start",
    )

    # 0 <= _start <= _end <= len(_buffer); while _large is not None, _start == _end.
    # If there is a _block, _buffer is all of it.

    def __init__(self, most_bytes: int, shared_blocks: FrameBlocks | None = None) -> None:
        """Receive responses of up to `most_bytes`."""
        self._most_bytes = most_bytes
        self._has_own_blocks = shared_blocks is None
        self._blocks = shared_blocks or FrameBlocks()
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))
        self._start = 0
        self._end = 0
        self._large: FrameBuffer | None = None
        self._block: mmap.mmap | None = None
        # Blocks are not shared, and a response was too long for the buffer but not for a block.
        self._has_long = False

    def get_buffer(self) -> memoryview:
        """Return the memory to receive into; never empty."""
        if self._large is not None:
            return self._large.room()
        if self._start == self._end:
            self._start = self._end = 0
            if self._has_long and self._block is None:
                self._block = self._blocks.take()
                self._buffer = memoryview(self._block)
        elif self._end == len(self._buffer):
            unparsed_bytes = self._end - self._start
            self._buffer[:unparsed_bytes] = self._buffer[self._start : self._end]
            self._start, self._end = 0, unparsed_bytes
        return self._buffer[self._end :]

    def buffer_updated(self, count: int) -> None:
        """Process `count` bytes received into `get_buffer()`."""
        if self._large is not None:
            self._large.received(count)
        else:
            self._end += count
        assert self._end <= len(self._buffer)

    def next_frame(self) -> memoryview | None:
        """Return the next complete response without its length, or None.

        Raises:
            LongFrameError: The length is above the limit.
            MalformedFrameError: The length is invalid.
        """
        if self._large is not None:
            if self._large.missing_bytes:
                return None
            large, self._large = self._large, None
            return large.take()
        unparsed_bytes = self._end - self._start
        if unparsed_bytes < 4:
            return None
        (length,) = _LENGTH.unpack_from(self._buffer, self._start)
        if not 4 <= length <= self._most_bytes:
            raise self._length_error(length)
        begin = self._start + 4
        stop = begin + length
        if stop <= self._end:
            if length > _COPIED_BYTES and self._block is not None:
                return self._hand_out(self._block, begin, stop)
            self._start = stop
            return memoryview(bytearray(self._buffer[begin:stop]))
        if length + 4 > len(self._buffer):
            if self._has_own_blocks and length + 4 <= BLOCK_BYTES:
                self._has_long = True
            self._large = FrameBuffer(length, self._blocks)
            self._large.append(self._buffer[begin : self._end])
            self._start = self._end = 0
        return None

    def _length_error(self, length: int) -> MalformedFrameError:
        start = bytes(self._buffer[self._start : self._start + 4])
        if start == b"HTTP":
            return MalformedFrameError("an HTTP server responded, not a Kafka broker")
        if start[:2] == b"\x15\x03":
            return MalformedFrameError("the server requires TLS")
        kind = LongFrameError if length > self._most_bytes else MalformedFrameError
        return kind(f"invalid response length: {length} bytes, not 4 to {self._most_bytes}")

    def _hand_out(self, block: mmap.mmap, begin: int, stop: int) -> memoryview:
        frame, rest = self._buffer[begin:stop], self._buffer[stop : self._end]
        self._block = self._blocks.take()
        self._buffer = memoryview(self._block)
        self._start, self._end = 0, len(rest)
        self._buffer[: self._end] = rest
        self._blocks.give_back(block)
        return frame
