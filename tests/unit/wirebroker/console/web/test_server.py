"""The console's connections and certificate."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn

from tests.support.console import fake_cluster as fake
from wirebroker.base.clock import SystemClock
from wirebroker.console.audit.audit_log import AuditError
from wirebroker.console.login.credential_file import CredentialError
from wirebroker.console.web import http_connection, server
from wirebroker.console.web.app import make_app
from wirebroker.console.web_settings import DEFAULTS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

REQUEST = b"GET /static/icon.svg HTTP/1.1\r\nHost: localhost\r\n\r\n"


@contextlib.asynccontextmanager
async def served() -> AsyncIterator[int]:
    """Serve a console in this process, and return its port."""
    collectors: Any = [fake.FakeCollector(fake.snapshot())]
    app = make_app(collectors, SystemClock())
    ready = asyncio.Event()
    listening = server.listening_socket("127.0.0.1", 0)
    running = server._Server(server._config(app, DEFAULTS), ready.set)
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
