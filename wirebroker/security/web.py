"""One request to a web server: keys of tokens, tokens. It blocks: for threads.

What comes back has bounds: bytes, and time for all of it. Nobody is redirected, as only addresses
are asked that somebody has written down; proxies of the environment are passed over.
"""

from __future__ import annotations

import socket
import threading
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import http.client
    import ssl
    from collections.abc import Mapping

_MOST_BYTES: Final = 1 << 20


class WebError(Exception):
    """A server does not answer as it should.

    Attributes:
        passes: Whether it may when it is asked again.
    """

    def __init__(self, why: str, *, passes: bool = True) -> None:
        super().__init__(why)
        self.passes = passes


class WebAddress(NamedTuple):
    """Whom to ask, and how long.

    Attributes:
        url: Of http or https.
        context: Of https; None for http.
        connect_s: How long connecting may take, for each address that the name has.
        answer_s: How long all that follows may take.
    """

    url: str
    context: ssl.SSLContext | None
    connect_s: float
    answer_s: float


def ask(address: WebAddress, *, headers: Mapping[str, str], body: bytes | None = None) -> bytes:
    """Return what a server has at an address, or answers to what it is sent (POST).

    Raises:
        WebError: It has nothing, or cannot be reached.
    """
    import http.client  # noqa: PLC0415 - it brings ssl, of which a broker that asks nobody has no use

    parts = urlsplit(address.url)
    host, port = parts.hostname or "", parts.port
    if address.context is None:
        connection = http.client.HTTPConnection(host, port, timeout=address.connect_s)
    else:
        connection = http.client.HTTPSConnection(
            host, port, timeout=address.connect_s, context=address.context
        )
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.connect()
        return _exchange(connection, address.answer_s, target, body, headers)
    except (OSError, http.client.HTTPException, ValueError) as error:
        what = str(error) or type(error).__name__
        raise WebError(f"{parts.netloc} does not answer: {what[:200]}") from None
    finally:
        connection.close()


def _exchange(
    connection: http.client.HTTPConnection,
    seconds: float,
    target: str,
    body: bytes | None,
    headers: Mapping[str, str],
) -> bytes:
    sock: socket.socket = connection.sock
    sock.settimeout(seconds)
    # A server that sends a byte now and then would keep a timeout from passing.
    is_over = threading.Event()
    watch = threading.Timer(seconds, _end, (sock, is_over))
    watch.daemon = True
    watch.start()
    try:
        method = "GET" if body is None else "POST"
        connection.request(method, target, body, {"Accept": "application/json", **headers})
        response = connection.getresponse()
        found = response.read(_MOST_BYTES + 1)
    finally:
        watch.cancel()
    if response.status != HTTPStatus.OK:
        # As of Kafka's HttpJwtRetriever: what the server cannot do now it may do later.
        passes = response.status >= 500 or response.status in {408, 425, 429}
        raise WebError(
            f"{connection.host} answers {response.status} {response.reason[:80]}", passes=passes
        )
    if is_over.is_set() or (response.length and len(found) <= _MOST_BYTES):
        raise WebError(f"{connection.host} does not answer to the end")
    if len(found) > _MOST_BYTES:
        raise WebError(f"{connection.host} answers with more than {_MOST_BYTES} bytes")
    return found


def _end(sock: socket.socket, is_over: threading.Event) -> None:
    is_over.set()
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # it has ended meanwhile
