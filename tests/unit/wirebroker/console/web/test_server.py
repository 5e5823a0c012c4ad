"""The console's connections and certificate."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn

from tests.support.console import fake_cluster as fake
from tests.support.security.tls_files import certificate
from wirebroker.base.clock import SystemClock
from wirebroker.console.audit.audit_log import AuditError
from wirebroker.console.login.credential_file import CredentialError
from wirebroker.console.web import http_connection, server
from wirebroker.console.web.app import make_app
from wirebroker.console.web_settings import DEFAULTS, WebSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

REQUEST = b"GET /static/icon.svg HTTP/1.1\r\nHost: localhost\r\n\r\n"


@contextlib.asynccontextmanager
async def served(app: Any = None, settings: WebSettings = DEFAULTS) -> AsyncIterator[int]:
    """Serve a console or another application in this process, and return its port."""
    collectors: Any = [fake.FakeCollector(fake.snapshot())]
    app = app or make_app(collectors, SystemClock())
    ready = asyncio.Event()
    listening = server.listening_socket("127.0.0.1", 0)
    running = server._Server(server._config(app, settings), ready.set)
    running.capture_signals = contextlib.nullcontext  # type: ignore[assignment, method-assign]
    task = asyncio.create_task(running.serve(sockets=[listening]))
    try:
        await ready.wait()
        yield listening.getsockname()[1]
    finally:
        running.should_exit = True
        await task


@pytest.mark.parametrize("sent", [b"", b"GET / HT", REQUEST])
async def test_connections_end_if_no_request_arrives(monkeypatch, sent):
    monkeypatch.setattr(http_connection, "HEAD_TIMEOUT_S", 0.1)
    async with served() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        async with asyncio.timeout(30):
            received = await reader.read()
        assert received.startswith(b"HTTP/1.1 200") == (sent == REQUEST)
        writer.close()


async def test_a_slow_response_is_not_ended(monkeypatch):
    monkeypatch.setattr(http_connection, "HEAD_TIMEOUT_S", 0.05)
    async with served() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /c/dev/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        async with asyncio.timeout(30):
            await reader.readuntil(b"event: connected")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.3):
                    assert await reader.read() == b"still open"
            writer.close()


class LargeResponse:
    """An application whose response is larger than all buffers of a connection."""

    def __init__(self) -> None:
        self.has_ended = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            for event in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{event}.complete"})
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for number in range(1000):
            message = {"type": "http.response.body", "body": bytes(1 << 16)}
            await send({**message, "more_body": number < 999})
        self.has_ended.set()


async def test_a_client_that_does_not_read_loses_its_connection(monkeypatch):
    monkeypatch.setattr(http_connection, "HEAD_TIMEOUT_S", 0.1)
    app = LargeResponse()
    async with served(app) as port:
        _reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
        writer.write(REQUEST)
        async with asyncio.timeout(30):
            await app.has_ended.wait()
        writer.close()


class WholeResponse(LargeResponse):
    """An application that sends its large response in one piece."""

    SIZE = 16 << 20

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await super().__call__(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": bytes(self.SIZE)})
        self.has_ended.set()


def tls_settings(directory: Path) -> tuple[WebSettings, ssl.SSLContext]:
    """Return settings with a certificate, and a client's context that accepts it."""
    path = directory / "server.pem"
    path.write_text(certificate())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return DEFAULTS._replace(tls_cert=path), context


@pytest.mark.parametrize("is_tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("is_closed", [False, True], ids=["kept-open", "closed"])
async def test_a_client_that_reads_slowly_gets_the_whole_response(
    monkeypatch, tmp_path, is_closed, is_tls
):
    """Reading the response, which is buffered as a whole, takes longer than many checks."""
    checks = asyncio.Queue[None]()

    class CountedChecks(http_connection.HttpConnection):
        def _end_if_stalled(self) -> None:
            super()._end_if_stalled()
            checks.put_nowait(None)

    monkeypatch.setattr(http_connection, "HEAD_TIMEOUT_S", 0.05)
    monkeypatch.setattr(server, "HttpConnection", CountedChecks)
    request = REQUEST.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    settings, context = tls_settings(tmp_path) if is_tls else (DEFAULTS, None)
    async with served(WholeResponse(), settings) as port:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, limit=1 << 16, ssl=context
        )
        writer.write(request if is_closed else REQUEST)
        async with asyncio.timeout(60):
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200")
            received = parts = 0
            while received < WholeResponse.SIZE:
                data = await reader.read(1 << 20)
                assert data, f"the connection ended after {received} bytes"
                received += len(data)
                parts += 1
                if received < WholeResponse.SIZE // 4:  # later, the system may buffer the rest
                    await checks.get()
        writer.close()
    assert parts > 10


async def test_a_client_that_does_not_read_the_end_loses_its_connection(monkeypatch):
    """The response is whole for the application, but much of it is not sent yet."""
    monkeypatch.setattr(http_connection, "HEAD_TIMEOUT_S", 0.1)
    aborted = asyncio.Event()

    class NotedEnd(http_connection.HttpConnection):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            transport.set_write_buffer_limits(1 << 30)

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            aborted.set()

    monkeypatch.setattr(server, "HttpConnection", NotedEnd)
    async with served(LargeResponse()) as port:
        _reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
        writer.write(REQUEST)
        async with asyncio.timeout(30):
            await aborted.wait()
        writer.close()


async def test_connections_are_bounded(monkeypatch):
    monkeypatch.setattr(server, "_MOST_CONNECTIONS", 2)
    async with served() as port:
        kept = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        for reader, writer in kept[:1]:
            writer.write(REQUEST)
            assert (await reader.readline()).startswith(b"HTTP/1.1")
        further, writer = await asyncio.open_connection("127.0.0.1", port)
        async with asyncio.timeout(30):
            with contextlib.suppress(ConnectionResetError):
                assert await further.read() == b""
        for _, opened in [*kept, (further, writer)]:
            opened.close()


@pytest.mark.parametrize("content", [None, "", "no certificate"])
def test_a_certificate_that_cannot_be_used_is_named(tmp_path, content):
    path = tmp_path / "cert.pem"
    if content is not None:
        path.write_text(content)
    settings = DEFAULTS._replace(tls_cert=path)
    with pytest.raises(server.ListenError, match=r"--tls-cert .*cert\.pem cannot be used"):
        server.run([], settings, clock=SystemClock(), on_ready=print)


@pytest.mark.parametrize(
    ("field", "error"),
    [("users", CredentialError), ("tokens", CredentialError), ("audit_log", AuditError)],
)
def test_a_file_that_cannot_be_used_refuses_the_start(tmp_path, field, error):
    settings = DEFAULTS._replace(port=0, **{field: tmp_path / "none" / "file"})
    (tmp_path / "none").write_text("")
    with pytest.raises(error, match="none/file"):
        server.run([], settings, clock=SystemClock(), on_ready=print)


def test_uvicorn_has_the_parts_that_connections_use():
    assert issubclass(http_connection.HttpConnection, asyncio.Protocol)
    assert uvicorn.Config(lambda: None, http=http_connection.HttpConnection).http


def test_a_default_audit_log_that_cannot_be_written_is_only_reported(monkeypatch, tmp_path, caplog):
    (tmp_path / "wirebroker").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    server._check_audit_log(DEFAULTS, SystemClock())
    assert "the console cannot make changes: cannot write the audit log" in caplog.text
