"""Requests of a connection that have no response yet, in order."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from wirebroker.codecs.client_frames import parse_response_header
from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.net.client.errors import PeerError, RequestTimedOutError

if TYPE_CHECKING:
    import asyncio

    from wirebroker.codecs.api_keys import ApiKey

_MAX_CORRELATION_ID: Final = 2**31 - 1


class _Request:
    __slots__ = ("correlation_id", "deadline", "key", "version", "waiter")

    def __init__(
        self,
        key: ApiKey,
        version: int,
        correlation_id: int,
        deadline: float,
        waiter: asyncio.Future[memoryview | PeerError],
    ) -> None:
        self.key = key
        self.version = version
        self.correlation_id = correlation_id
        self.deadline = deadline
        self.waiter = waiter


class RequestsInFlight:
    """Pending requests.

    Errors are results of the futures, not exceptions, which would be reported as never retrieved
    if the waiter is canceled at the same time.
    """

    __slots__ = ("_last_correlation_id", "_requests")

    # Correlation ids of _requests are consecutive and end with _last_correlation_id.

    def __init__(self) -> None:
        self._requests: deque[_Request] = deque()
        self._last_correlation_id = 0

    def __len__(self) -> int:
        return len(self._requests)

    def add(
        self,
        key: ApiKey,
        version: int,
        deadline: float,
        waiter: asyncio.Future[memoryview | PeerError],
    ) -> int:
        """Register a request; return its correlation id.

        `waiter` receives the response's body or an error.
        """
        self._last_correlation_id = (self._last_correlation_id + 1) & _MAX_CORRELATION_ID
        request = _Request(key, version, self._last_correlation_id, deadline, waiter)
        self._requests.append(request)
        return request.correlation_id

    def answer(self, frame: memoryview) -> None:
        """Deliver a response to its waiter.

        Raises:
            MalformedFrameError: It does not belong to the oldest request.
        """
        if not self._requests:
            raise MalformedFrameError("unexpected response: no request is in flight")
        request = self._requests[0]
        correlation_id, position = parse_response_header(request.key, request.version, frame)
        if correlation_id != request.correlation_id:
            raise MalformedFrameError(
                f"the response to {request.key.name} has correlation id {correlation_id}, not"
                f" {request.correlation_id}"
            )
        self._requests.popleft()
        if not request.waiter.done():
            request.waiter.set_result(frame[position:])

    def earliest_deadline(self) -> float | None:
        """Return the earliest deadline."""
        return min((request.deadline for request in self._requests), default=None)

    def time_out(self, now: float, peer: str) -> str | None:
        """Fail one request whose deadline has passed; return a description."""
        expired = next((request for request in self._requests if request.deadline <= now), None)
        if expired is None:
            return None
        reason = f"no response to {expired.key.name} before its deadline"
        if not expired.waiter.done():
            expired.waiter.set_result(RequestTimedOutError(peer, reason, may_have_arrived=True))
        return reason

    def end(self, error: PeerError) -> int:
        """Fail all requests; return their number."""
        requests, self._requests = self._requests, deque()
        for request in requests:
            if not request.waiter.done():
                # A new error for each waiter, because raising adds to its traceback.
                request.waiter.set_result(
                    type(error)(error.peer, error.what, may_have_arrived=error.may_have_arrived)
                )
        return len(requests)
