"""One request to a web server, for keys or tokens; it blocks, so it needs a thread.

Response size and total time are limited. Only configured addresses are contacted: redirects and
proxies are not followed.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from wirebroker.codecs.errors import without_frames

if TYPE_CHECKING:
    import http.client
    import ssl
    from collections.abc import Mapping

_MOST_BYTES: Final = 1 << 20


class WebError(Exception):
    """A failed request; `passes` if a retry may succeed."""

    def __init__(self, reason: str, *, passes: bool = True) -> None:
        super().__init__(reason)
        self.passes = passes


class WebAddress(NamedTuple):
    """An address with its timeouts.

    Attributes:
        connect_s: For connecting, per address of the host.
        answer_s: For everything after.
    """

    url: str
    context: ssl.SSLContext | None
    connect_s: float
    answer_s: float


class Ending:
    """Ends a request of another thread, and all later ones."""

    __slots__ = ("_lock", "_sock", "is_over")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sock: socket.socket | None = None
        self.is_over = False

    def watch(self, sock: socket.socket | None) -> None:
        """Set the socket in use.

        Raises:
            OSError: `end` was called.
        """
        with self._lock:
            self._sock = sock
            if sock is not None and self.is_over:
                raise OSError("the request was canceled")

    def end(self) -> None:
        """Fail the current and all later requests."""
        with self._lock:
            self.is_over = True
            if self._sock is not None:
                with contextlib.suppress(OSError):  # already closed
                    self._sock.shutdown(socket.SHUT_RDWR)


def ask(
    address: WebAddress,
    *,
    headers: Mapping[str, str],
    body: bytes | None = None,
    ending: Ending | None = None,
) -> bytes:
    """Send a request and return the response's body.

    A `body` makes it a POST; `ending` lets another thread end it.

    Raises:
        WebError: The request failed.
    """
    import http.client  # noqa: PLC0415 - it imports ssl, which other brokers do not need

    parts = urlsplit(address.url)
    host, port = parts.hostname or "", parts.port
    if address.context is None:
        connection = http.client.HTTPConnection(host, port, timeout=address.connect_s)
    else:
        connection = http.client.HTTPSConnection(
            host, port, timeout=address.connect_s, context=address.context
        )
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    ending = ending or Ending()
    try:
        connection.sock = _connected(address, host, port or connection.default_port, ending)
        return _exchange(connection, address.answer_s, target, body, headers)
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = str(error) or type(error).__name__
        raise WebError(f"{parts.netloc} does not respond: {reason[:200]}") from None
    finally:
        ending.watch(None)
        connection.close()


def _connected(address: WebAddress, host: str, port: int, ending: Ending) -> socket.socket:
    last_error: OSError = OSError("its name has no address")
    for family, kind, protocol, _, socket_address in socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM
    ):
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(address.connect_s)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            ending.watch(sock)
            sock.connect(socket_address)
            if address.context is not None:
                sock = address.context.wrap_socket(
                    sock, server_hostname=host, do_handshake_on_connect=False
                )
                ending.watch(sock)
                sock.do_handshake()
        except OSError as error:
            sock.close()
            last_error = without_frames(error)
        except ValueError:  # an invalid name for a certificate
            sock.close()
            raise
        else:
            return sock
    try:
        raise last_error
    finally:
        del last_error  # breaks a reference cycle with this frame


def _exchange(
    connection: http.client.HTTPConnection,
    seconds: float,
    target: str,
    body: bytes | None,
    headers: Mapping[str, str],
) -> bytes:
    sock: socket.socket = connection.sock
    sock.settimeout(seconds)
    # A limit on the total time: a server may send single bytes within each timeout.
    is_over = threading.Event()
    watch = threading.Timer(seconds, _end, (sock, is_over))
    watch.daemon = True
    watch.start()
    try:
        method = "GET" if body is None else "POST"
        connection.request(method, target, body, {"Accept": "application/json", **headers})
        # Otherwise an error that refers to it would keep the socket open.
        with connection.getresponse() as response:
            content = response.read(_MOST_BYTES + 1)
    finally:
        watch.cancel()
    if response.status != HTTPStatus.OK:
        # As in Kafka's HttpJwtRetriever.
        passes = response.status >= 500 or response.status in {408, 425, 429}
        raise WebError(
            f"{connection.host} returned {response.status} {response.reason[:80]}", passes=passes
        )
    if is_over.is_set() or (response.length and len(content) <= _MOST_BYTES):
        raise WebError(f"{connection.host} sent an incomplete response")
    if len(content) > _MOST_BYTES:
        raise WebError(f"{connection.host} sent more than {_MOST_BYTES} bytes")
    return content


def _end(sock: socket.socket, is_over: threading.Event) -> None:
    is_over.set()
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # already closed
