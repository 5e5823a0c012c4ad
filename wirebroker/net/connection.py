"""A client connection: receives requests, serves one at a time, and sends the responses.

    readable -> receive -> frames -> dispatch -> response -> send
                                        |
                                     Pending: later frames wait until the response is ready

Small responses to requests that arrived together are sent together: responses of one connection in
one piece (`_serve_several`), responses of several connections one after the other
(`SendQueue.send_soon`).

The next request is served when the last response is queued, or sent if it is large. `_go_on` clears
a reason to wait (`Session.pauses`), and continues after the last one. A paused connection stays
registered for reading until its socket becomes readable.

This is the hot path, and flat on purpose. The state of a connection and its end are in
open_connection.py.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.net.frames.protocol import SMALL_FRAME_BYTES
from wirebroker.net.open_connection import OpenConnection
from wirebroker.net.pending import HandlerFailedError, Pending
from wirebroker.net.send_queue import HIGH_WATER_BYTES, MOST_HELD_BYTES
from wirebroker.request.deferred_response import DeferredResponse
from wirebroker.request.request import CloseConnectionError
from wirebroker.request.session import (
    ANSWER_IS_DUE,
    ENDING,
    OUTPUT_IS_UNSENT,
    THROTTLED,
    TURN_IS_OVER,
)

if TYPE_CHECKING:
    from wirebroker.request.request import Piece

# Time for pipelined requests of one connection before others are served.
_TURN_S: Final = 0.002

# Small responses to them are joined up to this size, so that the peer can continue.
_JOINED_BYTES: Final = 8 << 10


class Connection(OpenConnection):
    """A client's connection, from accept to close."""

    __slots__ = ()

    # --- receiving and serving ---

    def _on_readable(self) -> None:
        if self.session.pauses:
            self._is_reading = False
            self._sockets.remove_reader(self._descriptor)
            if self._pending is not None or self.session.pauses & THROTTLED:
                self._look_for_end()
            return
        protocol = self.protocol
        buffer = protocol.get_buffer()
        if self._budget.is_exceeded:
            if protocol.is_large and not self._budget.may_receive(self):
                self._wait_for_memory()
                return
            buffer = buffer[:SMALL_FRAME_BYTES]
        try:
            count = self._transport.receive(buffer)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as fault:
            self._lost(fault)
            return
        if not count:
            self._on_end()
            return
        self.activity += 1
        protocol.buffer_updated(count)
        if self._poller is None:
            self._serve(count)
            return
        self.session.received_s = self._poller.woken_s
        if self._poller.is_ending:
            self._serve_last(count)
        else:
            self._serve(count)

    def _serve(self, count: int) -> None:
        """Serve the available frames after `count` bytes have arrived."""
        protocol = self.protocol
        try:
            frame = protocol.next_frame()
            if frame is not None and protocol.position != protocol.end:
                self._serve_several(frame)
            elif frame is not None:
                answer = self._dispatch(frame, self.session)
                if isinstance(answer, list):
                    self._queue.send_soon(answer)
                    if self._queue.unsent_bytes > MOST_HELD_BYTES:
                        self._note_unsent()
                elif answer is not None:
                    self._wait_for_answer(answer, frame)
        except (MalformedFrameError, CloseConnectionError, HandlerFailedError) as error:
            self._refuse(error)
            return
        except OSError as fault:
            self._lost(fault)
            return
        except Exception:  # a bug: reported by the poller; no response is skipped
            self.close()
            raise
        if protocol.hold() or self._charged_bytes or self._pending_bytes or self._is_watched:
            self._account(count)

    def _serve_last(self, count: int) -> None:
        """Serve what a peer sent before it disconnected, without waits that only serve the peer.

        One turn instead of three, so that peers that connect and leave in a loop delay no others.
        """
        self.session.end()
        self._serve(count)
        if self._is_closed:
            return
        if self.session.pauses:
            self._is_reading = False
            self._sockets.remove_reader(self._descriptor)
        else:
            self._end_if_all_is_read()

    def _serve_several(self, first: memoryview) -> None:
        """Serve pipelined frames until the connection pauses or the turn is over.

        Small responses are sent together, since a send costs 5 us; but those to the first half are
        not delayed by the second.
        """
        protocol = self.protocol
        queue = self._queue
        frame: memoryview | None = first
        turn_end = self._monotonic() + _TURN_S
        half = (protocol.position + protocol.end) // 2
        small: list[bytes] = []
        small_bytes = 0
        try:
            while frame is not None:
                answer = self._dispatch(frame, self.session)
                if isinstance(answer, list):
                    piece = answer[0]
                    if len(answer) == 1 and isinstance(piece, bytes):
                        small.append(piece)
                        small_bytes += len(piece)
                        answer.clear()
                    is_half = protocol.position >= half
                    if answer or is_half or small_bytes >= _JOINED_BYTES:
                        if is_half:
                            half = protocol.end + 1
                        if small:
                            answer.insert(0, b"".join(small))
                            small, small_bytes = [], 0
                        queue.send(answer)
                        if queue.unsent_bytes > MOST_HELD_BYTES and self._note_unsent():
                            break
                elif answer is not None:
                    self._wait_for_answer(answer, frame)
                    break
                if protocol.position != protocol.end and self._monotonic() >= turn_end:
                    self.session.pauses |= TURN_IS_OVER
                    self._loop.call_soon(self._go_on, TURN_IS_OVER)
                frame = None if self.session.pauses else protocol.next_frame()
        finally:
            # Requests before a malformed frame get responses.
            if small:
                queue.send([b"".join(small)])
                if queue.unsent_bytes > MOST_HELD_BYTES:
                    self._note_unsent()

    # --- pending responses ---

    def _wait_for_answer(self, pending: Pending | DeferredResponse, frame: memoryview) -> None:
        session = self.session
        session.pauses |= ANSWER_IS_DUE
        self._pending = pending
        if isinstance(pending, DeferredResponse):
            pending.wait(session, self._on_deferred_response)
            if session.has_ended:
                pending.give_up_soon()
            return
        if len(frame) > SMALL_FRAME_BYTES:
            self._pending_bytes = len(frame)
        answer = asyncio.ensure_future(pending.awaitable, loop=self._loop)
        answer.add_done_callback(self._on_answer)
        if pending.ends_with_peer:
            # After its first step; canceled earlier, it would leave coroutines never awaited.
            session.when_ended(lambda: self._loop.call_soon(answer.cancel))

    def _on_answer(self, future: asyncio.Future[object]) -> None:
        pending, self._pending = self._pending, None
        assert isinstance(pending, Pending)
        self._pending_bytes = 0
        session = self.session
        session.answered()
        try:
            # Requests after an abandoned wait are still served.
            is_given_up = session.has_ended and future.cancelled()
            answer = None if is_given_up else pending.complete(future)
            if self._is_closed:
                return
            if answer is not None:
                self._queue.send(answer)
                session.last_meter = pending.meter
                if self._queue.unsent_bytes > MOST_HELD_BYTES:
                    self._note_unsent()
        except (MalformedFrameError, CloseConnectionError, HandlerFailedError) as error:
            self._refuse(error)
            return
        except OSError as fault:
            self._lost(fault)
            return
        if self._charged_bytes:
            self._account(0)
        self._go_on(ANSWER_IS_DUE)

    def _on_deferred_response(self, response: DeferredResponse) -> None:
        self._pending = None
        # Clients that want no response are charged, too.
        answer: list[Piece] = [response.answer]
        if response.settle is not None:
            answer = response.settle(answer) or answer
        meter = response.meter
        if meter is not None:
            received_s, began_s, returned_s = response.times
            meter.served_later(received_s, began_s, returned_s)
        if self._is_closed:
            return
        try:
            self._queue.send(answer)
        except OSError as fault:
            self._lost(fault)
            return
        if self._charged_bytes or self._is_large:
            self._account(0)
        self._go_on(ANSWER_IS_DUE)

    # --- pausing ---

    def _go_on(self, pause: int) -> None:
        session = self.session
        session.pauses &= ~pause
        session.received_s = 0.0
        if self._queue.unsent_bytes > HIGH_WATER_BYTES:
            session.pauses |= OUTPUT_IS_UNSENT
        if session.pauses:
            if session.pauses & ENDING and self._pending is None and not self._queue.unsent_bytes:
                self.close()
            elif session.pauses == THROTTLED and session.has_ended and not self._is_reading:
                self._look_for_end()  # the peer left while its request was pending
            return
        self._serve(0)
        if self._is_reading or self._is_closed:
            return
        if session.has_ended and not session.pauses and self._end_if_all_is_read():
            return
        is_deaf = not (self._watches_end or session.has_ended)
        if not session.pauses or (is_deaf and self._pending is not None):
            self._is_reading = True
            self._sockets.add_reader(self._descriptor, self._on_readable)
