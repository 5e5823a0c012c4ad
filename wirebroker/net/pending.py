"""A version of a handler in the dispatcher's table, and its pending responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.base.request_meters import FETCH_NAMES
from wirebroker.base.text import camel_case
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.codecs.frames import response_header
from wirebroker.net.frames.protocol import frame_answer
from wirebroker.request.handlers import Cost
from wirebroker.request.request import CloseConnectionError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable

    from wirebroker.base.request_meters import RequestMeters
    from wirebroker.quotas.client_quotas import Charge
    from wirebroker.request.handlers import Handler
    from wirebroker.request.request import Piece
    from wirebroker.request.session import Session


class HandlerFailedError(Exception):
    """A handler raised an unexpected exception, which is the cause."""


class HandlerEntry:
    """One version of a handler, and its statistics."""

    __slots__ = (
        "follower_meter",
        "function",
        "handler",
        "is_flexible",
        "is_raw",
        "key",
        "meter",
        "repeat",
        "request_count",
        "version",
    )

    def __init__(self, version: int, handler: Handler, meters: RequestMeters) -> None:
        self.key = handler.key
        self.version = version
        self.handler = handler
        # Copied, because attribute access is faster than a tuple's.
        self.function = handler.function
        self.repeat = handler.repeat
        self.is_raw = handler.is_raw
        # The response's header has tagged fields.
        self.is_flexible = len(response_header(handler.key, version, 0)) > 4
        self.request_count = 0
        if handler.key is ApiKey.FETCH:
            self.meter, self.follower_meter = map(meters.meter, FETCH_NAMES)
        else:
            self.meter = self.follower_meter = meters.meter(camel_case(handler.key.name))


class Pending:
    """A request whose response comes later, canceled with its peer if `ends_with_peer`."""

    __slots__ = (
        "_began_s",
        "_charge",
        "_correlation_id",
        "_entry",
        "_is_whole",
        "_received_s",
        "_returned_s",
        "awaitable",
        "ends_with_peer",
        "meter",
    )

    def __init__(
        self,
        entry: HandlerEntry,
        correlation_id: int,
        awaitable: Awaitable[Any],
        *,
        is_whole: bool = False,
        ends_with_peer: bool = False,
    ) -> None:
        self._entry = entry
        self._correlation_id = correlation_id
        self.awaitable = awaitable
        self._is_whole = is_whole
        self.ends_with_peer = ends_with_peer or entry.handler.cost is Cost.READS
        self._charge: Charge | None = None
        self.meter = entry.meter
        self._received_s = self._began_s = self._returned_s = 0.0

    def measure(self, session: Session, began_s: float) -> None:
        """Measure from the handler's return to the response."""
        entry = self._entry
        self.meter = entry.follower_meter if session.is_follower else entry.meter
        self._received_s = session.received_s
        self._began_s = began_s
        self._returned_s = self.meter.stopwatch()

    def charge(self, charge: Charge) -> None:
        """Settle a charge with the response."""
        self._charge = charge
        self.awaitable = charge.wait(self.awaitable)

    def complete(self, future: asyncio.Future[Any]) -> list[Piece] | None:
        """Return the response when the future of `awaitable` is done.

        Raises:
            MalformedFrameError, CloseConnectionError, HandlerFailedError: As for `Dispatcher`.
        """
        entry = self._entry
        if future.cancelled():
            raise CloseConnectionError(f"{entry.key.name} was cancelled")
        error = future.exception()
        if isinstance(error, MalformedFrameError | CloseConnectionError):
            raise error
        if error is not None:
            raise handler_failed(entry, error) from error
        body = future.result()
        if self._returned_s:
            self.meter.served_later(self._received_s, self._began_s, self._returned_s)
        answer: list[Piece] | None = None
        if self._is_whole:
            answer = body
        elif body is not None:
            answer = frame_answer(self._correlation_id, body, is_flexible=entry.is_flexible)
        return answer if self._charge is None else self._charge.settle(answer)


def handler_failed(entry: HandlerEntry, cause: BaseException) -> HandlerFailedError:
    """Return the error for an exception that escaped a handler."""
    failed = HandlerFailedError(f"{entry.key.name} version {entry.version} failed")
    failed.__cause__ = cause  # `raise … from` fails when compiled: compiling/README.md
    return failed
