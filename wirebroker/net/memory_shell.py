"""A connection without a socket, for tests and simulation: the same protocol and dispatch.

    shell = MemoryConnection(dispatcher)
    answers = await shell.exchange(frame)        # bytes of one or more requests, cut anywhere

File slices are read at once; errors that would close the connection are raised to the caller.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from wirebroker.net.dispatch import Pending
from wirebroker.net.protocol import Protocol
from wirebroker.net.receive_area import ReceiveArea
from wirebroker.session import Session

if TYPE_CHECKING:
    from wirebroker.codecs.primitives import Buffer
    from wirebroker.net.dispatch import Dispatcher
    from wirebroker.request import Piece

# A simulation has no frame deadlines unless it looks at `protocol` itself.
_NEVER_S = 1e9


class MemoryConnection:
    """One client's connection in memory.

    Attributes:
        protocol: Its framing.
        session: What handlers are told about it.
    """

    __slots__ = ("_dispatch", "protocol", "session")

    def __init__(
        self,
        dispatch: Dispatcher,
        *,
        area: ReceiveArea | None = None,
        request_max_bytes: int = 104_857_600,
        listener_name: str = "PLAINTEXT",
    ) -> None:
        self._dispatch = dispatch
        self.protocol = Protocol(
            area or ReceiveArea(), request_max_bytes=request_max_bytes, deadline_s=_NEVER_S
        )
        self.session = Session(
            connection_id="memory:0-memory:0-0",
            peer="memory:0",
            listener_name=listener_name,
            local_host="memory",
            local_port=9092,
        )

    async def exchange(self, data: Buffer) -> bytes:
        """Receive bytes and return all answers to the requests that they complete.

        Raises:
            MalformedFrameError, CloseConnectionError, HandlerFailedError: The connection would be
                closed.
        """
        answers: list[bytes] = []
        rest = memoryview(data)
        while rest:
            buffer = self.protocol.get_buffer()
            count = min(len(buffer), len(rest))
            buffer[:count] = rest[:count]
            rest = rest[count:]
            self.protocol.buffer_updated(count)
            while (frame := self.protocol.next_frame()) is not None:
                answer = self._dispatch(frame, self.session)
                if isinstance(answer, Pending):
                    self.protocol.hold()
                    future = asyncio.ensure_future(answer.awaitable)
                    await asyncio.wait([future])
                    answer = answer.complete(future)
                answers.extend(_read(piece) for piece in answer or ())
            self.protocol.hold()
        return b"".join(answers)


def _read(piece: Piece) -> bytes:
    if isinstance(piece, bytes | bytearray | memoryview):
        return bytes(piece)
    return piece.read()
