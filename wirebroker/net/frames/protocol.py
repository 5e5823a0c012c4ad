"""Kafka's framing without I/O: bytes in, frames out; responses in, [bytes | FileSlice] out.

A transport's owner calls:

    buffer = protocol.get_buffer()            # receive into it, n bytes
    protocol.buffer_updated(n)
    while (frame := protocol.next_frame()) is not None: ...       # stop early at will
    protocol.hold()                           # always

Complete frames are parsed in the shared area (receive_area.py). Small partial frames, and complete
ones that have to wait, are held as bytes, which the next receive puts before its own. Larger
partial frames have their own memory (frame_buffer.py).

A frame has at most `deadline_s` + size / 64 KiB/s from its first byte, and a silent peer has
`deadline_s`.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.net.frames.frame_buffer import FrameBuffer
from wirebroker.storage.files import FileSlice

if TYPE_CHECKING:
    from wirebroker.net.frames.receive_area import ReceiveArea
    from wirebroker.request.request import Piece

# Larger partial frames get their own buffer: rare except for Produce.
SMALL_FRAME_BYTES: Final = 64 << 10
SLOWEST_BYTES_PER_S: Final = 64 << 10

# Smaller pieces of a response are joined: a second send costs about 4 us.
_JOINED_BYTES: Final = 64 << 10

_LENGTH: Final = Struct(">i")
_NOTHING: Final = memoryview(b"")
_ANSWER_HEAD: Final = Struct(">ii")
_FLEXIBLE_ANSWER_HEAD: Final = Struct(">iix")

# The first bytes of TLS, read as a length; those of HTTP are larger.
_LEAST_FOREIGN_LENGTH: Final = 0x16030000
_HTTP_STARTS: Final = frozenset(
    {b"GET ", b"POST", b"PUT ", b"HEAD", b"DELE", b"OPTI", b"PATC", b"CONN", b"TRAC", b"PRI "}
)


class Protocol:
    """One connection's framing.

    Attributes:
        position, end: The unparsed bytes.
        held_bytes: Bytes outside the shared area, including a large partial frame.
        deadline: When the arriving frame must be complete.
        is_large: Whether the arriving frame has its own buffer.
    """

    __slots__ = (
        "_area",
        "_deadline_s",
        "_large",
        "_limit_name",
        "_paused_at",
        "_request_max_bytes",
        "_view",
        "deadline",
        "end",
        "held_bytes",
        "is_large",
        "position",
    )

    # 0 <= position <= end <= len(_view). After hold(), _view is the held bytes or empty, never the
    # shared area. While _large is incomplete, position == end.

    def __init__(self, area: ReceiveArea, *, request_max_bytes: int, deadline_s: float) -> None:
        self._area = area
        self._request_max_bytes = request_max_bytes
        self._limit_name = "socket.request.max.bytes"
        self._deadline_s = deadline_s
        self._view = _NOTHING
        self._large: FrameBuffer | None = None
        self._paused_at: float | None = None
        self.position = 0
        self.end = 0
        self.held_bytes = 0
        self.deadline: float | None = None
        self.is_large = False

    def limit(self, request_max_bytes: int, limit_name: str) -> None:
        """Set the size limit of later frames, and the config that errors name."""
        self._request_max_bytes = request_max_bytes
        self._limit_name = limit_name

    # --- bytes in ---

    def get_buffer(self) -> memoryview:
        """Return the memory to receive into; never empty."""
        if self._large is not None:
            return self._large.room()
        unparsed_bytes = self.end - self.position
        return self._area.view[unparsed_bytes:] if unparsed_bytes else self._area.view

    def buffer_updated(self, count: int) -> None:
        """Process `count` bytes received into `get_buffer()`."""
        large = self._large
        if large is not None:
            large.received(count)
            self.held_bytes = large.received_bytes
            if not large.missing_bytes:
                self._view = large.take()
                self.position, self.end = 0, len(self._view)
            return
        view = self._area.view
        unparsed_bytes = self.end - self.position
        if unparsed_bytes:
            view[:unparsed_bytes] = self._view[self.position : self.end]
            self.held_bytes = 0
        self._view = view
        self.position = 0
        self.end = self._area.filled_bytes = unparsed_bytes + count

    def next_frame(self) -> memoryview | None:
        """Return the next complete frame without its length, or None.

        It is writable, and valid until the next receive on any connection unless it is kept.

        Raises:
            MalformedFrameError: The length is invalid, or above the limit.
        """
        position, end = self.position, self.end
        if self._large is not None:
            if position == end:
                return None
            frame, self._large, self._view = self._view, None, _NOTHING
            self.position = self.end = self.held_bytes = 0
            self.deadline, self.is_large = None, False
            return frame
        if end - position < 4:
            return None
        (length,) = _LENGTH.unpack_from(self._view, position)
        if not 0 < length <= self._request_max_bytes or length >= _LEAST_FOREIGN_LENGTH:
            self._check_length(length)
        start = position + 4
        stop = start + length
        if stop > end:
            # A length alone is held like a small frame, so that its deadline is watched.
            if length > SMALL_FRAME_BYTES and end > start:
                self._begin_large(length)
            return None
        self.position = stop
        self.deadline = None
        return self._view[start:stop]

    def hold(self) -> int:
        """Move unparsed bytes out of the shared area; return held_bytes."""
        if self._large is not None:
            return self.held_bytes
        unparsed_bytes = self.end - self.position
        if not unparsed_bytes:
            self._view = _NOTHING
            self.position = self.end = self.held_bytes = 0
        elif not self.held_bytes:
            self._view = memoryview(bytearray(self._view[self.position : self.end]))
            self.position, self.end, self.held_bytes = 0, unparsed_bytes, unparsed_bytes
        return self.held_bytes

    # --- time ---

    def progressed(self, count: int, now: float) -> None:
        """Update the deadline after a frame began, or `count` bytes arrived."""
        full = now + self._deadline_s
        if self.deadline is None:
            self.deadline = full
        else:
            self.deadline = min(full, self.deadline + count / SLOWEST_BYTES_PER_S)

    def pause(self, now: float) -> None:
        """Stop the frame's clock while the broker does not read."""
        if self._paused_at is None:
            self._paused_at = now

    def resume(self, now: float) -> None:
        """Restart the frame's clock."""
        if self._paused_at is not None:
            if self.deadline is not None:
                self.deadline += now - self._paused_at
            self._paused_at = None

    def is_late(self, now: float) -> bool:
        """Return whether the frame has missed its deadline."""
        return self.deadline is not None and self._paused_at is None and now > self.deadline

    def describe_partial(self) -> str:
        """Describe how much of the frame has arrived."""
        if self._large is not None:
            return f"{self._large.received_bytes} of {self._large.frame_bytes} bytes"
        unparsed_bytes = self.end - self.position
        if unparsed_bytes < 4:
            return f"{unparsed_bytes} bytes of its length"
        return f"{unparsed_bytes - 4} of {_LENGTH.unpack_from(self._view, self.position)[0]} bytes"

    # --- internal ---

    def _begin_large(self, length: int) -> None:
        large = FrameBuffer(length, self._area.blocks)
        large.append(self._view[self.position + 4 : self.end])
        self._large = large
        self.is_large = True
        self._view = _NOTHING
        self.position = self.end = 0
        self.held_bytes = large.received_bytes

    def _check_length(self, length: int) -> None:
        first = bytes(self._view[self.position : self.position + 4])
        if first in _HTTP_STARTS:
            raise MalformedFrameError("an HTTP client is talking to the Kafka port")
        if first[:2] == b"\x16\x03":
            raise MalformedFrameError("a TLS client is talking to a PLAINTEXT listener")
        if length > self._request_max_bytes:
            raise MalformedFrameError(
                f"a request of {length} bytes exceeds {self._limit_name} "
                f"({self._request_max_bytes})"
            )
        if length <= 0:
            raise MalformedFrameError(f"a request cannot have {length} bytes")


