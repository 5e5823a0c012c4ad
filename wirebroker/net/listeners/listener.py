"""Listening sockets: binding, accepting in batches, handling a shortage of file descriptors.

Accepted sockets inherit the listening socket's options, which saves system calls.
"""

from __future__ import annotations

import errno
import logging
import socket
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import asyncio

    from wirebroker.net.connection_table import ConnectionTable
    from wirebroker.net.settings import NetworkSettings

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

logger = logging.getLogger("wirebroker.net")

# After so many accepts other connections are served.
_ACCEPT_BATCH: Final = 64
_PAUSE_S: Final = 0.1
# Connections that wait to be closed; more are closed immediately. They count in `_OTHER_FILES`.
_MOST_LATE: Final = 32
_OUT_OF_RESOURCES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

# Standard streams, the loop's descriptors, listeners, locks, checkpoints.
_OTHER_FILES: Final = 64
# Maximum of Windows' C library.
_C_LIBRARY_FILES: Final = 8192


def raise_open_file_limit() -> int:
    """Raise the limit of open files to the hard limit, and return it."""
    if resource is None:
        return _C_LIBRARY_FILES
    soft_limit, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft_limit != hard_limit:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))
        except (OSError, ValueError) as error:
            logger.warning("cannot raise the open file limit from %d: %s", soft_limit, error)
            return soft_limit
    return hard_limit if hard_limit != resource.RLIM_INFINITY else 2**31 - 1


def data_files_within(open_file_limit: int, *, wanted: int) -> int:
    """Return the limit of open log files: `wanted`, but less than half of all files."""
    return max(1, min(wanted, open_file_limit // 2 - _OTHER_FILES))


def sockets_within(open_file_limit: int, *, data_files: int) -> int:
    """Return the limit of connections that leaves descriptors for `data_files` log files.

    Connections wait first, because a log that cannot be opened takes its directory offline; but at
    least half of the limit is theirs.
    """
    return max(open_file_limit // 2, open_file_limit - data_files - _OTHER_FILES)


def bind(host: str, port: int, settings: NetworkSettings) -> socket.socket:
    """Return a listening, non-blocking socket.

    An empty `host` means all addresses; port 0 a free one.

    Raises:
        OSError: The name is unknown (socket.gaierror) or the address cannot be bound.
    """
    is_wildcard = host in {"", "0.0.0.0", "::"}  # noqa: S104 - asked for by the configuration
    if host == "" and socket.has_dualstack_ipv6():
        host = "::"
    # As bytes if possible: encoding a str loads tables of 0.5 MB.
    name = (host.encode() if host.isascii() else host) or None
    candidates = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    # Like most clients, prefer IPv4 for names such as localhost.
    candidates.sort(key=lambda entry: entry[0] != socket.AF_INET)
    family, _, _, _, address = candidates[0]
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if settings.send_buffer_bytes >= 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, settings.send_buffer_bytes)
        if settings.receive_buffer_bytes >= 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, settings.receive_buffer_bytes)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, not is_wildcard)
        sock.bind(address)
        sock.listen(settings.listen_backlog)
    except OSError:
        sock.close()
        raise
    return sock


class Listener:
    """A named listener, which accepts connections into the table.

    `host` and `port` are bound, `name` is from the config.
    """

    __slots__ = (
        "_delayed",
        "_is_short",
        "_late",
        "_loop",
        "_retry",
        "_socket",
        "_table",
        "host",
        "name",
        "port",
    )

    def __init__(self, table: ConnectionTable, name: str, sock: socket.socket) -> None:
        """Take over a socket of `bind`."""
        self._table = table
        self._loop = table.loop
        self._socket = sock
        self._retry: asyncio.TimerHandle | None = None
        # An accepted connection that waits because of max.connection.creation.rate.
        self._delayed: tuple[socket.socket, Any] | None = None
        # Accepting has stopped; logged once until no connection waits.
        self._is_short = False
        self._late: set[socket.socket] = set()
        self.name = name
        address = sock.getsockname()
        self.host, self.port = address[0], address[1]

    def start(self) -> None:
        """Begin to accept."""
        self._table.sockets.add_reader(self._socket.fileno(), self._on_acceptable)

    def close(self) -> None:
        """Stop accepting; the kernel resets connections in the backlog."""
        if self._socket.fileno() < 0:
            return
        self._table.sockets.remove_reader(self._socket.fileno())
        if self._retry is not None:
            self._retry.cancel()
        if self._delayed is not None:
            self._delayed[0].close()
        for sock in self._late:
            sock.close()
        self._late.clear()
        self._socket.close()

    def _on_acceptable(self) -> None:
        table = self._table
        for _ in range(_ACCEPT_BATCH):
            if not table.quotas.has_room(self.name):
                self._pause(f"{len(table)} connections are open")
                table.when_there_is_room(self._go_on)
                return
            if table.has_to_wait(self.name, self._go_on):
                table.sockets.remove_reader(self._socket.fileno())
                return
            try:
                sock, address = self._socket.accept()
            except (BlockingIOError, InterruptedError):
                self._is_short = False
                return
            except OSError as error:
                if error.errno in _OUT_OF_RESOURCES:
                    self._pause(str(error))
                    self._retry = self._loop.call_later(_PAUSE_S, self._go_on)
                    return
                # The peer has disconnected (ECONNABORTED and similar errors).
                continue
            sock.setblocking(False)
            late_s = table.late_close_s(address[0])
            if late_s:
                self._close_late(sock, late_s)
                continue
            delay_s = table.quotas.delay_s(self.name, table.clock.monotonic())
            if delay_s:
                self._delayed = sock, address
                table.sockets.remove_reader(self._socket.fileno())
                self._retry = self._loop.call_later(delay_s, self._go_on)
                return
            table.open(sock, address=address, listener_name=self.name)

    def _close_late(self, sock: socket.socket, seconds: float) -> None:
        if len(self._late) >= _MOST_LATE:
            sock.close()
            return
        self._late.add(sock)
        self._loop.call_later(seconds, self._close_now, sock)

    def _close_now(self, sock: socket.socket) -> None:
        self._late.discard(sock)
        sock.close()

    def _pause(self, reason: str) -> None:
        self._table.sockets.remove_reader(self._socket.fileno())
        if not self._is_short:
            self._is_short = True
            logger.error("%s stops accepting connections: %s", self.name, reason)

    def _go_on(self) -> None:
        self._retry = None
        if self._socket.fileno() < 0:
            return
        if self._delayed is not None:
            if not self._table.quotas.has_room(self.name):
                self._table.when_there_is_room(self._go_on)
                return
            (sock, address), self._delayed = self._delayed, None
            self._table.open(sock, address=address, listener_name=self.name)
        self._table.sockets.add_reader(self._socket.fileno(), self._on_acceptable)
