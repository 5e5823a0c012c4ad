"""A client of a dispatcher over an in-memory connection, which reports why it was closed.

line = DispatchLine(dispatcher)
responses = await line.exchange(frames)    # whole requests; their responses, concatenated
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from wirebroker.base.clock import SystemClock
from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.net.connection_table import ConnectionTable
from wirebroker.net.memory_transport import MemoryTransport
from wirebroker.net.pending import HandlerFailedError, Pending
from wirebroker.net.settings import NetworkSettings
from wirebroker.request.request import CloseConnectionError

if TYPE_CHECKING:
    from wirebroker.net.connection import Connection
    from wirebroker.net.connection_owner import Dispatch
    from wirebroker.net.dispatch import Served
    from wirebroker.request.session import Session

# The errors of a request or a handler that close a connection.
CLOSING = (MalformedFrameError, CloseConnectionError, HandlerFailedError)


class DispatchLine:
    """One client of a dispatcher, on the running loop.

    Attributes:
        connection: The broker's side.
        budget: The memory budget that limits its requests.
    """

    def __init__(self, dispatch: Dispatch) -> None:
        self._serve = dispatch
        self._table = ConnectionTable(
            loop=asyncio.get_running_loop(),
            dispatch=self._dispatch,
            clock=SystemClock(),
            settings=NetworkSettings(),
        )
        self.budget = self._table.budget
        self._transport: MemoryTransport
        self.connection: Connection
        self.connect()

    def connect(self) -> None:
        if len(self._table):
            self.connection.close()
        self._closed_for: Exception | None = None
        self._answers = bytearray()
        # How many requests ended without a response.
        self._done_count = 0
        self._changed = asyncio.Event()
        self._transport = MemoryTransport(self._table.loop, self._changed.set)
        self.connection = self._table.adopt(
            self._transport,
            remote=("memory", 0),
            local=("memory", 9092),
            listener_name="PLAINTEXT",
        )

    async def exchange(self, frames: bytes) -> bytes:
        """Send requests and return all their responses.

        Raises:
            MalformedFrameError, CloseConnectionError, HandlerFailedError: It closed the connection.
            ConnectionError: Something else closed it.
        """
        self._done_count = 0
        self._transport.incoming += frames
        self._transport.changed()
        count = len(_sizes(frames))
        while True:
            self._answers += self._transport.take()
            if self._transport.is_closed:
                raise self._closed_for or ConnectionError("the connection was closed")
            if self._done_count + len(_sizes(self._answers)) >= count:
                answers, self._answers = bytes(self._answers), bytearray()
                return answers
            self._changed.clear()
            await self._changed.wait()

    def _dispatch(self, frame: memoryview, session: Session) -> Served:
        try:
            answer = self._serve(frame, session)
        except CLOSING as error:
            self._closed_for = error
            raise
        if isinstance(answer, Pending):
            answer.awaitable = future = asyncio.ensure_future(answer.awaitable)
            future.add_done_callback(lambda _: self._note_end(answer, future))
        elif answer is None:
            self._note_unanswered()
        return answer

    def _note_end(self, pending: Pending, future: asyncio.Future[object]) -> None:
        try:
            if pending.complete(future) is None:
                self._note_unanswered()
        except CLOSING as error:
            self._closed_for = error

    def _note_unanswered(self) -> None:
        self._done_count += 1
        self._changed.set()


def _sizes(data: bytes | bytearray) -> list[int]:
    sizes: list[int] = []
    start = 0
    while len(data) >= start + 4:
        size = 4 + int.from_bytes(data[start : start + 4])
        if len(data) < start + size:
            break
        sizes.append(size)
        start += size
    return sizes
