"""Real sockets: order, pauses, slow readers, file slices, misbehaving peers and handlers."""

import asyncio
import logging
import select
import socket
import struct

import pytest

from tests.unit.wirebroker.net.network_server import frame, lines, serve
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.net.connection import Connection
from wirebroker.net.dispatch import Dispatcher
from wirebroker.request.handlers import Cost, Registry
from wirebroker.request.session import THROTTLED


async def test_requests_are_answered_in_order_whatever_their_sizes():
    async with serve() as server:
        client = await server.client()
        sizes = [0, 10, 100_000, 5, 3_000_000, 1, 70_000]
        bodies = [bytes([number + 1]) * size for number, size in enumerate(sizes)]
        client.send(b"".join(frame(3, body, number) for number, body in enumerate(bodies)))
        for number, body in enumerate(bodies):
            assert await client.receive() == (number, body)


async def test_pipelined_requests_do_not_starve_other_connections():
    async with serve() as server:
        client, other = await server.client(), await server.client()
        count = 20_000
        client.send(b"".join(frame(3, b"x" * 20, number) for number in range(count)))
        assert await other.ask(3, b"me too") == b"me too"
        for number in range(count):
            assert (await client.receive())[0] == number


async def test_next_request_waits_for_the_previous_response():
    async with serve() as server:
        client = await server.client()
        client.send(frame(12, b"a", 1) + frame(12, b"b", 2) + frame(3, b"c", 3))
        await server.until(lambda: server.waiting)
        client.send(frame(3, b"d", 4))
        await client.writer.drain()
        other = await server.client()
        assert await other.ask(3, b"overwrites the shared memory" * 10)
        assert server.bodies == [b"a"]
        server.waiting[0].set_result([b"A"])
        assert await client.receive() == (1, b"A")
        await server.until(lambda: len(server.waiting) == 2)
        assert server.bodies == [b"a", b"b"]
        server.waiting[1].set_result([b"B"])
        assert [await client.receive() for _ in range(3)] == [(2, b"B"), (3, b"c"), (4, b"d")]


async def test_throttled_connection_serves_nothing_until_the_throttle_ends():
    async with serve() as server:
        client = await server.client()
        assert await client.ask(3, b"1") == b"1"
        (connection,) = server.table._connections
        began = server.table.loop.time()
        connection.throttle(0.05)
        connection.throttle(0.2)
        connection.throttle(0.1)  # the one that ends last counts
        assert connection.session.pauses == THROTTLED
        client.send(frame(3, b"2", 2) + frame(3, b"3", 3))
        assert [await client.receive(), await client.receive()] == [(2, b"2"), (3, b"3")]
        assert server.table.loop.time() - began >= 0.2
        assert connection.session.pauses == 0


async def test_request_above_quota_delays_the_following_ones():
    async with serve() as server:
        client = await server.client()
        client.send(frame(12, b"", 1) + frame(12, b"", 2))
        await server.until(lambda: server.waiting)
        (connection,) = server.table._connections
        dispatch = connection._dispatch

        def throttling(data, session):
            connection.throttle(0.1)
            return dispatch(data, session)

        connection._dispatch = throttling
        began = server.table.loop.time()
        server.waiting[0].set_result(None)
        client.send(frame(3, b"3", 3) + frame(3, b"4", 4) + frame(3, b"5", 5))
        await server.until(lambda: len(server.waiting) == 2)
        server.waiting[1].set_result(None)
        assert [await client.receive() for _ in range(3)] == [(3, b"3"), (4, b"4"), (5, b"5")]
        assert server.table.loop.time() - began >= 0.3


async def test_request_without_response_lets_the_next_one_through():
    async with serve() as server:
        client = await server.client()
        client.send(frame(12, b"", 1) + frame(3, b"next", 2))
        await server.until(lambda: server.waiting)
        server.waiting[0].set_result(None)
        assert await client.receive() == (2, b"next")


async def test_response_to_a_disconnected_peer_is_dropped():
    async with serve() as server:
        client = await server.client()
        client.send(frame(12, b"", 1) + frame(12, b"", 2))
        await server.until(lambda: server.waiting)
        client.writer.transport.abort()
        server.waiting[0].set_result([b"x" * 100])
        await server.until(lambda: len(server.table) == 0 or len(server.waiting) == 2)
        for future in server.waiting[1:]:
            future.set_result([b"x" * 100])
        await server.until(lambda: len(server.table) == 0)


