"""The service's /metrics page, on a separate thread."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final

from wirebroker.delivery.service.errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

_HOST: Final = "127.0.0.1"
_TIMEOUT_S: Final = 10


@contextmanager
def metrics_page(port: int, page: Callable[[], str]) -> Generator[int]:
    """Serve a page while the block runs; yield the port, 0 if none is served.

    Raises:
        ServiceError: The port cannot be used.
    """
    if not port:
        yield 0
        return
    try:
        opened = _PageServer(port, page)
    except OSError as error:
        raise ServiceError(
            f"cannot serve metrics on {_HOST}:{port}: {error.strerror}"
            " (set wirebroker.delivery.metrics.port)"
        ) from None
    with opened as server:
        thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


class _PageServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port: int, page: Callable[[], str]) -> None:
        super().__init__((_HOST, port), _PageHandler)
        self.page = page


class _PageHandler(BaseHTTPRequestHandler):
    timeout = _TIMEOUT_S

    def do_GET(self) -> None:
        """Send the page, or 404 for another path."""
        assert isinstance(self.server, _PageServer)
        is_found = self.path.partition("?")[0] == "/metrics"
        body = self.server.page().encode() if is_found else b"see /metrics\n"
        self.send_response(200 if is_found else 404)
        self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
        """Log nothing."""
