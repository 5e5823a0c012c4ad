"""Transports of client connections: a socket, memory (memory_transport.py), or TLS over either.

Methods return immediately, and raise BlockingIOError instead of waiting.
"""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Final

from wirebroker.net.sockets.socket_calls import receive, send

if TYPE_CHECKING:
    from wirebroker.net.bounds.memory_budget import MemoryBudget
    from wirebroker.net.sockets.poller import Sockets
    from wirebroker.storage.files import DataFile

# Limit of a file read without sendfile.
_PIECE_BYTES: Final = 256 * 1024


class ConnectionTransport:
    """One side of a byte stream; `sockets` knows it as `descriptor` (-1 once closed)."""

    __slots__ = ("descriptor", "sockets")

    def __init__(self, sockets: Sockets, descriptor: int) -> None:
        self.sockets = sockets
        self.descriptor = descriptor

    def receive(self, buffer: memoryview) -> int:
        """Receive into a writable buffer and return the number of bytes; 0 at the end.

        Raises:
            OSError: BlockingIOError if there is nothing yet; InterruptedError.
        """
        raise NotImplementedError

    def send(self, data: bytes) -> int:
        """Send what fits and return the number of bytes.

        Raises:
            OSError: BlockingIOError if nothing fits; InterruptedError.
        """
        raise NotImplementedError

    def send_piece(self, data: bytes | bytearray | memoryview, *, has_more: bool) -> int:
        """Send as `send`; with `has_more` the bytes may wait for the next piece."""
        raise NotImplementedError

    def send_file(self, file: DataFile, position: int, count: int) -> int:
        """Send what fits of a file; return 0 if it ends before `position`.

        Raises:
            OSError: As `send`; or the file cannot be read.
        """
        raise NotImplementedError

    def is_at_end(self) -> bool:
        """Return whether only the end is unread.

        Raises:
            OSError: The transport has failed.
        """
        raise NotImplementedError

    def use_budget(self, budget: MemoryBudget) -> None:
        """Count the transport's own memory; called first."""

    def fault(self) -> OSError | None:
        """Return the error of the transport, if any."""
        raise NotImplementedError

    def close(self) -> None:
        """Close both directions."""
        raise NotImplementedError


class SocketTransport(ConnectionTransport):
    """A connected, non-blocking socket."""

    __slots__ = ("_socket",)

    def __init__(self, sockets: Sockets, sock: socket.socket) -> None:
        super().__init__(sockets, sock.fileno())
        self._socket = sock

    def receive(self, buffer: memoryview) -> int:
        """See ConnectionTransport."""
        return receive(self.descriptor, buffer)

    def send(self, data: bytes) -> int:
        """See ConnectionTransport."""
        return send(self.descriptor, data)

    def send_piece(self, data: bytes | bytearray | memoryview, *, has_more: bool) -> int:
        """See ConnectionTransport."""
        return self._socket.send(data, socket.MSG_MORE if has_more else 0)

    def send_file(self, file: DataFile, position: int, count: int) -> int:
        """See ConnectionTransport."""
        return file.send_to(self.descriptor, position, count)

    def is_at_end(self) -> bool:
        """See ConnectionTransport."""
        try:
            return not self._socket.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return False

    def fault(self) -> OSError | None:
        """See ConnectionTransport."""
        code = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        return OSError(code, os.strerror(code)) if code else None

    def close(self) -> None:
        """Close the socket."""
        self.descriptor = -1  # the number may be reused from now on
        self._socket.close()


class PortableTransport(SocketTransport):
    """A socket on systems without sendfile, MSG_MORE or I/O by descriptor."""

    __slots__ = ()

    def receive(self, buffer: memoryview) -> int:
        """See ConnectionTransport."""
        return self._socket.recv_into(buffer)

    def send(self, data: bytes) -> int:
        """See ConnectionTransport."""
        return self._socket.send(data)

    def send_piece(self, data: bytes | bytearray | memoryview, *, has_more: bool) -> int:
        """See ConnectionTransport."""
        del has_more
        return self._socket.send(data)

    def send_file(self, file: DataFile, position: int, count: int) -> int:
        """See ConnectionTransport."""
        return self._socket.send(file.read_at(position, min(count, _PIECE_BYTES)))


def socket_transport(sockets: Sockets, sock: socket.socket) -> SocketTransport:
    """Return the fastest supported transport for a connected, non-blocking socket."""
    if hasattr(socket, "MSG_MORE") and hasattr(os, "sendfile"):
        return SocketTransport(sockets, sock)
    return PortableTransport(sockets, sock)
