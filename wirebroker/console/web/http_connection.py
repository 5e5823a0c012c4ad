"""A connection of uvicorn that ends if its client does not send requests or read responses.

Connections are few, and uvicorn waits forever for the head of a request, and for a client that
reads: connections that send nothing, or a byte now and then, would keep others out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

    from uvicorn.protocols.http.h11_impl import RequestResponseCycle

HEAD_TIMEOUT_S: Final = 20.0


class HttpConnection(H11Protocol):
    """A connection that is checked periodically.

    It is closed if it has been without a new request for the whole time between two checks. It is
    aborted if its client has read too little of a response for that time, or if it is still open
    that long after it was closed. Connections above the limit are aborted at once. Over TLS they
    count from the end of the handshake, which asyncio ends after a minute.
    """

    _check: asyncio.TimerHandle | None = None
    _checked_cycle: Any = None
    _paused_at: float | None = None
    _was_closing = False

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
        self._paused_at = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        """See asyncio.Protocol."""
        self._paused_at = None
        super().resume_writing()

    def _check_later(self) -> None:
        self._check = self.loop.call_later(HEAD_TIMEOUT_S, self._end_if_stalled)

    def _end_if_stalled(self) -> None:
        self._check_later()
        if self._was_closing or self._is_unread():
            self.transport.abort()
            return
        self._was_closing = self.transport.is_closing()
        # None before the first request, although uvicorn's annotation does not say so.
        cycle = cast("RequestResponseCycle | None", self.cycle)
        is_between_requests = cycle is None or cycle.response_complete
        if is_between_requests and cycle is self._checked_cycle:
            self._was_closing = True
            self.transport.close()
        self._checked_cycle = cycle

    def _is_unread(self) -> bool:
        return self._paused_at is not None and self.loop.time() - self._paused_at >= HEAD_TIMEOUT_S