def frame_answer(correlation_id: int, body: list[Piece], *, is_flexible: bool) -> list[Piece]:
    """Prepend length and header to a response's body and join its small pieces.

    The result begins with bytes.
    """
    head = _FLEXIBLE_ANSWER_HEAD if is_flexible else _ANSWER_HEAD
    header_bytes = 5 if is_flexible else 4
    if len(body) == 1:
        piece = body[0]
        if not isinstance(piece, FileSlice) and len(piece) <= _JOINED_BYTES:
            return [head.pack(header_bytes + len(piece), correlation_id) + piece]
    total = header_bytes
    for piece in body:
        total += piece.length if isinstance(piece, FileSlice) else len(piece)
    answer: list[Piece] = []
    small: list[bytes | bytearray | memoryview] = [head.pack(total, correlation_id)]
    small_bytes = header_bytes + 4
    for piece in body:
        if isinstance(piece, FileSlice):
            if piece.length:
                answer += _joined(small)
                answer.append(piece)
                small, small_bytes = [], 0
            continue
        size = len(piece)
        if small_bytes + size <= _JOINED_BYTES:
            small.append(piece)
            small_bytes += size
        else:
            answer += _joined(small)
            small, small_bytes = [piece], size
    answer += _joined(small)
    return answer


def _joined(pieces: list[bytes | bytearray | memoryview]) -> list[bytes | bytearray | memoryview]:
    if len(pieces) == 1:
        return pieces if pieces[0] else []
    joined = b"".join(pieces)
    return [joined] if joined else []
