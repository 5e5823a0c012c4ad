"""A connection of uvicorn that ends if its client does not send requests or read responses.

Connections are few, and uvicorn waits forever for the head of a request, and for a client that
reads: connections that send nothing, or a byte now and then, would keep others out.
"""

from __future__ import annotations

import fcntl
import sys
import termios
from typing import TYPE_CHECKING, Any, Final, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

    from uvicorn.protocols.http.h11_impl import RequestResponseCycle

HEAD_TIMEOUT_S: Final = 20.0
_UNREAD_CHECKS: Final = 3


class HttpConnection(H11Protocol):
    """A connection that is checked periodically.

    It is closed if it has been without a new request for the whole time between two checks. It is
    aborted if its client reads nothing of a response for three checks, or if it is still open at
    the next check after it was closed. Connections above the limit are aborted immediately. A TLS
    connection counts after its handshake, which asyncio limits to a minute.
    """

    _check: asyncio.TimerHandle | None = None
    _checked_cycle: Any = None
    _is_paused = False
    _was_closing = False
    # The unread bytes at the last check; None if no response was unread.
    _unread_bytes: int | None = None
    _unread_checks = 0

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
        if self._is_paused or (is_closing and self.transport.get_write_buffer_size()):
            is_stalled = self._is_unread()
        else:
            self._unread_bytes = None
            is_stalled = self._was_closing
        if is_stalled:
            self.transport.abort()
            return
        self._was_closing = is_closing
        # None before the first request, although uvicorn's annotation does not say so.
        cycle = cast("RequestResponseCycle | None", self.cycle)
        is_between_requests = cycle is None or cycle.response_complete
        if is_between_requests and cycle is self._checked_cycle:
            self._was_closing = True
            self.transport.close()
        self._checked_cycle = cycle

    def _is_unread(self) -> bool:
        """Return whether the client has read nothing for some checks.

        Nothing more is written meanwhile, so the number of unread bytes shrinks if the client
        reads. The client's system announces reads late, in parts of up to half of its buffer.
        """
        unread = self.transport.get_write_buffer_size() + self._queued_by_system()
        is_read = self._unread_bytes is None or unread < self._unread_bytes
        self._unread_checks = 0 if is_read else self._unread_checks + 1
        self._unread_bytes = unread
        return self._unread_checks >= _UNREAD_CHECKS

    def _queued_by_system(self) -> int:
        """Return how many sent bytes the client's system has not acknowledged (Linux)."""
        sock = self.transport.get_extra_info("socket")
        try:
            queued = fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, bytes(4))
        except OSError:  # closed meanwhile, or another system
            return 0
        return int.from_bytes(queued, sys.byteorder)
