"""Requests to a broker's HTTP interface are bounded."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import TYPE_CHECKING

import pytest

from wirebroker.client import http_client
from wirebroker.client.errors import ClientError
from wirebroker.client.http_client import HttpBounds, http_request
from wirebroker.console.broker_http.control_calls import controlled_clock, run_control
from wirebroker.console.model.settings import ClusterSettings

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def answering(status: int, body: bytes, **headers: str) -> Iterator[tuple[str, list[str | None]]]:
    """Serve one response; yield the address and the tokens that were received."""
    tokens: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            tokens.append(self.headers["Authorization"])
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            with contextlib.suppress(ConnectionError):
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", tokens
        finally:
            server.shutdown()
            thread.join()


async def test_the_token_is_sent_and_redirects_are_not_followed():
    with answering(302, b"moved", Location="http://127.0.0.1:1/") as (url, tokens):
        reply = await http_request("secret", "GET", url)
        assert (reply.status, reply.body, tokens) == (302, b"moved", ["Bearer secret"])


async def test_a_large_response_is_refused(monkeypatch):
    monkeypatch.setattr(http_client, "_CONTROL_BOUNDS", HttpBounds(8.0, 1000))
    with (
        answering(200, b"x" * 100_000) as (url, _),
        pytest.raises(ClientError, match="is larger than"),
    ):
        await http_request(None, "GET", url)


async def test_an_address_without_a_server_is_named():
    with pytest.raises(ClientError, match=r"http://127.0.0.1:1 does not respond"):
        await http_request(None, "GET", "http://127.0.0.1:1")


@contextlib.contextmanager
def dripping(part: bytes) -> Iterator[str]:
    """Serve a response that sends a part again and again; yield the address."""
    has_ended = threading.Event()

    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(OSError):
                while not has_ended.wait(0.05):
                    self.request.sendall(part)

    with ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/metrics"
        finally:
            has_ended.set()
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("part", [b"H", b"HTTP/1.1 100 Continue\r\n\r\n"])
async def test_the_head_of_a_response_has_a_deadline(monkeypatch, part):
    monkeypatch.setattr(http_client, "_CONTROL_BOUNDS", HttpBounds(1.0, 1000))
    async with asyncio.timeout(60):
        with dripping(part) as url, pytest.raises(ClientError, match="takes longer than 1 s"):
            await http_request(None, "GET", url)


@pytest.mark.parametrize(
    "url", ["http://broker..1:9/metrics", f"http://{'a' * 64}:9/metrics", "http://127.0.0.1:1/é"]
)
async def test_an_address_that_cannot_be_written_is_named(url):
    with pytest.raises(ClientError, match="does not respond"):
        await http_request(None, "GET", url)


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (404, b"no such path", "is not the HTTP listener of a broker in test mode"),
        (200, b"<html>", "is not the HTTP listener of a broker in test mode"),
        (200, b"[]", "is not the HTTP listener of a broker in test mode"),
        (200, b'{"now_ms": "soon"}', "is not the HTTP listener of a broker in test mode"),
        (401, b"", "refuses the token: set wirebroker.http.token"),
        (400, b'{"error": "frozen"}', "frozen"),
        (200, b"[" * 100_000, "is not the HTTP listener of a broker in test mode"),
    ],
    ids=["other-server", "html", "list", "text", "token", "error", "deep"],
)
async def test_responses_of_other_programs_are_explained(status, body, message):
    with answering(status, body) as (url, _):
        cluster = ClusterSettings("dev", "b:1", {"wirebroker.test.url": url})
        with pytest.raises(ClientError, match=message):
            await controlled_clock(cluster)


async def test_a_command_returns_its_result():
    with answering(200, b"[1, 2]") as (url, _):
        cluster = ClusterSettings("dev", "b:1", {"wirebroker.test.url": url})
        assert await run_control(cluster, "faults", {}) == [1, 2]
