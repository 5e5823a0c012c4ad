"""TCP on the broker's own event loop, read directly from its poller.

asyncio's transports cost another turn of the loop.
"""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.errors import without_frames
from wirebroker.net.sockets.socket_calls import receive, send

if TYPE_CHECKING:
    from wirebroker.codecs.primitives import Buffer
    from wirebroker.net.client.transport import Receiver
    from wirebroker.net.sockets.poller import Sockets

# Successive receives, up to 1 MiB each, before the loop serves others.
_MOST_RECEIVES: Final = 2


class PolledTransport:
    """A connected socket."""

    __slots__ = (
        "_descriptor",
        "_has_ended",
        "_loop",
        "_receiver",
        "_socket",
        "_sockets",
        "_unsent",
        "local_host",
    )

    # _has_ended <=> the receiver was notified, or will be in the next turn.

    def __init__(self, sockets: Sockets, sock: socket.socket, receiver: Receiver) -> None:
        """Watch a connected, non-blocking socket."""
        self._loop = asyncio.get_running_loop()
        self._sockets = sockets
        self._socket = sock
        self._descriptor = sock.fileno()
        self._receiver = receiver
        self._unsent = b""
        self._has_ended = False
        self.local_host = str(sock.getsockname()[0])
        sockets.add_reader(self._descriptor, self._on_readable)

    def write(self, data: Buffer) -> None:
        """See Transport."""
        if self._has_ended:
            return
        if self._unsent:
            self._unsent += data
            return
        self._unsent = bytes(data)
        self._send()
        if self._unsent and not self._has_ended:
            self._sockets.add_writer(self._descriptor, self._on_writable)

    def close(self) -> None:
        """See Transport."""
        self._end_soon(None)

    def _on_readable(self) -> None:
        receiver = self._receiver
        for _ in range(_MOST_RECEIVES):
            try:
                buffer = receiver.get_buffer()
                count = receive(self._descriptor, buffer)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as fault:
                self._end_soon(fault)
                return
            if not count:
                self._end_soon(None)
                return
            is_full = count == len(buffer)
            receiver.buffer_updated(count)
            if not is_full or self._has_ended:
                return

    def _on_writable(self) -> None:
        self._send()
        if not self._unsent and not self._has_ended:
            self._sockets.remove_writer(self._descriptor)

    def _send(self) -> None:
        try:
            self._unsent = self._unsent[send(self._descriptor, self._unsent) :]
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as fault:
            self._end_soon(fault)

    def _end_soon(self, fault: OSError | None) -> None:
        """Close; notify the receiver in the next turn, because it may be the caller."""
        if self._has_ended:
            return
        self._has_ended = True
        self._unsent = b""
        self._sockets.remove_reader(self._descriptor)
        self._sockets.remove_writer(self._descriptor)
        self._socket.close()
        self._loop.call_soon(self._receiver.lost, fault)


async def connect(host: str, port: int) -> socket.socket:
    """Return a socket that is connected to a host, trying its addresses in order.

    Raises:
        OSError: The last address's error; or the name is unknown (socket.gaierror).
    """
    loop = asyncio.get_running_loop()
    last: OSError | None = None
    for family, kind, protocol, _, address in await _addresses(loop, host, port):
        sock = socket.socket(family, kind, protocol)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await loop.sock_connect(sock, address)
        except OSError as fault:
            sock.close()
            last = without_frames(fault)
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    try:
        raise last or OSError(f"{host} has no address")
    finally:
        del last  # it refers to this frame from now on


async def _addresses(
    loop: asyncio.AbstractEventLoop, host: str, port: int
) -> list[tuple[Any, ...]]:
    """Look up a host; only names need a thread."""
    try:
        numbers = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=numbers)
    except socket.gaierror:
        return await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
