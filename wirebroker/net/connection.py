"""A client connection: receives requests, serves one at a time, and sends the responses.

    readable -> receive -> frames -> dispatch -> response -> send
                                        |
                                     Pending: later frames wait until the response is ready

Small responses to requests that arrived together are sent together: those of one connection in one
piece (`_serve_several`), those of several one after the other (`SendQueue.send_soon`).

The next request is served when the last response is queued, or sent if it is large.
`Session.pauses` has a bit for each reason to wait. `_go_on` clears a bit, and continues after the
last one. A paused connection stays registered for reading until its socket becomes readable.

A disconnect during a pending request makes the socket readable; if there are unread requests, the
poller reports it (`add_ender`).

This is the hot path, and flat on purpose.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from wirebroker.base.request_meters import LateSend
from wirebroker.codecs.errors import MalformedFrameError, without_frames
from wirebroker.net.closing_lines import log_refused, say_closed, say_cut_short, say_lost
from wirebroker.net.frames.protocol import SMALL_FRAME_BYTES, Protocol
from wirebroker.net.pending import HandlerFailedError, Pending
from wirebroker.net.send_queue import HIGH_WATER_BYTES, MOST_HELD_BYTES, SendQueue
from wirebroker.net.slice_error import SliceError
from wirebroker.net.sockets.poller import Poller
from wirebroker.request.deferred_response import DeferredResponse
from wirebroker.request.request import CloseConnectionError
from wirebroker.request.session import (
    ANSWER_IS_DUE,
    ENDING,
    MEMORY_IS_SHORT,
    OUTPUT_IS_UNSENT,
    THROTTLED,
    TURN_IS_OVER,
    Session,
    no_mute,
)

if TYPE_CHECKING:
    from wirebroker.net.connection_owner import Guard, Owner
    from wirebroker.net.sockets.transport import ConnectionTransport
    from wirebroker.request.request import Piece

# Time for pipelined requests of one connection before others are served.
_TURN_S: Final = 0.002

# Small responses to them are joined up to this size, so that the peer can continue.
_JOINED_BYTES: Final = 8 << 10


class Connection:
    """A client's connection, from accept to close.

    Attributes:
        address: The peer's host.
        activity: Changes whenever bytes move.
        seen_activity: Its value at the last idle sweep.
        quiet_since: When the sweep last saw it changed.
    """

    __slots__ = (
        "_budget",
        "_charged_bytes",
        "_descriptor",
        "_dispatch",
        "_is_closed",
        "_is_large",
        "_is_reading",
        "_is_watched",
        "_late_send",
        "_loop",
        "_monotonic",
        "_pending",
        "_pending_bytes",
        "_poller",
        "_queue",
        "_sockets",
        "_table",
        "_throttle",
        "_transport",
        "_watches_end",
        "activity",
        "address",
        "protocol",
        "quiet_since",
        "seen_activity",
        "session",
    )

    # session.pauses contains ANSWER_IS_DUE while _pending is not None, and TURN_IS_OVER,
    # MEMORY_IS_SHORT and THROTTLED while the loop or the budget has a call scheduled.
    # _charged_bytes == what this connection has added to the budget.

    def __init__(
        self,
        table: Owner[Connection],
        transport: ConnectionTransport,
        session: Session,
        address: str,
        guard: Guard | None = None,
    ) -> None:
        self._table = table
        self._loop = table.loop
        self._monotonic = table.clock.monotonic
        self._budget = table.budget
        self._dispatch = table.dispatch if guard is None else guard
        self._transport = transport
        self._sockets = transport.sockets
        # Other loops do not report an end after unread bytes.
        self._poller = self._sockets if isinstance(self._sockets, Poller) else None
        self._descriptor = transport.descriptor
        self._queue = SendQueue(
            old_pages=table.old_pages,
            transport=transport,
            on_progress=self._on_sent,
            on_error=self._on_send_error,
        )
        self._pending: Pending | DeferredResponse | None = None
        self._pending_bytes = 0
        self._charged_bytes = 0
        self._throttle: asyncio.TimerHandle | None = None
        self._is_reading = True
        self._is_closed = False
        self._is_large = False
        self._is_watched = False
        self._late_send: LateSend | None = None
        # The poller will report an end after unread bytes.
        self._watches_end = False
        self.session = session
        session.mute = self.throttle
        self.address = address
        self.activity = 0
        self.seen_activity = -1
        self.quiet_since = 0.0
        self.protocol = Protocol(
            table.area,
            request_max_bytes=table.settings.request_max_bytes,
            deadline_s=table.settings.frame_deadline_ms / 1000,
        )
        self._sockets.add_reader(self._descriptor, self._on_readable)

    # --- receiving and serving (hot) ---

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

    def _end_if_all_is_read(self) -> bool:
        """End if the peer has and nothing is unread; return whether this is so."""
        try:
            is_end = self._transport.is_at_end()
        except OSError as fault:
            self._lost(fault)
            return True
        if is_end:
            self._on_end()
        return is_end

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

    def _note_unsent(self) -> bool:
        """Measure the last response's send time; return whether too much is unsent."""
        meter = self.session.last_meter
        if self._late_send is None and meter is not None:
            self._late_send = LateSend(meter, meter.stopwatch())
        if self._queue.unsent_bytes <= HIGH_WATER_BYTES:
            return False
        self.session.pauses |= OUTPUT_IS_UNSENT
        return True

    def _account(self, count: int) -> None:
        protocol = self.protocol
        if protocol.is_large and not self._is_large:
            self._is_large = True
            self._budget.began_large(self)
        held_bytes = protocol.held_bytes + self._pending_bytes
        if held_bytes != self._charged_bytes:
            self._budget.add(held_bytes - self._charged_bytes)
            self._charged_bytes = held_bytes
        if protocol.held_bytes and not self.session.pauses:
            protocol.progressed(count, self._monotonic())
            if not self._is_watched:
                self._is_watched = True
                self._table.watch(self)
        elif self._is_watched:
            self._is_watched = False
            self._table.unwatch(self)
        if self._is_large and not protocol.is_large and self._pending is None:
            self._is_large = False
            self._budget.ended_large(self)

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
            # Requests after a wait that was given up are still served.
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

    # --- disconnects during pending responses ---

    def _look_for_end(self) -> None:
        """Check without reading whether the peer has disconnected."""
        try:
            is_end = self._transport.is_at_end()
        except OSError as fault:
            self._lost(fault)
            return
        if is_end:
            self._note_end()
            if self._pending is None and not self.protocol.held_bytes:
                self.end()
        elif self._poller is not None:
            self._watches_end = True
            self._poller.add_ender(self._descriptor, self._on_peer_end)

    def _on_peer_end(self) -> None:
        self._watches_end = False
        failed = self._transport.fault()
        if failed is not None:
            self._lost(failed)
        else:
            self._note_end()

    def _note_end(self) -> None:
        self.session.end()
        if isinstance(self._pending, DeferredResponse):
            self._pending.give_up_soon()

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

    def _on_sent(self) -> None:
        self.activity += 1
        late = self._late_send
        if late is not None and not self._queue.unsent_bytes:
            self._late_send = None
            late.ended()
        if self.session.pauses:
            self._go_on(OUTPUT_IS_UNSENT)

    def throttle(self, delay_s: float) -> None:
        """Stop serving for a while, because a quota is exceeded; the longest throttle counts."""
        end_s = self._loop.time() + delay_s
        if self._throttle is not None:
            if self._throttle.when() >= end_s:
                return
            self._throttle.cancel()
        self.session.pauses |= THROTTLED
        self._throttle = self._loop.call_at(end_s, self._on_throttle_end)

    def _on_throttle_end(self) -> None:
        self._throttle = None
        self._go_on(THROTTLED)

    def _on_send_error(self, error: OSError) -> None:
        self._lost(error)

    def _wait_for_memory(self) -> None:
        self.session.pauses |= MEMORY_IS_SHORT
        self._is_reading = False
        self._sockets.remove_reader(self._descriptor)
        self.protocol.pause(self._monotonic())
        self._budget.wait(self)

    def memory_is_free(self) -> None:
        """See Holder."""
        if not self._is_closed:
            self.protocol.resume(self._monotonic())
            self._go_on(MEMORY_IS_SHORT)

    @property
    def is_busy(self) -> bool:
        """Whether a request is being served."""
        return self._pending is not None

    # --- the end ---

    def _on_end(self) -> None:
        if self.protocol.held_bytes:
            say_cut_short(self.session, self.protocol.describe_partial())
        self.end()

    def end(self) -> None:
        """Close after the pending response is sent."""
        self.session.pauses |= ENDING
        self._queue.release()
        if not self._is_closed and self._pending is None and not self._queue.unsent_bytes:
            self.close()

    def close(self) -> None:
        """Close immediately. A request that changes something continues."""
        if self._is_closed:
            return
        self._is_closed = True
        self.session.pauses |= ENDING
        if self._throttle is not None:
            self._throttle.cancel()
        if self._is_reading:
            self._is_reading = False
            self._sockets.remove_reader(self._descriptor)
        if self._watches_end and self._poller is not None:
            self._poller.remove_ender(self._descriptor)
        self._queue.close()
        self._transport.close()
        self.session.mute = no_mute  # avoids a reference cycle
        self._note_end()
        if self._charged_bytes:
            self._budget.add(-self._charged_bytes)
            self._charged_bytes = 0
        if self._is_large:
            self._budget.ended_large(self)
        self._table.closed(self)

    def _refuse(self, error: Exception) -> None:
        if not self._is_closed or isinstance(error, HandlerFailedError):
            log_refused(self.session, error)
        without_frames(error)
        self.close()

    def _lost(self, error: OSError) -> None:
        if isinstance(error, SliceError) and error.is_disk_failure:
            self._table.on_disk_failure(error.path, error)
        say_lost(self.session, error)
        self.close()
        without_frames(error)

    def close_because(self, reason: str) -> None:
        """Close and log the reason."""
        say_closed(self.session, reason)
        self.close()
