"""A connection of uvicorn that ends if its client does not send requests or read responses.

Connections are few, and uvicorn waits forever for the head of a request, and for a client that
reads: connections that send nothing, or a byte now and then, would keep others out.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

from wirebroker.console.web.stream_limit import stream_kind

if TYPE_CHECKING:
    import asyncio

    from uvicorn.protocols.http.h11_impl import RequestResponseCycle

HEAD_TIMEOUT_S: Final = 20.0
_UNREAD_CHECKS: Final = 3
# A client must read as much in these checks.
_LEAST_READ_BYTES: Final = 16 << 10
# Checks within which the client must have read the rest of a complete response: one hour.
_MOST_FLUSH_CHECKS: Final = 180


class HttpConnection(H11Protocol):
    """A connection that is checked periodically.

    It is closed if it has been without a new request for the whole time between two checks, and
    its client has read the response. It is aborted if its client reads less than 16 KiB of a
    response in three checks, or if it is still open at the next check after it was closed; with
    unread data, an hour after the response is complete. Connections above the limit are aborted at
    once. Over TLS they count from the end of the handshake, which asyncio ends after a minute.
    """

    _check: asyncio.TimerHandle | None = None
    _checked_cycle: Any = None
    _is_paused = False
    _was_closing = False
    # At the first of the checks in which the client has read too little.
    _unread_bytes: int | None = None
    _unread_checks = 0
    _flush_checks = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See asyncio.Protocol."""
        super().connection_made(transport)
        if self.limit_concurrency is not None and len(self.connections) > self.limit_concurrency:
            transport.abort()
            return
        self._check_later()

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol."""
        if self._check is not None:
            self._check.cancel()
            self._check = None
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Close at the end of the server, a stream as if its client had left.

        Not again: over TLS that fails.
        """
        if self.transport.is_closing():
            return
        cycle = cast("RequestResponseCycle | None", self.cycle)
        if cycle is not None and not cycle.response_complete and stream_kind(cycle.scope):
            self.transport.close()
        else:
            super().shutdown()

    def pause_writing(self) -> None:
        """See asyncio.Protocol."""
        self._is_paused = True
        super().pause_writing()

    def resume_writing(self) -> None:
        """See asyncio.Protocol."""
        self._is_paused = False
        self._unread_bytes = None
        super().resume_writing()

    def _check_later(self) -> None:
        self._check = self.loop.call_later(HEAD_TIMEOUT_S, self._end_if_stalled)

    def _end_if_stalled(self) -> None:
        self._check_later()
        is_closing = self.transport.is_closing()
        # None before the first request, although uvicorn's annotation does not say so.
        cycle = cast("RequestResponseCycle | None", self.cycle)
        is_between_requests = cycle is None or cycle.response_complete
        is_flushing = bool(self._unsent_bytes()) and (is_closing or is_between_requests)
        self._flush_checks = self._flush_checks + 1 if is_flushing else 0
        if self._is_paused or is_flushing:
            is_stalled = self._is_unread() or self._flush_checks > _MOST_FLUSH_CHECKS
        else:
            self._unread_bytes = None
            is_stalled = self._was_closing
        if is_stalled:
            self.transport.abort()
            return
        self._was_closing = is_closing
        # Over TLS, closing again fails, and closing early cuts the response after a timeout.
        may_close = not is_closing and not is_flushing
        if may_close and is_between_requests and cycle is self._checked_cycle:
            self._was_closing = True
            self.transport.close()
        self._checked_cycle = cycle

    def _is_unread(self) -> bool:
        """Return whether the client has read too little in some checks.

        Nothing more is written meanwhile, so the number of unread bytes shrinks if the client
        reads. The client's system announces reads late, in parts of up to half of its buffer.
        """
        unread = self._unsent_bytes() + self._queued_by_system()
        first = self._unread_bytes
        if first is None or unread == 0 or unread <= first - _LEAST_READ_BYTES:
            self._unread_checks, self._unread_bytes = 0, unread
        else:
            self._unread_checks += 1
        return self._unread_checks >= _UNREAD_CHECKS

    def _unsent_bytes(self) -> int:
        """Return how many bytes wait in this process; with TLS also below it, encrypted."""
        unsent = self.transport.get_write_buffer_size()
        tls = getattr(self.transport, "_ssl_protocol", None)
        below = getattr(tls, "_transport", None)
        return unsent if below is None else unsent + int(below.get_write_buffer_size())

    def _queued_by_system(self) -> int:
        """Return how many sent bytes the client's system has not acknowledged (Linux)."""
        if sys.platform == "win32":
            return 0
        import fcntl  # noqa: PLC0415 - Windows has neither
        import termios  # noqa: PLC0415

        sock = self.transport.get_extra_info("socket")
        try:
            queued = fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, bytes(4))
        except OSError:  # closed meanwhile, or another system
            return 0
        return int.from_bytes(queued, sys.byteorder)
