"""Unsent bytes and file slices of a connection, sent in order without blocking the loop.

A response that fits into the socket's buffer is sent in one call and never queued. Small cached
slices are read and sent with their neighbors (joined_pieces.py). Others are sent by sendfile, after
a probe of the next range at both ends: if a page is not cached, a thread reads the range, since a
cold sendfile would hold the loop. For old data the thread reads everything in advance, because
sendfile's readahead would hold the loop, too.

A slow reader costs no memory: a slice is three numbers, and no further request is served while more
than `HIGH_WATER_BYTES` are unsent.
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

HIGH_WATER_BYTES: Final = 64 << 10

# Larger responses are sent immediately.
MOST_HELD_BYTES: Final = 4 << 10
# Limit of one sendfile call.
_SEND_BYTES: Final = 256 << 10
# Limit of what one peer is sent per turn...
_TURN_BYTES: Final = 1 << 20
# ... and about the limit (30 us) while another connection is ready.
_SHORT_TURN_BYTES: Final = 128 << 10
# A probe (a read of one byte at either end) covers this much.
_PROBED_BYTES: Final = 256 << 10
# When less of a probed range is left, the next one is probed.
_SHORTEST_SEND_BYTES: Final = 64 << 10
# A thread reads this much at a time: about 1 ms on a fast disk.
_WARMED_BYTES: Final = 1 << 20


class SendQueue:
    """The sending half of one connection."""

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
        # Other loops have no batches.
        sockets = transport.sockets
        self._poller = sockets if isinstance(sockets, Poller) else None
        # A small response, sent at the end of the poller's batch.
        self._held: bytes | None = None
        # Both are called in later turns only; the second at most once.
        self._on_progress = on_progress
        self._on_error = on_error
        # None until something is queued, because a deque takes 700 bytes.
        self._items: deque[Piece] | None = None
        # End of the first item's range that is known to be cached.
        self._probed_end = -1
        # The byte at `_probed_end` is cached, too.
        self._is_end_probed = False
        self._is_writing = False
        self._is_warming = False
        # A thread reads old data in advance.
        self._is_led = False
        self._is_closed = False
        self.unsent_bytes = 0

    def send_soon(self, pieces: list[Piece]) -> None:
        """Send, or hold a small response until other ready connections are served."""
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
        """Send the held response, if any."""
        response, self._held = self._held, None
        if response is None:
            return
        self.unsent_bytes = 0
        try:
            self._send_one(response)
        except OSError as error:
            self._on_error(error)

    def send(self, pieces: list[Piece]) -> None:
        """Send what the socket takes and queue the rest; ignored after `close`.

        Neither the list nor a piece may be empty; the bytes must not change.

        Raises:
            OSError: The peer is gone, or (SliceError) a file cannot be read.
        """
        if self._is_closed:  # by its request's handler
            return
        assert self._held is None, "a connection with a held response serves no other request"
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
        try:
            sent = self._transport.send(piece)
        except (BlockingIOError, InterruptedError):
            sent = 0
        if sent != len(piece):
            self._append([memoryview(piece)[sent:]])

    def _append(self, pieces: Sequence[Piece]) -> None:
        items = self._items
        if items is None:
            items = self._items = deque()
        for piece in pieces:
            if isinstance(piece, FileSlice):
                items.append(piece)
                self.unsent_bytes += piece.length
            else:
                items.append(memoryview(piece) if isinstance(piece, bytes) else piece)
                self.unsent_bytes += len(piece)
        if not self._is_writing and not self._is_warming:
            self._flush(items)

    def close(self) -> None:
        """Drop unsent bytes; the owner closes the socket."""
        self._is_closed = True
        self._old_pages.work.leave(self)
        self._items = self._held = None
        self.unsent_bytes = 0
        self._set_writing(False)
        # Breaks the cycle with the owner, whose memory would stay until a collection.
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
            return False  # finishing costs no more than another turn
        poller = self._poller
        return poller is not None and poller.is_another_ready(self._transport.descriptor)

    def _joined(self, items: deque[Piece]) -> memoryview | None:
        if self.unsent_bytes > MOST_JOINED_BYTES:
            return None
        if len(items) == 1 and not isinstance(items[0], FileSlice):
            return None
        return joined(items, self._old_pages)

    def _drop(self, items: deque[Piece], count: int) -> None:
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
        count = min(item.length, _SEND_BYTES, self._probed_end - item.position)
        try:
            sent = self._transport.send_file(item.file, item.position, count)
        except (BlockingIOError, InterruptedError, ConnectionError, TimeoutError):
            raise
        except OSError as error:
            raise SliceError(item.file.path, error) from error
        if not sent:
            raise SliceError(item.file.path, f"it ends before position {item.position}")
        self._old_pages.sent(item.file, item.position, sent)
        return sent

    def _is_cold(self, item: FileSlice) -> bool:
        """Probe a slice's next range; if it is not cached, let a thread read it and return True.

        In old data a range counts as not cached until the thread has read it, unless one probe
        covers it. Probing starts before the last range is sent, to avoid tiny sends at its end.
        """
        position = max(item.position, self._probed_end)
        remaining_bytes = item.position + item.length - position
        if remaining_bytes <= 0 or position - item.position >= _SHORTEST_SEND_BYTES:
            return False
        self._is_led = self._is_led and is_old(item.file, position)
        if not self._is_led or remaining_bytes < _SHORTEST_SEND_BYTES:
            is_first_probed = self._is_end_probed and self._probed_end >= item.position
            last = position + min(remaining_bytes - 1, _PROBED_BYTES)
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
        count = min(remaining_bytes, _WARMED_BYTES)
        # If the kernel drops the pages immediately, the loop waits for the disk once.
        self._probed_end = position + count
        self._is_end_probed = False
        on_warmed = partial(self._on_warmed, item.file)
        self._old_pages.work.bring(self, item.file, position, count, on_warmed)
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
    """Join small pieces if no disk read is needed."""
    size = 0
    for piece in pieces:
        size += piece.length if isinstance(piece, FileSlice) else len(piece)
        if size > MOST_HELD_BYTES:
            return None
    view = joined(pieces, old_pages)
    return None if view is None else bytes(view)


def _ignore(_error: OSError | None = None) -> None:
    """Do nothing."""
