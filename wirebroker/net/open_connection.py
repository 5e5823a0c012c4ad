"""The state of a client connection, the reasons why it pauses, and its end.

    memory      the bytes of its frames in the budget of all connections, and waits for the budget
    output      unsent responses, and the time that sending the last one takes
    throttle    the pause that a quota demands
    end         a disconnect of the peer, even while a response is pending; the close

`Session.pauses` has a bit for each reason to serve no further request. Requests are served in
connection.py.

A disconnect during a pending request makes the socket readable; if there are unread requests, the
poller reports it (`add_ender`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.base.request_meters import LateSend
from wirebroker.codecs.errors import without_frames
from wirebroker.net.closing_lines import log_refused, say_closed, say_cut_short, say_lost
from wirebroker.net.frames.protocol import Protocol
from wirebroker.net.pending import HandlerFailedError, Pending
from wirebroker.net.send_queue import HIGH_WATER_BYTES, SendQueue
from wirebroker.net.slice_error import SliceError
from wirebroker.net.sockets.poller import Poller
from wirebroker.request.deferred_response import DeferredResponse
from wirebroker.request.session import (
    ENDING,
    MEMORY_IS_SHORT,
    OUTPUT_IS_UNSENT,
    THROTTLED,
    Session,
    no_mute,
)

if TYPE_CHECKING:
    import asyncio

    from wirebroker.net.connection_owner import Guard, Owner
    from wirebroker.net.sockets.transport import ConnectionTransport


class OpenConnection:
    """The state of a connection, from accept to close.

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
        table: Owner[OpenConnection],
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
        # Only this poller reports a disconnect that follows unread bytes.
        self._poller = self._sockets if isinstance(self._sockets, Poller) else None
        self._descriptor = transport.descriptor
        self._queue = SendQueue(
            old_pages=table.old_pages,
            transport=transport,
            on_progress=self._on_sent,
            on_error=self._lost,
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
        # The poller will report a disconnect that follows unread bytes.
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

    def _on_readable(self) -> None:
        """Receive and serve, or stop reading while the connection is paused."""
        raise NotImplementedError

    def _go_on(self, pause: int) -> None:
        """Clear a reason to pause; continue after the last one."""
        raise NotImplementedError

    # --- memory ---

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

    # --- output ---

    def _note_unsent(self) -> bool:
        """Measure the last response's send time; return whether too much is unsent."""
        meter = self.session.last_meter
        if self._late_send is None and meter is not None:
            self._late_send = LateSend(meter, meter.stopwatch())
        if self._queue.unsent_bytes <= HIGH_WATER_BYTES:
            return False
        self.session.pauses |= OUTPUT_IS_UNSENT
        return True

    def _on_sent(self) -> None:
        self.activity += 1
        late = self._late_send
        if late is not None and not self._queue.unsent_bytes:
            self._late_send = None
            late.ended()
        if self.session.pauses:
            self._go_on(OUTPUT_IS_UNSENT)

    # --- throttle ---

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

    # --- the peer's end ---

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

    def _end_if_all_is_read(self) -> bool:
        """Close if the peer has disconnected and nothing is unread; return whether it closed."""
        try:
            is_end = self._transport.is_at_end()
        except OSError as fault:
            self._lost(fault)
            return True
        if is_end:
            self._on_end()
        return is_end

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
