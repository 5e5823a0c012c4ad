"""What a connection has still to send: bytes and file slices, in order, without blocking the loop.

An answer that fits into the socket's buffer goes out in one send and never enters the queue. Small
slices that are in the page cache are read and sent with what is around them (joined_pieces.py).
Others go by sendfile, bytes before them with MSG_MORE. Before a range of a slice goes out its first
and last byte are probed; if one is not in the page cache a thread reads the range first, since a
cold sendfile would hold the loop for the disk's time (1.8 ms a MiB measured on a fast disk). If it
is old data the thread leads from then on, through all of it, since the loop would read ahead, too
(3.5 ms). What such a reader has passed is given back to the kernel (old_pages.py).

A large answer leaves others their turn: from 128 KiB on they are looked for after each call.

A slow reader costs no memory: a slice is three numbers until it is sent, and the connection serves
no further request while more than `HIGH_WATER_BYTES` are unsent.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final

from wirebroker.net.joined_pieces import MOST_JOINED_BYTES, joined
from wirebroker.net.pages.old_pages import is_old
from wirebroker.net.slice_error import SliceError
from wirebroker.net.sockets.poller import Poller
from wirebroker.storage.files import FileSlice

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wirebroker.net.pages.old_pages import OldPages
    from wirebroker.net.sockets.transport import ConnectionTransport
    from wirebroker.request.request import Piece
    from wirebroker.storage.files import DataFile

# A connection's next request is served while no more than this is unsent.
HIGH_WATER_BYTES: Final = 64 << 10

# Larger answers leave at once.
MOST_HELD_BYTES: Final = 4 << 10
# One call of sendfile sends at most this; with 100 KiB of socket buffer it seldom gets that far.
_SEND_BYTES: Final = 256 << 10
# One turn of the loop sends at most this to one peer, however fast it reads...
_TURN_BYTES: Final = 1 << 20
# ... and little more than this (30 us) if another is ready.
_SHORT_TURN_BYTES: Final = 128 << 10
# A probe (a read of one byte at either end) covers this much of a slice.
_PROBED_BYTES: Final = 256 << 10
# With less than this of a probed range left, the next one is probed too.
_SHORTEST_SEND_BYTES: Final = 64 << 10
# A thread reads this much at a time, about 1 ms of a fast disk.
_WARMED_BYTES: Final = 1 << 20


class SendQueue:
    """The sending half of one connection.

    Attributes:
        unsent_bytes: What `send` was given and the socket has not taken yet.
    """

    __slots__ = (
        "_held",
        "_is_closed",
        "_is_end_probed",
        "_is_led",
        "_is_warming",
        "_is_writing",
        "_items",
        "_old_pages",
        "_on_error",
        "_on_progress",
        "_poller",
        "_probed_end",
        "_transport",
        "unsent_bytes",
    )

    def __init__(
        self,
        *,
        old_pages: OldPages,
        transport: ConnectionTransport,
        on_progress: Callable[[], None],
        on_error: Callable[[OSError], None],
    ) -> None:
        self._old_pages = old_pages
        self._transport = transport
        # Another loop's sockets come one by one.
        sockets = transport.sockets
        self._poller = sockets if isinstance(sockets, Poller) else None
        # A small answer that leaves at the end of the poller's batch.
        self._held: bytes | None = None
        # Called after bytes have left in a later turn of the loop than `send`'s.
        self._on_progress = on_progress
        # Called at most once, for what goes wrong in a later turn.
        self._on_error = on_error
        # None as long as nothing had to wait: an idle connection has no deque (700 bytes).
        self._items: deque[Piece] | None = None
        # Up to where the first item's file is known to be in the page cache.
        self._probed_end = -1
        # Whether the byte at `_probed_end` is known to be in the page cache.
        self._is_end_probed = False
        self._is_writing = False
        self._is_warming = False
        # A thread reads old data before it is sent.
        self._is_led = False
        self._is_closed = False
        self.unsent_bytes = 0

    def send_soon(self, pieces: list[Piece]) -> None:
        """Do as `send`, or hold a small answer until others that are ready are served as well."""
        poller = self._poller
        if poller is not None and poller.is_batch and not self.unsent_bytes and not self._is_closed:
            piece = pieces[0] if len(pieces) == 1 else _small(pieces, self._old_pages)
            if type(piece) is bytes and len(piece) <= MOST_HELD_BYTES:
                self._held = piece
                self.unsent_bytes = len(piece)
                poller.hold(self)
                return
        self.send(pieces)

    def release(self) -> None:
        """Send what is held, if anything is."""
        held, self._held = self._held, None
        if held is None:
            return
        self.unsent_bytes = 0
        try:
            self._send_one(held)
        except OSError as error:
            self._on_error(error)

    def send(self, pieces: list[Piece]) -> None:
        """Send what the socket takes and queue the rest; nothing once this is closed.

        Args:
            pieces: Not empty, and no piece is; bytes-like ones must not change afterwards.

        Raises:
            OSError: The peer is gone, or (SliceError) a file cannot be read.
        """
        if self._is_closed:  # by its own request's handler
            return
        assert self._held is None, "whoever holds an answer serves no other request"
        if len(pieces) > 1 and not self.unsent_bytes:
            small = _small(pieces, self._old_pages)
            if small is not None:
                pieces = [small]
        piece = pieces[0]
        if type(piece) is bytes and len(pieces) == 1 and not self.unsent_bytes:
            self._send_one(piece)
        else:
            self._append(pieces)

    def _send_one(self, piece: bytes) -> None:
        """Send, with nothing unsent before it, and queue what the socket doesn't take."""
        try:
            sent = self._transport.send(piece)
        except (BlockingIOError, InterruptedError):
            sent = 0
        if sent != len(piece):
            self._append([memoryview(piece)[sent:]])

    def _append(self, pieces: Sequence[Piece]) -> None:
        """Queue pieces, and send if nobody does."""
        items = self._items
        if items is None:
            items = self._items = deque()
        for each in pieces:
            if isinstance(each, FileSlice):
                items.append(each)
                self.unsent_bytes += each.length
            else:
                items.append(memoryview(each) if isinstance(each, bytes) else each)
                self.unsent_bytes += len(each)
        if not self._is_writing and not self._is_warming:
            self._flush(items)

    def close(self) -> None:
        """Drop what is unsent and leave the loop; the socket itself is the owner's."""
        self._is_closed = True
        self._old_pages.work.leave(self)
        self._items = self._held = None
        self.unsent_bytes = 0
        self._set_writing(False)
        # The owner's methods, which hold the owner: in a cycle it would keep all that it holds (a
        # frame of 100 MiB that is still arriving) until Python looks for cycles, or for ever.
        self._on_progress = self._on_error = _ignore

    def _set_writing(self, is_writing: bool) -> None:
        if is_writing == self._is_writing:
            return
        self._is_writing = is_writing
        if is_writing:
            self._transport.sockets.add_writer(self._transport.descriptor, self._on_writable)
        else:
            self._transport.sockets.remove_writer(self._transport.descriptor)

    def _flush(self, items: deque[Piece]) -> None:
        """Send until the socket is full, a slice is cold, or the turn is over."""
        turn_bytes = 0
        try:
            while items:
                if turn_bytes >= _SHORT_TURN_BYTES and self._is_turn_over(turn_bytes):
                    self._set_writing(True)
                    return
                item = items[0]
                if (all_bytes := self._joined(items)) is not None:
                    sent = self._transport.send_piece(all_bytes, has_more=False)
                elif not isinstance(item, FileSlice):
                    sent = self._transport.send_piece(item, has_more=len(items) > 1)
                elif self._is_cold(item):
                    return
                else:
                    sent = self._send_slice(item)
                turn_bytes += sent
                self._drop(items, sent)
        except (BlockingIOError, InterruptedError):
            self._set_writing(True)
            return
        self._set_writing(False)

    def _is_turn_over(self, turn_bytes: int) -> bool:
        if turn_bytes >= _TURN_BYTES:
            return True
        if self.unsent_bytes < _SHORTEST_SEND_BYTES:
            return False  # finishing now costs no more than another turn
        poller = self._poller
        return poller is not None and poller.is_another_ready(self._transport.descriptor)

    def _joined(self, items: deque[Piece]) -> memoryview | None:
        """Return everything in one piece if it is short and not just bytes anyway."""
        if self.unsent_bytes > MOST_JOINED_BYTES:
            return None
        if len(items) == 1 and not isinstance(items[0], FileSlice):
            return None
        return joined(items, self._old_pages)

    def _drop(self, items: deque[Piece], count: int) -> None:
        """Take `count` bytes, which were sent, off the head of the queue."""
        self.unsent_bytes -= count
        while count:
            item = items[0]
            if isinstance(item, FileSlice):
                length = item.length
                if count < length:
                    items[0] = item._replace(position=item.position + count, length=length - count)
                    return
            else:
                length = len(item)
                if count < length:
                    items[0] = memoryview(item)[count:]
                    return
            count -= length
            items.popleft()
            self._probed_end = -1

    def _send_slice(self, item: FileSlice) -> int:
        """Send of a slice what one call may send and the last probe spoke for."""
        count = min(item.length, _SEND_BYTES, self._probed_end - item.position)
        try:
            sent = self._transport.send_file(item.file, item.position, count)
        except (BlockingIOError, InterruptedError, ConnectionError, TimeoutError):
            raise
        except OSError as error:
            raise SliceError(item.file.path, error) from error
        if not sent:
            raise SliceError(item.file.path, f"it ends before {item.position}")
        self._old_pages.sent(item.file, item.position, sent)
        return sent

    def _is_cold(self, item: FileSlice) -> bool:
        """Probe a slice's next range; if it is cold, have a thread read it and return True.

        A led reader's is cold until the thread has been there, unless it is short: then a probe is
        cheaper, which speaks for all of it.
        It is probed before the last is at its end, or each range would end with a tiny send.
        """
        position = max(item.position, self._probed_end)
        left = item.position + item.length - position
        if left <= 0 or position - item.position >= _SHORTEST_SEND_BYTES:
            return False
        self._is_led = self._is_led and is_old(item.file, position)
        if not self._is_led or left < _SHORTEST_SEND_BYTES:
            # Where the last range ends this one begins; its probe may have read that byte.
            is_first_probed = self._is_end_probed and self._probed_end >= item.position
            last = position + min(left - 1, _PROBED_BYTES)
            first = last if is_first_probed else position
            try:
                is_resident = item.file.is_resident(first, last - first + 1)
            except OSError as error:
                raise SliceError(item.file.path, error) from error
            if is_resident:
                self._probed_end = position + _PROBED_BYTES
                self._is_end_probed = True
                return False
        self._is_led = self._is_led or is_old(item.file, position)
        self._set_writing(False)
        self._is_warming = True
        count = min(left, _WARMED_BYTES)
        # If the kernel drops the pages again at once, the loop pays this once.
        self._probed_end = position + count
        self._is_end_probed = False
        then = partial(self._on_warmed, item.file)
        self._old_pages.work.bring(self, item.file, position, count, then)
        return True

    def _on_warmed(self, file: DataFile, error: BaseException | None) -> None:
        self._is_warming = False
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


def _small(pieces: list[Piece], old_pages: OldPages) -> bytes | None:
    """Return an answer of several pieces in one if it is small and needs no disk."""
    size = 0
    for each in pieces:
        size += each.length if isinstance(each, FileSlice) else len(each)
        if size > MOST_HELD_BYTES:
            return None
    view = joined(pieces, old_pages)
    return None if view is None else bytes(view)


def _ignore(_error: OSError | None = None) -> None:
    """Nobody is there any more."""
