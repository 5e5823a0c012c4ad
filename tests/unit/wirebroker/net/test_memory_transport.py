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


async def test_requests_are_answered_in_order_however_they_are_cut():
    async with serve() as server:
        peer = connect(server.table)
        bodies = [bytes([number + 1]) * size for number, size in enumerate((0, 9, 100_000, 5))]
        data = b"".join(frame(3, each) for each in bodies)
        for start in range(0, len(data), 7001):
            peer.send(data[start : start + 7001])
        for each in bodies:
            assert body(await peer.receive()) == each
        assert len(server.table) == 1


async def test_the_next_request_waits_for_the_answer_to_the_last():
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


async def test_what_is_no_frame_closes_it_with_one_line(caplog):
    async with serve() as server:
        peer = connect(server.table)
        peer.send(frame(3, b"first") + b"GET / HTTP/1.1\r\n")
        assert body(await peer.receive()) == b"first"
        with pytest.raises(ConnectionError):
            await peer.receive()
        assert not len(server.table)
        assert len(lines(caplog)) == 1


async def test_its_end_closes_it_and_gives_up_what_only_waits():
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


async def test_readiness_is_told_in_the_context_of_who_asked():
    name = contextvars.ContextVar("name", default="nobody")
    async with serve() as server:
        seen = []
        whole = server.table.dispatch

        def dispatch(data, session):
            seen.append(name.get())
            return whole(data, session)

        server.table.dispatch = dispatch
        context = contextvars.copy_context()
        context.run(name.set, "broker")
        peer = context.run(connect, server.table)
        name.set("client")
        assert await asked(peer, b"a") == b"a"
        assert seen == ["broker"]


async def test_what_arrives_at_a_connection_that_is_being_closed_is_nobodys_business():
    async with serve() as server:
        reports = []
        asyncio.get_running_loop().set_exception_handler(lambda _loop, told: reports.append(told))
        peer = connect(server.table)
        assert await asked(peer, b"first") == b"first"
        (connection,) = server.table._connections
        peer.send(frame(3, b"next"))
        connection.close()
        with pytest.raises(ConnectionError):
            await peer.receive()
        await next_turn()
        assert not reports
