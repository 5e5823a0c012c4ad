"""One HTTP request to a broker, bounded in time and size."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from wirebroker.base.threads import Work, in_thread
from wirebroker.client.errors import ClientError

_PART_BYTES: Final = 64 << 10


class HttpBounds(NamedTuple):
    """Bounds of a request.

    Attributes:
        timeout_s: The limit to connect and log in with TLS, and for the whole request after that.
        most_bytes: The maximum size of the response.
    """

    timeout_s: float
    most_bytes: int


_CONTROL_BOUNDS: Final = HttpBounds(8.0, 4 << 20)


class HttpReply(NamedTuple):
    """A response with its status."""

    status: int
    body: bytes


async def http_request(
    token: str | None, method: str, url: str, body: bytes | None = None
) -> HttpReply:
    """Send a request, with a token if there is one; return its response without redirecting.

    Raises:
        ClientError: The address does not respond, or the response is too large.
    """
    bounds = _CONTROL_BOUNDS
    return await in_thread(Work.HTTP, blocking_request, token, method, url, body, bounds)


def blocking_request(
    token: str | None, method: str, url: str, body: bytes | None, bounds: HttpBounds
) -> HttpReply:
    """Send a request and return its response; redirects are not followed.

    Raises:
        ClientError: The address does not respond, or the response is too large.
    """
    shown = shown_url(url)
    try:
        reply = _exchange(token, method, url, body, bounds)
    # http.client raises ValueErrors for hosts and paths that it cannot write.
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise ClientError(f"{shown} does not respond: {error}") from None
    if len(reply.body) > bounds.most_bytes:
        raise ClientError(f"the response of {shown} is larger than {bounds.most_bytes >> 20} MiB")
    return reply


def shown_url(url: str) -> str:
    """Return a URL for messages: without its query, which may hold a secret."""
    return urlsplit(url)._replace(query="", fragment="").geturl()


def _exchange(
    token: str | None, method: str, url: str, body: bytes | None, bounds: HttpBounds
) -> HttpReply:
    """Return a response, of a large body a bit more than is allowed.

    A slow one raises TimeoutError: a timer shuts the socket down, as each part of a response, also
    of its head, restarts the socket's own timeout.
    """
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=bounds.timeout_s)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    deadline = _Deadline(bounds.timeout_s)
    try:
        connection.connect()
        deadline.begin(connection.sock)
        connection.request(method, target, body, headers)
        response = connection.getresponse()
        content = bytearray()
        while len(content) <= bounds.most_bytes and (part := response.read1(_PART_BYTES)):
            content += part
    except (OSError, http.client.HTTPException, ValueError):
        deadline.check()
        raise
    finally:
        deadline.end()
        connection.close()
    deadline.check()
    return HttpReply(response.status, bytes(content))


class _Deadline:
    """A timer that ends a socket's reads and writes."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._has_passed = False
        self._timer: threading.Timer | None = None

    def begin(self, sock: socket.socket) -> None:
        """Start the timer."""
        self._timer = threading.Timer(self._timeout_s, self._pass, (sock,))
        self._timer.daemon = True
        self._timer.start()

    def end(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()

    def check(self) -> None:
        """Raise a TimeoutError if the deadline has passed."""
        if self._has_passed:
            raise TimeoutError(f"the response takes longer than {self._timeout_s:g} s") from None

    def _pass(self, sock: socket.socket) -> None:
        self._has_passed = True
        with contextlib.suppress(OSError):  # the connection has ended meanwhile
            socket.socket.shutdown(sock, socket.SHUT_RDWR)
