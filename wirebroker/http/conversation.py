"""One HTTP connection: sequential requests, limited in size and time. The only import of h11.

Source: RFC 9112.
"""

from __future__ import annotations

import asyncio
import logging
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import h11

from wirebroker.base.clock import next_turn
from wirebroker.http.message import HttpAnswer, HttpError, HttpRequest, read_target

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

logger = logging.getLogger("wirebroker.http")

# Scrapers send some 300 bytes, browsers some KB.
_MOST_HEAD_BYTES: Final = 16 << 10
_MOST_BODY_BYTES: Final = 1 << 20
# Small, because h11 does not limit a head that arrives whole in one read.
_READ_BYTES: Final = 4 << 10
# Body chunks per turn of the loop: about 1 ms.
_CHUNKS_AT_ONCE: Final = 64
# Includes idle time: scrapers send a request every 15 s to 60 s.
_REQUEST_S: Final = 90.0
# A probe's request arrives within this time.
_NEW_S: Final = 0.25
_ANSWERING_S: Final = 60.0
_TAKING_S: Final = 30.0

_METHODS_SEEN: Final = {"HEAD": "GET"}


class HttpConversation:
    """The requests of one connection.

    Attributes:
        address: The peer's host.
        is_new: Whether its first request may still arrive or be served.
        is_answering: Whether a request is being served.
    """

    __slots__ = (
        "_answer_to",
        "_has_read",
        "_machine",
        "_on_known",
        "_reader",
        "_writer",
        "address",
        "is_answering",
        "is_new",
    )

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        answer_to: Callable[[HttpConversation, HttpRequest], Awaitable[HttpAnswer]],
        on_known: Callable[[HttpConversation], None],
    ) -> None:
        """Take over a connection's streams.

        `answer_to` returns the response and sets `is_answering` meanwhile; it may raise HttpError.
        `on_known` is called once, when the connection is no longer new.
        """
        self._reader = reader
        self._writer = writer
        self._answer_to = answer_to
        self._on_known = on_known
        self._has_read = False
        peer: tuple[str, int] | None = writer.get_extra_info("peername")
        self.address = "" if peer is None else peer[0]
        self.is_new = True
        self.is_answering = False
        # drain() then waits for the kernel.
        writer.transport.set_write_buffer_limits(0)
        self._machine = h11.Connection(h11.SERVER, max_incomplete_event_size=_MOST_HEAD_BYTES)

    async def run(self) -> None:
        """Serve until the peer disconnects, breaks the protocol or is too slow.

        Raises:
            TimeoutError: The peer is too slow.
            ConnectionError: The connection is lost.
        """
        timer = asyncio.get_running_loop().call_later(_NEW_S, self.know)
        try:
            while await self._serve_one():
                self.know()
                # Reading buffered requests never waits, so a pipelining peer would hold the loop.
                await next_turn()
                self._machine.start_next_cycle()
        finally:
            timer.cancel()

    def know(self) -> None:
        """Count the connection toward the limit."""
        if self.is_new:
            self.is_new = False
            self._on_known(self)

    def abort(self) -> None:
        """Close the connection and drop unsent data."""
        self._writer.transport.abort()

    async def _serve_one(self) -> bool:
        try:
            async with asyncio.timeout(_REQUEST_S):
                request = await self._next_request()
            if request is None:
                return False
            async with asyncio.timeout(_ANSWERING_S):
                answer = await self._answer_to(self, request)
        except HttpError as error:
            answer = HttpAnswer.of_text(str(error), error.status)._replace(headers=error.headers)
        except h11.RemoteProtocolError as error:
            answer = HttpAnswer.of_text(str(error), error.error_status_hint)
        if self._machine.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
            return False
        async with asyncio.timeout(_TAKING_S):
            await self._send(answer)
        return self._is_over()

    def _is_over(self) -> bool:
        return self._machine.our_state is h11.DONE and self._machine.their_state is h11.DONE

    async def _next_request(self) -> HttpRequest | None:
        """Read a whole request; return None if the peer has disconnected.

        Raises:
            HttpError: 400 for two body lengths; 413 for a long body.
        """
        head = await self._event()
        if not isinstance(head, h11.Request):
            return None
        names = {name for name, _ in head.headers}
        if {b"content-length", b"transfer-encoding"} <= names:
            raise HttpError(400, "Content-Length and Transfer-Encoding exclude each other")
        body = bytearray()
        chunks = 0
        while isinstance(event := await self._event(), h11.Data):
            body += event.data
            chunks += 1
            if chunks % _CHUNKS_AT_ONCE == 0:
                await next_turn()
            if len(body) > _MOST_BODY_BYTES:
                raise HttpError(413, f"the body exceeds {_MOST_BODY_BYTES} bytes")
        if not isinstance(event, h11.EndOfMessage):
            return None
        headers: dict[str, str] = {}
        for name, value in head.headers:
            headers.setdefault(name.decode("latin-1"), value.decode("latin-1"))
        path, fields = read_target(head.target.decode("latin-1"))
        method = head.method.decode("latin-1").upper()
        method = _METHODS_SEEN.get(method, method)
        return HttpRequest(method, path, fields, headers, bytes(body))

    async def _event(self) -> Any:
        while (event := self._machine.next_event()) is h11.NEED_DATA:
            if self._machine.they_are_waiting_for_100_continue:
                go_on = h11.InformationalResponse(status_code=100, headers=[])
                self._writer.write(self._machine.send(go_on) or b"")
            if self._has_read:
                self.know()
            self._machine.receive_data(await self._reader.read(_READ_BYTES))
            self._has_read = True
        return event

    async def _send(self, answer: HttpAnswer) -> None:
        headers = {
            "Content-Type": answer.content_type,
            "Content-Length": str(len(answer.body)),
            "Cache-Control": "no-store",
            **answer.headers,
        }
        reason = HTTPStatus(answer.status).phrase.encode()
        head = h11.Response(status_code=answer.status, headers=list(headers.items()), reason=reason)
        self._writer.write(self._machine.send(head) or b"")
        self._writer.write(self._machine.send(h11.Data(data=answer.body)) or b"")
        self._writer.write(self._machine.send(h11.EndOfMessage()) or b"")
        await self._writer.drain()
