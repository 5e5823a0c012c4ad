"""One connection: receives into the shared area, serves one request at a time, sends the answers.

    readable -> receive -> protocol cuts frames -> dispatch -> answer -> send
                                                        |
                                                     Pending: the connection is paused until it is
                                                     answered; what came behind it is held

Small answers to requests that arrived together leave together: those to one connection's in one
piece (`_serve_several`), those to several connections' one after the other (`SendQueue.send_soon`).

The next request is served when the answer to the last is queued, unless much of it is unsent (then
when that has left). Pausing costs nothing: the reader stays registered, and leaves the loop only
if the socket becomes readable meanwhile. What is in the way stands in `Session.pauses`, a bit each:
a pending answer, unsent output, the end of the turn (2 ms of pipelined requests), the memory
budget, a quota's throttle. Who takes the last of them away has the next one served (`_go_on`).

A peer that ends while its request waits is noticed: the socket becomes readable, and a look says
that it is the end. Behind requests that nobody has read yet the kernel tells of it (`add_ender`).

This is the hot path, flat on purpose: with poller, framing and queue a small request costs 1.5 us
more than what Python's own poll, receive and send cost with the kernel's part (5.5 to 7.5 us).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from wirebroker.base.request_meters import LateSend
from wirebroker.codecs.errors import MalformedFrameError, without_frames
from wirebroker.net.closing_lines import say_closed, say_cut_short, say_lost, say_refused
from wirebroker.net.dispatch import HandlerFailedError, Pending
from wirebroker.net.frames.protocol import SMALL_FRAME_BYTES, Protocol
from wirebroker.net.send_queue import HIGH_WATER_BYTES, MOST_HELD_BYTES, SendQueue
from wirebroker.net.slice_error import SliceError
from wirebroker.net.sockets.poller import Poller
from wirebroker.request.owed_answer import OwedAnswer
from wirebroker.request.request import CloseConnectionError
from wirebroker.request.session import (
    ANSWER_IS_DUE,
    ENDING,
    MEMORY_IS_SHORT,
    OUTPUT_IS_UNSENT,
    THROTTLED,
    TURN_IS_OVER,
    Session,
    nobody_mutes,
)

if TYPE_CHECKING:
    from wirebroker.net.connection_owner import Guard, Owner
    from wirebroker.net.sockets.transport import ConnectionTransport
    from wirebroker.request.request import Piece

# Pipelined requests of one connection are served this long before all others have their turn.
_TURN_S: Final = 0.002

# Their answers are joined up to this size: 100 small ones, and the peer has work while we serve on.
_JOINED_BYTES: Final = 8 << 10


class Connection:
    """A client's connection, from accept to close.

    Attributes:
        address: The peer's host, by which connections are counted.
        activity: Changes whenever bytes move.
        seen_activity: What it was at the last idle sweep (the sweep's note).
        quiet_since: When the sweep last saw it changed (likewise).
        session: What handlers may know of it, and what it waits for.
        protocol: Its framing.
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

    # ANSWER_IS_DUE is in session.pauses as long as _pending is not None; TURN_IS_OVER,
    # MEMORY_IS_SHORT and THROTTLED as long as the loop or the budget has a call scheduled.
    # _charged_bytes == what this connection has added to the budget.

    def __init__(
        self,
        table: Owner,
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
        # Another loop doesn't tell of an end behind what is unread.
        self._poller = self._sockets if isinstance(self._sockets, Poller) else None
        self._descriptor = transport.descriptor
        self._queue = SendQueue(
            old_pages=table.old_pages,
            transport=transport,
            on_progress=self._on_sent,
            on_error=self._on_send_error,
        )
        self._pending: Pending | OwedAnswer | None = None
        self._pending_bytes = 0
        self._charged_bytes = 0
        self._throttle: asyncio.TimerHandle | None = None
        self._is_reading = True
        self._is_closed = False
        self._is_large = False
        self._is_watched = False
        # A response that the socket did not take at once.
        self._late_send: LateSend | None = None
        # Whether the poller tells of an end behind what is unread.
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
        """Serve the frames at hand; `count` bytes have just arrived."""
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
        except Exception:  # a mistake of ours: told by the poller, and no answer is left out
            self.close()
            raise
        if protocol.hold() or self._charged_bytes or self._pending_bytes or self._is_watched:
            self._account(count)

    def _serve_last(self, count: int) -> None:
        """Serve what a peer has sent before its end: a request that only waits does not wait.

        So a peer that has left costs one turn, instead of three. Peers that connect, send a request
        and leave, again and again, would hold up those that connect after them.
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
        """End, if the peer has and nothing is unread; return whether that is so."""
        try:
            is_end = self._transport.is_at_end()
        except OSError as fault:
            self._lost(fault)
            return True
        if is_end:
            self._on_end()
        return is_end

    def _serve_several(self, first: memoryview) -> None:
        """Serve pipelined frames until something is in the way or the turn is over.

        Small answers leave together, since a send costs 5 us; but those to the first half leave
        when that is served, or the peer would have nothing to do meanwhile.
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
            # What was served before a frame that is none is answered.
            if small:
                queue.send([b"".join(small)])
                if queue.unsent_bytes > MOST_HELD_BYTES:
                    self._note_unsent()

    def _note_unsent(self) -> bool:
        """Measure how long the last response takes to leave; tell whether too much is unsent."""
        meter = self.session.last_meter
        if self._late_send is None and meter is not None:
            self._late_send = LateSend(meter, meter.stopwatch())
        if self._queue.unsent_bytes <= HIGH_WATER_BYTES:
            return False
        self.session.pauses |= OUTPUT_IS_UNSENT
        return True

    def _account(self, count: int) -> None:
        """Count the bytes that are held, and watch the deadline of a frame that is arriving."""
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

    # --- answers that come later ---

    def _wait_for_answer(self, pending: Pending | OwedAnswer, frame: memoryview) -> None:
        session = self.session
        session.pauses |= ANSWER_IS_DUE
        self._pending = pending
        if isinstance(pending, OwedAnswer):
            pending.wait(session, self._on_owed)
            if session.has_ended:
                pending.give_up_soon()
            return
        if len(frame) > SMALL_FRAME_BYTES:
            self._pending_bytes = len(frame)
        # A task only for a coroutine: a handler that waits for one thing returns a future.
        answer = asyncio.ensure_future(pending.awaitable, loop=self._loop)
        answer.add_done_callback(self._on_answer)
        if pending.ends_with_peer:
            # After its first step: cancelled before, it would leave coroutines that were created
            # for it and never awaited, and Python warns of each.
            session.when_ended(lambda: self._loop.call_soon(answer.cancel))

    def _on_answer(self, future: asyncio.Future[object]) -> None:
        pending, self._pending = self._pending, None
        assert isinstance(pending, Pending)
        self._pending_bytes = 0
        session = self.session
        session.answered()
        try:
            # A wait that was given up with its peer has no answer; what came behind it counts.
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

    def _on_owed(self, owed: OwedAnswer) -> None:
        """Send what was ready all the time, and go on."""
        self._pending = None
        # Who does not wait for the answer is charged all the same.
        answer: list[Piece] = [owed.answer]
        if owed.settle is not None:
            answer = owed.settle(answer) or answer
        meter = owed.meter
        if meter is not None:
            received_s, began_s, returned_s = owed.times
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

    # --- a peer that ends while it is waited for ---

    def _look_for_end(self) -> None:
        """Say whether the peer has sent its end, or more requests, while none is read."""
        try:
            is_end = self._transport.is_at_end()
        except OSError as fault:
            self._lost(fault)
            return
        if is_end:
            self._note_end()
            if self._pending is None and not self.protocol.held_bytes:  # throttled for nothing
                self.end()
        elif self._poller is not None:
            self._watches_end = True
            self._poller.add_ender(self._descriptor, self._on_peer_end)

    def _on_peer_end(self) -> None:
        """Give up what only waits; what the peer has sent before is still served."""
        self._watches_end = False
        failed = self._transport.fault()
        if failed is not None:
            self._lost(failed)
        else:
            self._note_end()

    def _note_end(self) -> None:
        """Have nothing wait any longer than it must: nobody may be there to hear of it."""
        self.session.end()
        if isinstance(self._pending, OwedAnswer):
            self._pending.give_up_soon()

    # --- pausing ---

    def _go_on(self, pause: int) -> None:
        """Take a pause away, and go on with the next request if nothing else is in the way."""
        session = self.session
        session.pauses &= ~pause
        session.received_s = 0.0
        if self._queue.unsent_bytes > HIGH_WATER_BYTES:
            session.pauses |= OUTPUT_IS_UNSENT
        if session.pauses:
            if session.pauses & ENDING and self._pending is None and not self._queue.unsent_bytes:
                self.close()
            elif session.pauses == THROTTLED and session.has_ended and not self._is_reading:
                self._look_for_end()  # its end was seen while its request waited
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
        """Serve no further request for so long: a quota is exceeded. What is unread stays there.

        Of several that overlap the one that ends last counts.
        """
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
        """Go on receiving (scheduled by the budget)."""
        if not self._is_closed:
            self.protocol.resume(self._monotonic())
            self._go_on(MEMORY_IS_SHORT)

    @property
    def is_busy(self) -> bool:
        """Whether a request is being served: such a connection is not idle, nor is it closed."""
        return self._pending is not None

    # --- the end ---

    def _on_end(self) -> None:
        """The peer sends no more; what it is owed is still sent."""
        if self.protocol.held_bytes:
            say_cut_short(self.session, self.protocol.describe_partial())
        self.end()

    def end(self) -> None:
        """Close as soon as the request in flight is answered and the answer has left."""
        self.session.pauses |= ENDING
        self._queue.release()
        if not self._is_closed and self._pending is None and not self._queue.unsent_bytes:
            self.close()

    def close(self) -> None:
        """Close at once. A request in flight goes on unless it only waits; no answer is sent."""
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
        self.session.mute = nobody_mutes  # else each would hold the other
        self._note_end()
        if self._charged_bytes:
            self._budget.add(-self._charged_bytes)
            self._charged_bytes = 0
        if self._is_large:
            self._budget.ended_large(self)
        self._table.closed(self)

    def _refuse(self, error: Exception) -> None:
        """Close because of what the peer sent or what a handler did: exactly one line."""
        if not self._is_closed or isinstance(error, HandlerFailedError):
            say_refused(self.session, error)
        without_frames(error)
        self.close()

    def _lost(self, error: OSError) -> None:
        """Close because the socket failed, or the file that was to be sent."""
        if isinstance(error, SliceError) and error.is_disk_failure:
            self._table.on_disk_failure(error.path, error)
        say_lost(self.session, error)
        self.close()
        without_frames(error)

    def close_because(self, reason: str) -> None:
        """Close with one line (idle, late, too many)."""
        say_closed(self.session, reason)
        self.close()
