"""What a connection has still to send: bytes and file slices, in order, without blocking the loop.

An answer that fits into the socket's buffer goes out in one send and never enters the queue. Bytes
before a slice are sent with MSG_MORE, slices by sendfile. Before a range of a slice goes out its
first byte is probed; if it is not in the page cache a thread reads the range first, since a cold
sendfile would hold the loop for the disk's time (1.8 ms a MiB measured on a fast disk).

A slow reader costs no memory: a slice is three numbers until it is sent, and the connection serves
no further request while more than `HIGH_WATER_BYTES` are unsent.
"""

from __future__ import annotations

import errno
import socket
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from wirebroker.api.registry import Piece
    from wirebroker.storage.files import DataFile, FileSlice

# A connection's next request is served while no more than this is unsent.
HIGH_WATER_BYTES: Final = 64 << 10

# One call of sendfile sends at most this; with 100 KiB of socket buffer it seldom gets that far.
_SEND_BYTES: Final = 256 << 10
# One turn of the loop sends at most this to one peer, however fast it reads.
_TURN_BYTES: Final = 1 << 20
# A probe (4 us) speaks for this much of a slice: 2 % of what sending it costs.
_PROBED_BYTES: Final = 256 << 10
# A thread reads this much at a time, about 1 ms of a fast disk.
_WARMED_BYTES: Final = 1 << 20


# What a read says of a disk that has failed; the same calls tell of sockets that have.
_DISK_ERRORS: Final = frozenset(
    {errno.EIO, errno.ENXIO, errno.ENODEV, errno.EBADMSG, errno.EUCLEAN, errno.ESTALE}
)


class SliceError(OSError):
    """A file slice cannot be sent: our disk's fault, not the peer's.

    Attributes:
        path: The file.
        is_disk_failure: Whether the disk cannot be trusted any more.
    """

    def __init__(self, path: str, reason: OSError | str) -> None:
        super().__init__(f"cannot send {path}: {reason}")
        self.path = path
        self.is_disk_failure = isinstance(reason, OSError) and reason.errno in _DISK_ERRORS


class SendQueue:
    """The sending half of one socket.

    Attributes:
        unsent_bytes: What `send` was given and the socket has not taken yet.
    """

    __slots__ = (
        "_descriptor",
        "_is_closed",
        "_is_warming",
        "_is_writing",
        "_items",
        "_loop",
        "_on_error",
        "_on_progress",
        "_probed_end",
        "_socket",
        "unsent_bytes",
    )

    def __init__(
        self,
        *,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        on_progress: Callable[[], None],
        on_error: Callable[[OSError], None],
    ) -> None:
        self._loop = loop
        self._socket = sock
        self._descriptor = sock.fileno()
        # Called after bytes have left in a later turn of the loop than `send`'s.
        self._on_progress = on_progress
        # Called at most once, for what goes wrong in a later turn.
        self._on_error = on_error
        # None as long as nothing had to wait: an idle connection has no deque (700 bytes).
        self._items: deque[Piece] | None = None
        # Up to where the first item's file is known to be in the page cache.
        self._probed_end = -1
        self._is_writing = False
        self._is_warming = False
        self._is_closed = False
        self.unsent_bytes = 0

    def send(self, pieces: list[Piece]) -> None:
        """Send what the socket takes and queue the rest.

        Args:
            pieces: Not empty, and no piece is; bytes-like ones must not change afterwards.

        Raises:
            OSError: The peer is gone, or (SliceError) a file cannot be read.
        """
        piece = pieces[0]
        if len(pieces) == 1 and not self.unsent_bytes and type(piece) is bytes:
            try:
                sent = self._socket.send(piece)
            except (BlockingIOError, InterruptedError):
                sent = 0
            if sent == len(piece):
                return
            pieces = [memoryview(piece)[sent:]]
        items = self._items
        if items is None:
            items = self._items = deque()
        for each in pieces:
            if isinstance(each, bytes):
                items.append(memoryview(each))
                self.unsent_bytes += len(each)
            elif isinstance(each, bytearray | memoryview):
                items.append(each)
                self.unsent_bytes += len(each)
            else:
                items.append(each)
                self.unsent_bytes += each.length
        if not self._is_writing and not self._is_warming:
            self._flush(items)

    def close(self) -> None:
        """Drop what is unsent and leave the loop; the socket itself is the owner's."""
        self._is_closed = True
        self._items = None
        self.unsent_bytes = 0
        self._set_writing(False)

    def _set_writing(self, is_writing: bool) -> None:
        if is_writing == self._is_writing:
            return
        self._is_writing = is_writing
        if is_writing:
            self._loop.add_writer(self._descriptor, self._on_writable)
        else:
            self._loop.remove_writer(self._descriptor)

    def _flush(self, items: deque[Piece]) -> None:
        """Send until the socket is full, a slice is cold, or the turn is over."""
        turn_bytes = 0
        try:
            while items:
                if turn_bytes >= _TURN_BYTES:
                    self._set_writing(True)
                    return
                item = items[0]
                if isinstance(item, bytes | bytearray | memoryview):
                    sent = self._socket.send(item, socket.MSG_MORE if len(items) > 1 else 0)
                    rest: Piece = memoryview(item)[sent:]
                    is_done = not rest
                else:
                    if item.position >= self._probed_end and self._is_cold(item):
                        return
                    sent = self._send_slice(item)
                    rest = item._replace(position=item.position + sent, length=item.length - sent)
                    is_done = not rest.length
                turn_bytes += sent
                self.unsent_bytes -= sent
                if is_done:
                    items.popleft()
                    self._probed_end = -1
                else:
                    items[0] = rest
        except (BlockingIOError, InterruptedError):
            self._set_writing(True)
            return
        self._set_writing(False)

    def _send_slice(self, item: FileSlice) -> int:
        """Send of a slice what one call may send and the last probe spoke for."""
        count = min(item.length, _SEND_BYTES, self._probed_end - item.position)
        try:
            sent = item.file.send_to(self._descriptor, item.position, count)
        except (BlockingIOError, InterruptedError, ConnectionError, TimeoutError):
            raise
        except OSError as error:
            raise SliceError(item.file.path, error) from error
        if not sent:
            raise SliceError(item.file.path, f"it ends before {item.position}")
        return sent

    def _is_cold(self, item: FileSlice) -> bool:
        """Probe a slice's next range; if it is cold, have a thread read it and return True."""
        try:
            is_resident = item.file.is_resident(item.position)
        except OSError as error:
            raise SliceError(item.file.path, error) from error
        if is_resident:
            self._probed_end = item.position + _PROBED_BYTES
            return False
        self._set_writing(False)
        self._is_warming = True
        count = min(item.length, _WARMED_BYTES)
        warming = self._loop.run_in_executor(None, item.file.warm, item.position, count)
        # If the kernel drops the pages again at once, the loop pays this once.
        self._probed_end = item.position + count
        warming.add_done_callback(partial(self._on_warmed, item.file))
        return True

    def _on_warmed(self, file: DataFile, warming: asyncio.Future[None]) -> None:
        self._is_warming = False
        error = warming.exception()
        if self._is_closed:
            return
        if error is not None:
            reason = error if isinstance(error, OSError) else repr(error)
            self._on_error(SliceError(file.path, reason))
            return
        self._on_writable()

    def _on_writable(self) -> None:
        items = self._items
        if items is None:
            self._set_writing(False)
            return
        before = self.unsent_bytes
        try:
            self._flush(items)
        except OSError as error:
            self._on_error(error)
            return
        if self.unsent_bytes < before:
            self._on_progress()