async def test_slow_reader_uses_no_memory_and_is_served_when_it_reads():
    async with serve() as server:
        client = await server.client()
        answer = b"y" * 400_000
        server.pieces = [answer]
        client.reader._transport.pause_reading()
        for number in range(50):
            client.send(frame(1, b"", number))
        await client.writer.drain()
        (connection,) = server.table._connections
        await server.until(lambda: connection.session.pauses)
        other = await server.client()
        assert await other.ask(3, b"others are served") == b"others are served"
        assert connection._queue.unsent_bytes <= len(answer) + (64 << 10)
        client.reader._transport.resume_reading()
        for number in range(50):
            assert await client.receive() == (number, answer)


async def test_malformed_frame_closes_its_connection_with_one_log_line(caplog):
    with caplog.at_level(logging.INFO):
        async with serve() as server:
            bad, good = await server.client(), await server.client()
            assert await good.ask(3, b"1") == b"1"
            bad.send(frame(3, b"fine") + b"GET / HTTP/1.1\r\n\r\n")
            assert (await bad.receive())[1] == b"fine"
            assert await bad.is_closed()
            assert await good.ask(3, b"2") == b"2"
    (line,) = lines(caplog)
    assert line.startswith("closing 127.0.0.1:")
    assert line.endswith("on PLAINTEXT: an HTTP client is talking to the Kafka port")


async def test_a_handler_may_close_the_connection(caplog):
    with caplog.at_level(logging.INFO):
        async with serve() as server:
            client = await server.client()
            client.send(frame(0))
            assert await client.is_closed()
    (line,) = lines(caplog)
    assert line.endswith("acks=0 failed")


@pytest.mark.parametrize("result", ["sync", "future"])
async def test_a_failing_handler_is_logged_once_with_its_traceback(result, caplog):
    with caplog.at_level(logging.INFO):
        async with serve() as server:
            client = await server.client()
            if result == "sync":
                server.pieces = None
                client.send(frame(1))
            else:
                client.send(frame(12))
                await server.until(lambda: server.waiting)
                server.waiting[0].set_exception(TypeError("ours"))
            assert await client.is_closed()
    (record,) = [record for record in caplog.records if record.levelno >= logging.INFO]
    assert record.levelno == logging.ERROR
    assert record.exc_info
    assert record.exc_info[0] is TypeError


