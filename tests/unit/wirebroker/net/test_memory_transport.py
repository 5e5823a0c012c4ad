"""The real connection over memory behaves as over a socket."""

import asyncio
import contextvars

import pytest

from tests.unit.wirebroker.net.network_server import Server, frame, lines, serve
from wirebroker.base.clock import next_turn
from wirebroker.net.memory_transport import MemoryPeer, connect
from wirebroker.request.session import ANSWER_IS_DUE, OUTPUT_IS_UNSENT


def body(answer: bytes) -> bytes:
    return answer[8:]


async def asked(peer: MemoryPeer, data: bytes) -> bytes:
    return body(await peer.exchange(frame(3, data)))


async def test_requests_are_answered_in_order_whatever_the_chunks():
    async with serve() as server:
        peer = connect(server.table)
        bodies = [bytes([number + 1]) * size for number, size in enumerate((0, 9, 100_000, 5))]
        data = b"".join(frame(3, content) for content in bodies)
        for start in range(0, len(data), 7001):
            peer.send(data[start : start + 7001])
        for content in bodies:
            assert body(await peer.receive()) == content
        assert len(server.table) == 1


async def test_next_request_waits_for_the_previous_response():
    async with serve() as server:
        peer = connect(server.table)
        peer.send(frame(12, b"a") + frame(3, b"b"))
        await server.until(lambda: server.waiting)
        (connection,) = server.table._connections
        assert connection.session.pauses == ANSWER_IS_DUE
        server.waiting[0].set_result([b"A"])
        assert [body(await peer.receive()) for _ in range(2)] == [b"A", b"b"]


async def test_a_slow_reader_is_served_when_it_reads():
    async with serve() as server:
        peer = connect(server.table)
        large = bytes(300_000)
        count = 5
        peer.send(frame(3, large) * count)
        await server.until(lambda: _pauses(server) & OUTPUT_IS_UNSENT)
        for _ in range(count):
            assert body(await peer.receive()) == large
        assert await asked(peer, b"next") == b"next"
        assert not _pauses(server)


def _pauses(server: Server) -> int:
    (connection,) = server.table._connections
    return connection.session.pauses


async def test_malformed_frame_closes_it_with_one_log_line(caplog):
    async with serve() as server:
        peer = connect(server.table)
        peer.send(frame(3, b"first") + b"GET / HTTP/1.1\r\n")
        assert body(await peer.receive()) == b"first"
        with pytest.raises(ConnectionError):
            await peer.receive()
        assert not len(server.table)
        assert len(lines(caplog)) == 1


async def test_end_closes_it_and_cancels_waiting_requests():
    async with serve() as server:
        peer = connect(server.table)
        peer.send(frame(12, b"a"))
        await server.until(lambda: server.waiting)
        (connection,) = server.table._connections
        peer.end()
        await server.until(lambda: connection.session.has_ended)
        server.waiting[0].set_result([b"A"])
        assert body(await peer.receive()) == b"A"
        await server.until(lambda: not len(server.table))
        with pytest.raises(ConnectionError):
            await asyncio.wait_for(peer.receive(), 20)


async def test_readiness_callback_runs_in_the_registered_context():
    name = contextvars.ContextVar("name", default="nobody")
    async with serve() as server:
        names = []
        original = server.table.dispatch

        def dispatch(data, session):
            names.append(name.get())
            return original(data, session)

        server.table.dispatch = dispatch
        context = contextvars.copy_context()
        context.run(name.set, "broker")
        peer = context.run(connect, server.table)
        name.set("client")
        assert await asked(peer, b"a") == b"a"
        assert names == ["broker"]


async def test_data_for_a_closing_connection_is_ignored():
    async with serve() as server:
        reports = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _loop, context: reports.append(context)
        )
        peer = connect(server.table)
        assert await asked(peer, b"first") == b"first"
        (connection,) = server.table._connections
        peer.send(frame(3, b"next"))
        connection.close()
        with pytest.raises(ConnectionError):
            await peer.receive()
        await next_turn()
        assert not reports
