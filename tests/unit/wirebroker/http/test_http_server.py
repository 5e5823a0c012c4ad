"""The HTTP server: responses, allowed clients, and limits on peers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from typing import TYPE_CHECKING

import pytest

from tests.support.http.http_client import ask_http, parse_reply, send_http
from wirebroker.base.clock import next_turn
from wirebroker.config import Config, StartError
from wirebroker.http import conversation
from wirebroker.http.access import Access
from wirebroker.http.message import HttpAnswer, HttpError, HttpRequest
from wirebroker.http.opening import open_http
from wirebroker.http.server import HttpServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


def of_json(value: object) -> HttpAnswer:
    return HttpAnswer(json.dumps(value).encode(), content_type="application/json")


@contextlib.asynccontextmanager
async def serving(*, token: str | None = None) -> AsyncIterator[tuple[HttpServer, tuple[str, int]]]:
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setblocking(False)
    server = HttpServer([listening], Access(token, is_open=False))

    async def echo(request: HttpRequest) -> HttpAnswer:
        return of_json([request.method, request.path, dict(request.query)])

    async def double(request: HttpRequest) -> HttpAnswer:
        return of_json(request.json() * 2)

    async def fail(_request: HttpRequest) -> HttpAnswer:
        raise RuntimeError("deliberate failure")

    async def refuse(_request: HttpRequest) -> HttpAnswer:
        raise HttpError(409, "not now")

    server.routes.add("GET", "/echo", echo)
    server.routes.add("GET", "/below/", echo)
    server.routes.add("POST", "/double", double)
    server.routes.add("GET", "/fail", fail)
    server.routes.add("GET", "/refuse", refuse)
    server.routes.add("GET", "/open", echo, is_open=True)
    await server.start()
    try:
        yield server, server.addresses[0]
    finally:
        await server.close()


async def test_route_gets_the_request_and_answers():
    async with serving() as (_, address):
        reply = await ask_http(address, "/echo?a=1&a=2&b=")
        assert (reply.status, reply.json()) == (200, ["GET", "/echo", {"a": "1", "b": ""}])
        assert reply.headers["content-type"] == "application/json"
        assert (await ask_http(address, "/below/a%20b")).json()[1] == "/below/a b"
        assert (await ask_http(address, "/double", method="POST", body=b"21")).json() == 42


async def test_connection_is_reused_for_several_requests():
    async with serving() as (_, address):
        first = b"GET /echo HTTP/1.1\r\nHost: localhost\r\n\r\n"
        last = b"GET /echo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        assert (await send_http(address, first * 3 + last)).count(b"HTTP/1.1 200") == 4


async def test_large_input_of_a_client_does_not_block_the_loop():
    turns = 0
    turns_at_request: list[int] = []

    async def note(request: HttpRequest) -> HttpAnswer:
        turns_at_request.append(turns)
        return of_json(len(request.body))

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await next_turn()
            turns += 1

    async with serving() as (server, address):
        server.routes.add("POST", "/note", note)
        counting = asyncio.create_task(count_turns())
        head = b"POST /note HTTP/1.1\r\nHost: localhost\r\n"
        requests = (head + b"\r\n") * 200
        await send_http(address, requests + head + b"Connection: close\r\n\r\n")
        assert len(set(turns_at_request)) == len(turns_at_request) == 201
        chunked = head + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
        before = turns
        reply = await send_http(address, chunked + b"1\r\nx\r\n" * 9000 + b"0\r\n\r\n")
        assert parse_reply(reply).json() == 9000
        assert turns_at_request[-1] - before >= 9000 // conversation._CHUNKS_AT_ONCE
        counting.cancel()


async def test_body_with_two_lengths_is_refused_and_ends_the_connection():
    async with serving() as (_, address):
        both = b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n21\r\n0\r\n\r\n"
        follows = b"GET /open HTTP/1.1\r\nHost: localhost\r\n\r\n"
        sent = b"POST /double HTTP/1.1\r\nHost: localhost\r\n" + both + follows
        replied = await send_http(address, sent)
        assert parse_reply(replied).status == 400
        assert replied.count(b"HTTP/1.1") == 1


async def test_head_has_no_body():
    async with serving() as (_, address):
        reply = await ask_http(address, "/echo", method="HEAD")
        assert (reply.status, reply.body) == (200, b"")
        assert int(reply.headers["content-length"]) > 0


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/nowhere", b"", 404),
        ("POST", "/echo", b"{}", 405),
        ("POST", "/double", b"{", 400),
        ("POST", "/double", b"[" * 100_000, 400),
        ("GET", "/fail", b"", 500),
        ("GET", "/refuse", b"", 409),
        ("GET", "*", b"", 400),
        ("GET", "/echo?" + "a&" * 200, b"", 400),
    ],
)
async def test_failed_request_gets_an_error_response(method, path, body, status, caplog):
    async with serving() as (_, address):
        reply = await ask_http(address, path, method=method, body=body)
        assert reply.status == status, reply.text
        assert reply.text.count("\n") == 1
    assert ("deliberate failure" in caplog.text) is (status == 500)


async def test_too_long_head_or_body_is_refused():
    async with serving() as (_, address):
        head = b"GET /echo HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 40_000 + b"\r\n\r\n"
        assert parse_reply(await send_http(address, head)).status == 431
        body = b"POST /double HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000000\r\n\r\n"
        assert parse_reply(await send_http(address, body + bytes(1_100_000))).status == 413


@pytest.mark.parametrize("sent", [b"\x00\x00\x00\x10" + bytes(16), b"GET\r\n\r\n", b"\r\n" * 9])
async def test_invalid_http_closes_the_connection(sent):
    async with serving() as (_, address):
        replied = await send_http(address, sent + b"\r\n\r\n")
        assert replied.startswith(b"HTTP/1.1 400") or replied == b""
        assert (await ask_http(address, "/echo")).status == 200


async def test_silent_connection_is_closed_after_a_timeout(monkeypatch):
    monkeypatch.setattr(conversation, "_REQUEST_S", 0.02)
    async with serving() as (_, address):
        assert await send_http(address, b"GET /echo HTT") == b""


async def test_silent_connections_are_closed_for_new_ones(monkeypatch):
    monkeypatch.setattr("wirebroker.http.server._MOST_CONNECTIONS", 2)
    async with serving() as (_, address):
        connections = [await asyncio.open_connection(*address) for _ in range(5)]
        assert (await ask_http(address, "/echo")).status == 200
        closed = [await reader.read() for reader, _ in connections[:3]]
        assert closed == [b""] * 3
        for _, writer in connections:
            writer.close()


@pytest.mark.parametrize("sent", [b"", b"GET /", b"GET /open HTTP/1.1\r\nHost: localhost\r\n\r\n"])
async def test_probe_is_answered_despite_many_later_connections(monkeypatch, sent):
    """All of them are connected before the server reads anything."""
    monkeypatch.setattr("wirebroker.http.server._MOST_CONNECTIONS", 2)
    async with serving() as (_, address):
        with socket.create_connection(address) as probe:
            probe.sendall(b"GET /open HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            for _ in range(90):
                with socket.create_connection(address) as other:
                    other.sendall(sent)
            probe.setblocking(False)
            reader, writer = await asyncio.open_connection(sock=probe)
            assert parse_reply(await reader.read()).status == 200
            writer.close()


async def test_address_with_the_most_connections_loses_one(monkeypatch):
    monkeypatch.setattr("wirebroker.http.server._MOST_CONNECTIONS", 3)
    monkeypatch.setattr(conversation, "_NEW_S", 0.01)
    async with serving() as (_, address), contextlib.AsyncExitStack() as stack:
        sources = ("127.0.0.2", "127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.1")
        readers: list[asyncio.StreamReader] = []
        for source in sources:
            reader, writer = await asyncio.open_connection(*address, local_addr=(source, 0))
            stack.callback(writer.close)
            readers.append(reader)
        assert [await reader.read() for reader in readers[1:3]] == [b"", b""]
        assert [reader.at_eof() for reader in readers] == [False, True, True, False, False]


async def test_concurrent_requests_are_limited(monkeypatch):
    monkeypatch.setattr("wirebroker.http.server._MOST_CONNECTIONS", 2)
    received, go_on = asyncio.Semaphore(0), asyncio.Event()

    async def wait(_request: HttpRequest) -> HttpAnswer:
        received.release()
        await go_on.wait()
        return HttpAnswer.of_text("done")

    async with serving() as (server, address):
        server.routes.add("GET", "/wait", wait)
        requests = [asyncio.create_task(ask_http(address, "/wait")) for _ in range(2)]
        for _ in requests:
            await received.acquire()
        replied = b""
        with contextlib.suppress(ConnectionError):  # before or after it has sent: chance
            replied = await send_http(address, b"GET /echo HTTP/1.0\r\n\r\n")
        assert replied == b""
        go_on.set()
        assert [reply.status for reply in await asyncio.gather(*requests)] == [200, 200]


async def test_clients_that_do_not_read_do_not_block_probes():
    """Each pipelines many requests for a long page that it never reads."""
    pages = 0
    may_answer = asyncio.Event()

    async def page(_request: HttpRequest) -> HttpAnswer:
        nonlocal pages
        pages += 1
        await may_answer.wait()
        return HttpAnswer(bytes(200_000), content_type="text/plain")

    async with serving() as (server, address), contextlib.AsyncExitStack() as stack:
        server.routes.add("GET", "/page", page)
        request = b"GET /page HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for _ in range(80):
            peer = stack.enter_context(socket.create_connection(address))
            peer.sendall(request * 300)
        for _ in range(25):
            assert (await ask_http(address, "/open")).status == 200
        while pages < 16:
            await next_turn()
        assert pages == 16
        may_answer.set()
        before = 0
        while before != pages:  # the system buffers some MB of each, and no more pages are rendered
            before = pages
            for _ in range(200):
                await next_turn()
        assert pages < 80 * 100
        assert (await ask_http(address, "/echo")).status == 200


async def test_only_requests_with_the_token_are_answered():
    async with serving(token="secret") as (_, address):
        assert (await ask_http(address, "/echo")).status == 401
        wrong = {"Authorization": "Bearer secreT"}
        assert (await ask_http(address, "/echo", headers=wrong)).status == 401
        right = {"Authorization": "Bearer secret"}
        assert (await ask_http(address, "/echo", headers=right)).status == 200
        assert (await ask_http(address, "/open")).status == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:9404", 200),
        ("127.0.0.1:9404", 200),
        ("[::1]:9404", 200),
        ("evil.example:9404", 403),
        ("10.0.0.1", 403),
    ],
)
async def test_host_header_is_checked(host, status):
    async with serving() as (_, address):
        assert (await ask_http(address, "/echo", headers={"Host": host})).status == status


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://localhost:3000", 200),
        ("http://[::1]", 200),
        ("http://evil.example", 403),
        ("http://127.0.0.1.evil.example", 403),
        ("null", 403),
        ("", 403),
    ],
)
async def test_origin_header_is_checked(origin, status):
    async with serving() as (_, address):
        reply = await ask_http(address, "/echo", headers={"Origin": origin})
        assert reply.status == status


def http_config(listeners: str, **settings: str) -> Config:
    return Config({"wirebroker.http.listeners": listeners} | settings)


async def test_non_loopback_address_requires_a_token_or_an_explicit_choice():
    with pytest.raises(StartError, match="reachable from other machines"):
        await open_http(http_config("0.0.0.0:0"), not_ready_reason=lambda: None)
    for choice in ({"wirebroker.http.token": "t"}, {"wirebroker.http.open": "true"}):
        server = await open_http(http_config("0.0.0.0:0", **choice), not_ready_reason=lambda: None)
        assert server.addresses[0].host == "0.0.0.0"
        await server.close()


async def test_port_in_use_is_an_error_unless_http_is_optional(caplog):
    with socket.create_server(("127.0.0.1", 0)) as socket_in_use:
        address = f"127.0.0.1:{socket_in_use.getsockname()[1]}"
        with pytest.raises(StartError, match="cannot listen on 127"):
            await open_http(http_config(address), not_ready_reason=lambda: None)
        optional = http_config(address, **{"wirebroker.http.optional": "true"})
        server = await open_http(optional, not_ready_reason=lambda: None)
        assert not server.addresses
        assert "continuing without it" in caplog.text
        await server.close()
