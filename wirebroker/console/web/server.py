"""The console as a process: socket, ready line, signals, end."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import ssl
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import uvicorn

from wirebroker.base.malloc_tuning import give_back_large_blocks
from wirebroker.base.signals import on_signal
from wirebroker.console.audit.audit_log import AuditError, AuditLog
from wirebroker.console.model.collector import Collector
from wirebroker.console.records.downloads import CutDownloadError
from wirebroker.console.web.app import make_app
from wirebroker.console.web.http_connection import HttpConnection
from wirebroker.console.web_settings import audit_file

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from starlette.types import ASGIApp

    from wirebroker.base.clock import Clock
    from wirebroker.console.model.settings import ClusterSettings
    from wirebroker.console.web_settings import WebSettings

logger = logging.getLogger("wirebroker")

_BACKLOG: Final = 128
# Streams that are still open after this are ended.
_GRACE_S: Final = 1
_MOST_HEADER_BYTES: Final = 32 * 1024
_MOST_CONNECTIONS: Final = 400
# uvicorn logs invalid requests and refused connections here.
_HTTP_LOGGER: Final = "uvicorn.error"
# asyncio logs writes to connections that clients have closed here.
_CONNECTION_LOGGER: Final = "asyncio"


class ListenError(OSError):
    """The address cannot be used; the message says what to do."""


class _Server(uvicorn.Server):
    """uvicorn's server, which reports when it is ready."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """See uvicorn."""
        await super().startup(sockets)
        if self.started:
            self._on_ready()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """End cleanly on signals; uvicorn's version would raise them again afterwards."""
        on_signal("SIGTERM", self._stop)
        on_signal("SIGINT", self._stop)
        on_signal("SIGHUP", self._stop, unless_ignored=True)
        yield

    def _stop(self) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True


def run(
    clusters: Sequence[ClusterSettings],
    settings: WebSettings,
    *,
    clock: Clock,
    on_ready: Callable[[int], None],
) -> None:
    """Serve until SIGTERM or SIGINT.

    Args:
        clusters: At least one.
        settings: Checked ones (web_settings.py).
        clock: The process's clock.
        on_ready: Receives the port.

    Raises:
        ListenError: The port, the certificate or its key cannot be used.
        CredentialError: The file of users or tokens cannot be used.
        AuditError: The file of the audit log, if one is given, cannot be opened.
        WebSettingError: There is no default for the file of the audit log.
    """
    _check_certificate(settings)
    _check_audit_log(settings, clock)
    limit_client_lines()
    give_back_large_blocks()
    listening = listening_socket(settings.host, settings.port)
    with listening:
        turn = asyncio.Lock()
        collectors = [Collector(cluster, clock, turn=turn) for cluster in clusters]
        app = make_app(collectors, clock, settings)
        bound_port: int = listening.getsockname()[1]
        server = _Server(_config(app, settings), lambda: on_ready(bound_port))
        asyncio.run(server.serve(sockets=[listening]))


def limit_client_lines() -> None:
    """Limit the lines of libraries that clients can cause."""
    for name in (_HTTP_LOGGER, _CONNECTION_LOGGER):
        logging.getLogger(name).addFilter(limit_line)


def limit_line(record: logging.LogRecord) -> bool:
    """Limit the lines that any client can cause, such as by a malformed request.

    A download that was cut needs no traceback, and requests that uvicorn ends when the console
    stops need no line each: it logs their number.
    """
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, asyncio.CancelledError):
        return False
    if isinstance(error, CutDownloadError):
        record.levelno, record.levelname = logging.WARNING, "WARNING"
        record.msg, record.args, record.exc_info = str(error), (), None
    if record.levelno <= logging.WARNING:
        record.about = "HTTP clients"
    return True


def _check_certificate(settings: WebSettings) -> None:
    """Load the files, as uvicorn does later: its errors do not name them."""
    if settings.tls_cert is None:
        return
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(settings.tls_cert, settings.tls_key, password=_no_password)
    except (OSError, ValueError) as error:
        raise ListenError(
            f"--tls-cert {settings.tls_cert} cannot be used{_with_key(settings)}:"
            f" {getattr(error, 'strerror', None) or error}"
        ) from None


def _with_key(settings: WebSettings) -> str:
    return "" if settings.tls_key is None else f" with --tls-key {settings.tls_key}"


def _no_password() -> str:
    raise ValueError("the key has a password: write it without one, readable only by this user")


def _check_audit_log(settings: WebSettings, clock: Clock) -> None:
    """Open the audit log; without an explicit file, a failure only refuses changes later."""
    log = AuditLog(audit_file(settings), clock)
    try:
        log.open()
    except AuditError as error:
        if settings.audit_log is not None:
            raise
        logger.warning("the console cannot make changes: %s", error)
    finally:
        log.close()


def _config(app: ASGIApp, settings: WebSettings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
        loop="asyncio",
        http=HttpConnection,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=_MOST_HEADER_BYTES,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_graceful_shutdown=_GRACE_S,
    )


def listening_socket(host: str, port: int) -> socket.socket:
    """Bind a socket.

    Raises:
        ListenError: The port is in use or not allowed.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        reason = (error.strerror or str(error)).lower()
        raise ListenError(
            f"the console cannot listen on {host}:{port}: {reason} (choose another port with"
            " --port; 0 selects a free one)"
        ) from None
    return listening


def stop_with_parent() -> None:
    """End this process, as by SIGTERM, when its standard input ends."""
    threading.Thread(target=_watch_input, name="parent watch", daemon=True).start()


def _watch_input() -> None:
    # Unbuffered: a buffered reader would be locked when the process ends.
    while os.read(sys.stdin.fileno(), 1024):
        pass
    signal.raise_signal(signal.SIGTERM)
