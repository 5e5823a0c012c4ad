"""A transport in memory, for tests: the real connection without sockets.

    peer = connect(table)                       # the client's side; the broker's is in the table
    answer = await peer.exchange(frame)

It is deterministic on any event loop. Readiness is level-triggered, and reported in the context
that registered the callback, by which a simulation distinguishes processes. Output is bounded, so
that a peer can be a slow reader.
"""

from __future__ import annotations

import asyncio
import contextvars
import itertools
from typing import TYPE_CHECKING, Final, Protocol

from wirebroker.net.sockets.transport import ConnectionTransport

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.net.connection_table import ConnectionTable
    from wirebroker.net.sockets.poller import Poller
    from wirebroker.storage.files import DataFile

# About as much as a socket accepts without a reader.
_ROOM_BYTES: Final = 256 << 10
_LENGTH_BYTES: Final = 4


class _Readiness:
    """Watches one memory transport as a poller watches a socket, ignoring the descriptor."""

    __slots__ = ("_context", "_is_told", "_loop", "_reader", "_transport", "_writer")

    def __init__(self, loop: asyncio.AbstractEventLoop, transport: MemoryTransport) -> None:
        self._loop = loop
        self._transport = transport
        self._context = contextvars.Context()
        self._is_told = False
        self._reader: Callable[[], None] | None = None
        self._writer: Callable[[], None] | None = None

    def add_reader(self, _fd: int, callback: Callable[[], None], /) -> None:
        """See Sockets."""
        self._reader = callback
        self._context = contextvars.copy_context()
        self.look()

    def remove_reader(self, _fd: int, /) -> None:
        """See Sockets."""
        self._reader = None

    def add_writer(self, _fd: int, callback: Callable[[], None], /) -> None:
        """See Sockets."""
        self._writer = callback
        self._context = contextvars.copy_context()
        self.look()

    def remove_writer(self, _fd: int, /) -> None:
        """See Sockets."""
        self._writer = None

    def look(self) -> None:
        """Call back in the next turn if the transport is ready."""
        transport = self._transport
        if self._is_told:
            return
        is_readable = self._reader is not None and transport.is_readable
        if is_readable or (self._writer is not None and transport.room_bytes > 0):
            self._is_told = True
            self._loop.call_soon(self._tell, context=self._context)

    def _tell(self) -> None:
        self._is_told = False
        transport = self._transport
        if self._reader is not None and transport.is_readable:
            self._reader()
        if self._writer is not None and transport.room_bytes > 0:
            self._writer()
        self.look()


class Polled(Protocol):
    """A simulation's poller, with its source of readiness."""

    @property
    def poller(self) -> Poller:
        """Watches the connections."""
        ...

    def number_of(self, transport: MemoryTransport, /) -> int:
        """Return a descriptor for a new transport."""
        ...

    def look(self) -> None:
        """Check for readiness."""
        ...


class MemoryTransport(ConnectionTransport):
    """The broker's side; with `has_end` the peer sends no more."""

    __slots__ = (
        "_look",
        "_most_bytes",
        "_on_output",
        "has_end",
        "incoming",
        "is_closed",
        "outgoing",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        on_output: Callable[[], None],
        *,
        most_bytes: int = _ROOM_BYTES,
        polled: Polled | None = None,
    ) -> None:
        """Create an empty transport.

        `on_output` is called when there is output, and on close. At most `most_bytes` of it wait.
        `polled` reports readiness instead of the loop.
        """
        if polled is None:
            readiness = _Readiness(loop, self)
            super().__init__(readiness, 0)
            self._look = readiness.look
        else:
            super().__init__(polled.poller, polled.number_of(self))
            self._look = polled.look
        self._on_output = on_output
        self._most_bytes = most_bytes
        self.incoming = bytearray()
        self.outgoing = bytearray()
        self.has_end = False
        self.is_closed = False

    @property
    def is_readable(self) -> bool:
        """Whether `receive` would return."""
        return bool(self.incoming) or self.has_end

    @property
    def room_bytes(self) -> int:
        """How much `send` would accept."""
        return self._most_bytes - len(self.outgoing)

    def changed(self) -> None:
        """Report that the peer has sent or ended."""
        self._look()

    def take(self) -> bytes:
        """Remove and return the connection's output."""
        output = bytes(self.outgoing)
        self.outgoing.clear()
        self._look()
        return output

    def receive(self, buffer: memoryview) -> int:
        """See ConnectionTransport."""
        if not self.is_readable:
            raise BlockingIOError
        count = min(len(buffer), len(self.incoming))
        buffer[:count] = self.incoming[:count]
        del self.incoming[:count]
        return count

    def send(self, data: bytes | bytearray | memoryview) -> int:
        """See ConnectionTransport."""
        if self.room_bytes <= 0:
            raise BlockingIOError
        sent = data[: self.room_bytes]
        self.outgoing += sent
        self._on_output()
        return len(sent)

    def send_piece(self, data: bytes | bytearray | memoryview, *, has_more: bool) -> int:
        """See ConnectionTransport."""
        del has_more
        return self.send(data)

    def send_file(self, file: DataFile, position: int, count: int) -> int:
        """See ConnectionTransport."""
        return self.send(file.read_at(position, min(count, max(self.room_bytes, 0))))

    def is_at_end(self) -> bool:
        """See ConnectionTransport."""
        return self.has_end and not self.incoming

    def fault(self) -> OSError | None:
        """Return None: it cannot fail."""
        return None

    def close(self) -> None:
        """Close it."""
        self.is_closed = True
        self.descriptor = -1
        self._on_output()


class MemoryPeer:
    """The client's side of a connection in memory."""

    __slots__ = ("_taken", "_waiter", "transport")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._taken = bytearray()
        self._waiter: asyncio.Future[None] | None = None
        self.transport = MemoryTransport(loop, self._on_output)

    def send(self, data: bytes) -> None:
        """Send bytes, split anywhere."""
        self.transport.incoming += data
        self.transport.changed()

    def end(self) -> None:
        """Send no more; responses still arrive."""
        self.transport.has_end = True
        self.transport.changed()

    async def receive(self) -> bytes:
        """Wait for one response, including its length.

        Raises:
            ConnectionError: The broker has closed the connection.
        """
        received = self._taken
        while True:
            received += self.transport.take()
            if len(received) >= _LENGTH_BYTES:
                size = _LENGTH_BYTES + int.from_bytes(received[:_LENGTH_BYTES])
                if len(received) >= size:
                    answer = bytes(received[:size])
                    del received[:size]
                    return answer
            if self.transport.is_closed:
                raise ConnectionError("the broker has closed the connection")
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter

    async def exchange(self, frame: bytes) -> bytes:
        """Send a request and return its response."""
        self.send(frame)
        return await self.receive()

    def _on_output(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


_numbers = itertools.count()


def connect(table: ConnectionTable, *, listener_name: str = "PLAINTEXT") -> MemoryPeer:
    """Open a connection to a broker in this process; return the client's side."""
    peer = MemoryPeer(table.loop)
    table.adopt(
        peer.transport,
        remote=("memory", next(_numbers)),
        local=("memory", 9092),
        listener_name=listener_name,
    )
    return peer