@pytest.mark.parametrize("count", [1, 2])
async def test_dispatcher_error_closes_only_its_connection(count, caplog):
    async with serve() as server:
        good = await server.client()
        assert await good.ask(3, b"1") == b"1"
        dispatch = server.table.dispatch

        def fail(_frame, _info):
            raise MemoryError("ours")

        server.table.dispatch = fail
        bad = await server.client()
        bad.send(frame(3, b"x") * count)
        assert await bad.is_closed()
        server.table.dispatch = dispatch
        assert await good.ask(3, b"2") == b"2"
    (record,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert record.exc_info
    assert record.exc_info[0] is MemoryError


async def test_requests_before_a_half_close_are_answered():
    async with serve() as server:
        client = await server.client()
        server.pieces = [b"z" * 3_000_000]
        client.send(frame(1, b"", 1))
        client.writer.write_eof()
        assert await client.receive() == (1, b"z" * 3_000_000)
        assert await client.is_closed()


@pytest.mark.parametrize("request_key", [3, 12], ids=["answered at once", "waits"])
async def test_disconnected_peer_takes_one_loop_turn(request_key, monkeypatch):
    """Peers that repeatedly connect, send and leave delay all later ones."""
    turns: list[Connection] = []

    def count(connection):
        turns.append(connection)
        on_readable(connection)

    on_readable = Connection._on_readable
    monkeypatch.setattr(Connection, "_on_readable", count)
    async with serve() as server:
        cancel_when_ended(server)
        for _ in range(5):
            peer = server.peer()
            peer.sendall(frame(request_key, b"for nothing", 1))
            peer.close()
        await server.until(lambda: server.table.metrics.connections_closed["PLAINTEXT"] == 5)
    assert len(turns) == len(set(turns)) == 5


class Batch:
    """Several peers whose requests are served in one batch, and an action during the third."""

    def __init__(self, server, count, at_third):
        self.peers = [server.peer() for _ in range(count)]
        self.arrived: list[int] = []
        self._at_third = at_third
        server.pieces = self

    def ask(self):
        for number, peer in enumerate(self.peers):
            peer.send(frame(1, b"", number))

    def __iter__(self):
        """Yield a response's pieces; note how many other responses have arrived by then."""
        self.arrived.append(sum(bool(select.select([peer], [], [], 0)[0]) for peer in self.peers))
        if len(self.arrived) == 3:
            self._at_third()
        return iter([b"an answer"])


def expected(number):
    return struct.pack(">ii", 4 + len(b"an answer"), number) + b"an answer"


@pytest.mark.parametrize(("count", "arrived"), [(8, [0] * 8), (3, [0, 1, 2])])
async def test_small_responses_to_several_peers_are_sent_together(count, arrived):
    async with serve() as server:
        batch = Batch(server, count, lambda: None)
        await server.until(lambda: len(server.table) == count)
        batch.ask()
        await server.until(lambda: len(batch.arrived) == count)
        assert batch.arrived == arrived
        for number, peer in enumerate(batch.peers):
            assert peer.recv(100) == expected(number)


async def test_held_response_is_sent_before_its_connection_ends():
    async with serve() as server:
        batch = Batch(
            server, 8, lambda: [connection.end() for connection in list(server.table._connections)]
        )
        await server.until(lambda: len(server.table) == 8)
        batch.ask()
        await server.until(lambda: len(server.table) == 0)
        ends = [(peer.recv(100), peer.recv(1)) for peer in batch.peers[:2]]
        assert ends == [(expected(0), b""), (expected(1), b"")]


async def test_held_response_is_dropped_with_a_closed_connection(caplog):
    async with serve() as server:
        batch = Batch(
            server,
            8,
            lambda: [connection.close() for connection in list(server.table._connections)],
        )
        await server.until(lambda: len(server.table) == 8)
        batch.ask()
        await server.until(lambda: len(server.table) == 0)
        assert [peer.recv(1) for peer in batch.peers[:2]] == [b"", b""]
    assert not lines(caplog, logging.WARNING)


# -- a peer that leaves while its request waits --


def cancel_when_ended(server):
    """Make Heartbeat wait like JoinGroup: only while its peer is connected."""

    def wait(broker, request):
        future = waits(broker, request)
        request.session.when_ended(future.cancel)
        return future

    waits = server._wait
    registry = Registry()
    registry.handles_raw(ApiKey.HEARTBEAT)(wait)
    registry.handles_raw(ApiKey.METADATA)(server._echo)
    server.table.dispatch = Dispatcher(None, registry)


def ended_by_closing(peer):
    peer.close()


def ended_by_reset(peer):
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()


def ended_by_half(peer):
    peer.shutdown(socket.SHUT_WR)


async def test_request_coroutines_start_before_a_disconnect_cancels_them():
    started, called = [], []

    async def inner():
        started.append("inner")
        await asyncio.Event().wait()

    async def outer(coroutine):
        started.append("outer")
        await coroutine

    def handler(broker, request):
        called.append(request)
        request.session.end()
        return outer(inner())

    async with serve() as server:
        registry = Registry()
        registry.handles_raw(ApiKey.HEARTBEAT, cost=Cost.READS)(handler)
        server.table.dispatch = Dispatcher(None, registry)
        peer = server.peer()
        peer.sendall(frame(12))
        await server.until(lambda: called)
        peer.close()
        await server.until(lambda: len(server.table) == 0)
    assert started == ["outer", "inner"]


@pytest.mark.parametrize("end", [ended_by_closing, ended_by_reset])
@pytest.mark.parametrize("behind", [b"", frame(12, b"behind", 2)], ids=["last", "not last"])
async def test_waiting_requests_are_cancelled_with_their_connection(end, behind, caplog):
    caplog.set_level(logging.INFO)

    async with serve() as server:
        cancel_when_ended(server)
        peer = server.peer()
        peer.sendall(frame(12, b"first", 1))
        await server.until(lambda: server.waiting)
        peer.sendall(behind)
        end(peer)
        await server.until(lambda: len(server.table) == 0)
        assert all(future.cancelled() for future in server.waiting)
    assert lines(caplog) == []


@pytest.mark.parametrize("end", [ended_by_closing, ended_by_reset])
async def test_throttled_connection_closes_when_its_peer_leaves(end):
    """A throttle may last days: a client that keeps reconnecting would accumulate connections."""
    async with serve() as server:
        peer = server.peer()
        await server.until(lambda: len(server.table) == 1)
        (connection,) = server.table._connections
        connection.throttle(3600)
        end(peer)
        await server.until(lambda: len(server.table) == 0)


@pytest.mark.parametrize("end", [ended_by_closing, ended_by_half])
async def test_connection_throttled_by_a_response_closes_if_the_peer_left(end):
    async with serve() as server:
        peer = server.peer()
        peer.sendall(frame(12, b"", 1))
        await server.until(lambda: server.waiting)
        (connection,) = server.table._connections
        end(peer)
        await server.until(lambda: connection.session.has_ended)
        connection.throttle(3600)
        server.waiting[0].set_result([b"late"])
        await server.until(lambda: len(server.table) == 0)


async def test_reset_closes_a_throttled_connection_with_unread_requests():
    async with serve() as server:
        peer = server.peer()
        await server.until(lambda: len(server.table) == 1)
        (connection,) = server.table._connections
        connection.throttle(3600)
        peer.sendall(frame(3, b"waits", 1))
        assert await (await server.client()).ask(3, b"time goes by") == b"time goes by"
        ended_by_reset(peer)
        await server.until(lambda: len(server.table) == 1)


async def test_requests_of_a_throttled_peer_before_its_end_are_served():
    async with serve() as server:
        peer = server.peer()
        await server.until(lambda: len(server.table) == 1)
        (connection,) = server.table._connections
        dispatch = connection._dispatch

        def throttling(data, session):
            connection.throttle(0.05)
            return dispatch(data, session)

        connection._dispatch = throttling
        peer.sendall(frame(3, b"1", 1) + frame(3, b"2", 2))
        peer.sendall(frame(3, b"3", 3))
        peer.shutdown(socket.SHUT_WR)
        await server.until(lambda: len(server.table) == 0)
        answers = b"".join(iter(lambda: peer.recv(100), b""))
        assert [answers.count(body) for body in (b"1", b"2", b"3")] == [1, 1, 1]


async def test_requests_sent_before_the_end_are_served():
    async with serve() as server:
        cancel_when_ended(server)
        peer = server.peer()
        peer.sendall(frame(12, b"waits", 1))
        await server.until(lambda: server.waiting)
        peer.sendall(frame(12, b"waits too", 2) + frame(3, b"leave", 3))
        peer.shutdown(socket.SHUT_WR)
        await server.until(lambda: len(server.table) == 0)
        assert server.bodies == [b"waits", b"waits too"]
        assert peer.recv(100)[-5:] == b"leave"
        assert peer.recv(1) == b""


async def test_half_closed_peer_gets_the_response_of_working_requests():
    async with serve() as server:
        peer = server.peer()
        peer.sendall(frame(12, b"works", 1))
        await server.until(lambda: server.waiting)
        peer.shutdown(socket.SHUT_WR)
        (connection,) = server.table._connections
        await server.until(lambda: connection.session.has_ended)
        server.waiting[0].set_result([b"done"])
        await server.until(lambda: len(server.table) == 0)
        assert peer.recv(100)[-4:] == b"done"


@pytest.mark.parametrize("end", [ended_by_closing, ended_by_reset, ended_by_half])
async def test_read_only_request_is_cancelled_when_its_peer_leaves(end, caplog):
    caplog.set_level(logging.INFO)
    async with serve() as server:
        peer = server.peer()
        peer.sendall(frame(15, b"reads", 1))
        await server.until(lambda: server.waiting)
        end(peer)
        await server.until(lambda: len(server.table) == 0)
        assert server.waiting[0].cancelled()
    assert lines(caplog) == []


async def test_later_requests_do_not_cancel_a_waiting_one():
    async with serve() as server:
        cancel_when_ended(server)
        client = await server.client()
        client.send(frame(12, b"a", 1))
        await server.until(lambda: server.waiting)
        client.send(frame(12, b"b", 2))
        assert await (await server.client()).ask(3, b"time goes by") == b"time goes by"
        server.waiting[0].set_result([b"A"])
        assert await client.receive() == (1, b"A")
        await server.until(lambda: len(server.waiting) == 2)
        client.send(frame(3, b"c", 3))
        assert await (await server.client()).ask(3, b"and by") == b"and by"
        assert not server.waiting[1].done()
        server.waiting[1].set_result([b"B"])
        assert [await client.receive() for _ in range(2)] == [(2, b"B"), (3, b"c")]
