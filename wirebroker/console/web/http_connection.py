"""A connection of uvicorn that ends if its requests do not arrive.

Connections are few, and uvicorn waits forever for the head of a request: connections that send
nothing, or a byte now and then, would keep others out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

HEAD_TIMEOUT_S: Final = 20.0


class HttpConnection(H11Protocol):
    """Closes when it has been without a new request for the whole time between two checks."""

    _check: asyncio.TimerHandle | None = None
    _checked_cycle: Any = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See asyncio.Protocol."""
        super().connection_made(transport)
        self._check_later()

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol."""
        if self._check is not None:
            self._check.cancel()
            self._check = None
        super().connection_lost(exc)

    def _check_later(self) -> None:
        self._check = self.loop.call_later(HEAD_TIMEOUT_S, self._close_if_silent)

    def _close_if_silent(self) -> None:
        is_between_requests = self.cycle is None or self.cycle.response_complete
        if is_between_requests and self.cycle is self._checked_cycle:
            self.transport.close()
            return
        self._checked_cycle = self.cycle
        self._check_later()
