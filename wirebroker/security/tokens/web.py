"""One request to a web server: keys of tokens, tokens. It blocks: for threads.

What comes back has bounds: bytes, and time for all of it. Nobody is redirected, as only addresses
are asked that somebody has written down; proxies of the environment are passed over.
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


class Ending:
    """Ends what is asked in another thread, at once and for good."""

    __slots__ = ("_lock", "_sock", "is_over")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sock: socket.socket | None = None
        # Whether it has ended.
        self.is_over = False

    def watch(self, sock: socket.socket | None) -> None:
        """Note by what is asked now; None: by nothing any more.

        Raises:
            OSError: It has ended.
        """
        with self._lock:
            self._sock = sock
            if sock is not None and self.is_over:
                raise OSError("it is not waited for any more")

    def end(self) -> None:
        """Have whoever asks fail, now and from now on."""
        with self._lock:
            self.is_over = True
            if self._sock is not None:
                with contextlib.suppress(OSError):  # it has ended meanwhile
                    self._sock.shutdown(socket.SHUT_RDWR)


def ask(
    address: WebAddress,
    *,
    headers: Mapping[str, str],
    body: bytes | None = None,
    ending: Ending | None = None,
) -> bytes:
    """Return what a server has at an address, or answers to what it is sent (POST).

    Args:
        address: Whom to ask.
        headers: Of the request.
        body: What it is sent; None: it is asked by GET.
        ending: By which another thread ends it.

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
    ending = ending or Ending()
    try:
        connection.sock = _connected(address, host, port or connection.default_port, ending)
        return _exchange(connection, address.answer_s, target, body, headers)
    except (OSError, http.client.HTTPException, ValueError) as error:
        what = str(error) or type(error).__name__
        raise WebError(f"{parts.netloc} does not answer: {what[:200]}") from None
    finally:
        ending.watch(None)
        connection.close()


def _connected(address: WebAddress, host: str, port: int, ending: Ending) -> socket.socket:
    """Return a connection to the first of the server's addresses that answers; with TLS, if asked.

    Raises:
        OSError: None does.
    """
    why: OSError = OSError("its name has no address")
    for family, kind, protocol, _, where in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(address.connect_s)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            ending.watch(sock)
            sock.connect(where)
            if address.context is not None:
                sock = address.context.wrap_socket(
                    sock, server_hostname=host, do_handshake_on_connect=False
                )
                ending.watch(sock)
                sock.do_handshake()
        except OSError as error:
            sock.close()
            why = without_frames(error)
        except ValueError:  # a name that no certificate has
            sock.close()
            raise
        else:
            return sock
    try:
        raise why
    finally:
        del why  # it holds this frame from now on


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
        # Unless it is closed the socket stays open with it, as long as anybody holds an error.
        with connection.getresponse() as response:
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
