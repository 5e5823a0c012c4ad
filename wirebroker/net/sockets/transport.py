"""What carries a connection's bytes: a socket, memory (memory_transport.py), TLS over either.

A connection and its send queue know no socket. They are told of readiness by `sockets` under the
transport's `descriptor`, and everything they call returns at once: what would have to wait raises
BlockingIOError.
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

# What is read of a file at once where it can't be sent without.
_PIECE_BYTES: Final = 256 * 1024


class ConnectionTransport:
    """One side of a stream of bytes.

    Attributes:
        sockets: Who tells of its readiness.
        descriptor: Its number there; -1 once it is closed.
    """

    __slots__ = ("descriptor", "sockets")

    def __init__(self, sockets: Sockets, descriptor: int) -> None:
        self.sockets = sockets
        self.descriptor = descriptor

    def receive(self, buffer: memoryview) -> int:
        """Receive into a writable buffer and return how many bytes; 0 at the end.

        Raises:
            OSError: BlockingIOError if there is nothing yet; InterruptedError.
        """
        raise NotImplementedError

    def send(self, data: bytes) -> int:
        """Send what is taken of a whole answer and return how many bytes that were.

        Raises:
            OSError: BlockingIOError if nothing is taken; InterruptedError.
        """
        raise NotImplementedError

    def send_piece(self, data: bytes | bytearray | memoryview, *, has_more: bool) -> int:
        """Do as `send`; if more follows at once, what is sent may wait for it."""
        raise NotImplementedError

    def send_file(self, file: DataFile, position: int, count: int) -> int:
        """Send of a file what is taken; 0 if it ends before `position`.

        Raises:
            OSError: As `send`; or the file cannot be read.
        """
        raise NotImplementedError

    def is_at_end(self) -> bool:
        """Tell whether the peer has sent its end, and nothing before it that is unread.

        Raises:
            OSError: The transport has failed.
        """
        raise NotImplementedError

    def use_budget(self, budget: MemoryBudget) -> None:
        """Count memory of its own there, if it has any; told once, at first."""

    def fault(self) -> OSError | None:
        """Return why the transport has failed, if it has."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of it; both directions end."""
        raise NotImplementedError


class SocketTransport(ConnectionTransport):
    """A connected, non-blocking socket."""

    __slots__ = ("_socket",)

    def __init__(self, sockets: Sockets, sock: socket.socket) -> None:
        super().__init__(sockets, sock.fileno())
        self._socket = sock

    def receive(self, buffer: memoryview) -> int:
        """Receive what is there."""
        return receive(self.descriptor, buffer)

    def send(self, data: bytes) -> int:
        """Send what is taken."""
        return send(self.descriptor, data)

    def send_piece(self, data: bytes | bytearray | memoryview, *, has_more: bool) -> int:
        """Send what is taken."""
        return self._socket.send(data, socket.MSG_MORE if has_more else 0)

    def send_file(self, file: DataFile, position: int, count: int) -> int:
        """Send of a file what is taken."""
        return file.send_to(self.descriptor, position, count)

    def is_at_end(self) -> bool:
        """Tell whether only the end is unread."""
        try:
            return not self._socket.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return False

    def fault(self) -> OSError | None:
        """Return why it has failed, if it has."""
        code = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        return OSError(code, os.strerror(code)) if code else None

    def close(self) -> None:
        """Let go of it."""
        self.descriptor = -1  # the number may be somebody else's from now on
        self._socket.close()


class PortableTransport(SocketTransport):
    """A socket where descriptors are not for reading and writing, and nothing is held back."""

    __slots__ = ()

    def receive(self, buffer: memoryview) -> int:
        """Receive what is there."""
        return self._socket.recv_into(buffer)

    def send(self, data: bytes) -> int:
        """Send what is taken."""
        return self._socket.send(data)

    def send_piece(self, data: bytes | bytearray | memoryview, *, has_more: bool) -> int:
        """Send what is taken."""
        del has_more
        return self._socket.send(data)

    def send_file(self, file: DataFile, position: int, count: int) -> int:
        """Send of a file what is taken, at most 256 KiB."""
        return self._socket.send(file.read_at(position, min(count, _PIECE_BYTES)))


def socket_transport(sockets: Sockets, sock: socket.socket) -> SocketTransport:
    """Return a transport over a connected, non-blocking socket, as quick as the system has one."""
    if hasattr(socket, "MSG_MORE") and hasattr(os, "sendfile"):
        return SocketTransport(sockets, sock)
    return PortableTransport(sockets, sock)
