"""A web server in a thread, whose response a test can change while it runs."""

from __future__ import annotations

import contextlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, NamedTuple

from tests.support.tools.ports import HOST

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator, Mapping


# Additional bytes of a dribbling server: at a byte each 20 ms they take 20 minutes.
_MORE_BYTES = 1 << 16


class Asked(NamedTuple):
    """One request."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class WebServer:
    """A server with one response to all requests.

    Attributes:
        status: The response's status.
        headers: The response's headers.
        body: The response's body.
        dribble: Send the body byte by byte, without its last byte.
        asked: All requests so far.
    """

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.status = 200
        self.headers: dict[str, str] = {}
        self.body = b""
        self.dribble = False
        self.asked: list[Asked] = []
        self.ended = threading.Event()
        self.server = ThreadingHTTPServer((HOST, 0), _handler(self))
        if context is not None:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self._scheme = "http" if context is None else "https"

    def url(self, path: str = "/keys") -> str:
        return f"{self._scheme}://{HOST}:{self.server.server_address[1]}{path}"


@contextlib.contextmanager
def web_server(context: ssl.SSLContext | None = None) -> Iterator[WebServer]:
    instance = WebServer(context)
    thread = threading.Thread(target=instance.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield instance
    finally:
        instance.ended.set()
        instance.server.shutdown()
        thread.join()
        instance.server.server_close()


def _handler(web: WebServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            body = self.rfile.read(length)
            web.asked.append(Asked(self.command, self.path, dict(self.headers), body))
            self.send_response(web.status)
            for name, value in web.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(web.body) + web.dribble * _MORE_BYTES))
            self.end_headers()
            if not web.dribble:
                self.wfile.write(web.body)
            while web.dribble and not web.ended.wait(0.02):
                try:
                    self.wfile.write(b"x")
                except OSError:
                    return

        do_POST = do_GET  # noqa: N815 - as http.server has it

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    return Handler
