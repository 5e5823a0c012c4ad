"""The effect of a fault on one request."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from wirebroker.base.clock import pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.messages import (
    decode_request,
    decode_response,
    encode_response,
    response_message,
)
from wirebroker.request.request import CloseConnectionError
from wirebroker.storage.files import FileSlice
from wirebroker.testing.faults.refusals import is_reported_at_top, refusal_of, refuse_metadata
from wirebroker.testing.requests.named_topics import names_topic

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from wirebroker.request.handlers import Handler
    from wirebroker.request.request import Piece, Request
    from wirebroker.testing.faults.fault_table import Fault, FaultTable


class Disturbance:
    """A request that faults may disturb."""

    def __init__(self, broker: Any, request: Request, handler: Handler) -> None:
        self._broker = broker
        self._request = request
        self._handler = handler
        self._body: Any = None

    def names(self, topic: str) -> bool:
        """Return whether the request names a topic, by name or id."""
        topic_image = self._broker.metadata.image.topics.get(topic)
        topic_id = None if topic_image is None else topic_image.topic_id
        return names_topic(self._decoded(), topic, topic_id)

    def _has_fetch_session(self) -> bool:
        """Return whether a Fetch may omit partitions (KIP-227)."""
        return self._request.key == ApiKey.FETCH and self._decoded().session_id != 0

    def needs_names(self, fault: Fault) -> bool:
        """Return whether a fault acts on topics that the request may omit."""
        if not self._has_fetch_session():
            return False
        if fault.topic is not None:
            return True
        request, error = self._request, fault.error
        return error is not None and not is_reported_at_top(request.key, request.version, error)

    def without_session(self) -> list[Piece]:
        """Return the error after which a client names all partitions."""
        code = int(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        request = self._request
        return [encode_response(request.key, request.version, {"error_code": code})]

    def by(self, fault: Fault, faults: FaultTable) -> list[Piece] | Awaitable[Any]:
        """Apply a fault and return the response, or raise CloseConnectionError."""
        request = self._request
        reason = f"a test has set a fault for {request.key.name} ({fault.kind})"
        if fault.kind == "disconnect" and fault.when == "before_append":
            raise CloseConnectionError(reason)
        if fault.kind == "error" and request.key != ApiKey.METADATA:
            assert fault.error is not None
            if request.key == ApiKey.PRODUCE and self._decoded().acks == 0:
                raise CloseConnectionError(reason)  # acks=0 has no response
            body = refusal_of(request.key, request.version, self._decoded(), fault.error)
            return [body]
        request.keep()
        if fault.kind == "disconnect":
            return self._cut_off(reason)
        if fault.kind == "blackhole":
            return self._blackhole(faults, reason)
        if fault.kind == "delay":
            return self._later(fault.delay_ms / 1000)
        return self._changed(fault)

    async def served(self) -> list[Piece] | None:
        """Handle the request as net/dispatch.py does."""
        request, function = self._request, self._handler.function
        if self._handler.is_raw:
            outcome: Any = function(self._broker, request)
            pieces: list[Piece] | None = await outcome if hasattr(outcome, "__await__") else outcome
            return pieces
        outcome = function(self._broker, request, self._decoded())
        if hasattr(outcome, "__await__"):
            outcome = await outcome
        return [encode_response(request.key, request.version, outcome)]

    async def _cut_off(self, reason: str) -> None:
        await self.served()
        raise CloseConnectionError(reason)

    async def _later(self, seconds: float) -> list[Piece] | None:
        await pause(seconds)
        return await self.served()

    def _blackhole(self, faults: FaultTable, reason: str) -> asyncio.Future[Any]:
        never: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def end() -> None:
            if not never.done():
                never.set_exception(CloseConnectionError(reason))

        faults.when_removed(end)
        never.add_done_callback(lambda _: faults.forget(end))
        self._request.session.when_ended(never.cancel)
        return never

    async def _changed(self, fault: Fault) -> list[Piece] | None:
        pieces = await self.served()
        if pieces is None:
            return None
        request = self._request
        data = b"".join(
            piece.read() if isinstance(piece, FileSlice) else bytes(piece) for piece in pieces
        )
        answer = decode_response(request.key, request.version, data)
        if fault.kind == "throttle":
            if "throttle_time_ms" in response_message(request.key).struct_class.FIELD_NAMES:
                answer.throttle_time_ms = fault.delay_ms
        else:
            assert fault.error is not None
            refuse_metadata(request.version, answer, fault.error)
        return [encode_response(request.key, request.version, answer)]

    def _decoded(self) -> Any:
        if self._body is None:
            request = self._request
            self._body = decode_request(
                request.key, request.version, request.frame, request.position
            )
        return self._body
