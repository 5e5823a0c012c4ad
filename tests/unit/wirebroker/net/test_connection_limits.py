"""Real sockets: deadlines, idle time, limits of connections and memory, clean close."""

import asyncio
import errno
import gc
import logging
import socket
import struct
from pathlib import Path

import pytest

from tests.unit.wirebroker.net.network_server import Client, frame, lines, serve
from wirebroker.base.clock import next_turn
from wirebroker.config import Config
from wirebroker.net.connection import Connection
from wirebroker.net.frames.frame_buffer import FrameBuffer
from wirebroker.net.listeners.listener import (
    Listener,
    bind,
    data_files_within,
    raise_open_file_limit,
    sockets_within,
)
from wirebroker.net.settings import NetworkSettings


async def test_late_frame_closes_only_its_connection(caplog):
    with caplog.at_level(logging.INFO):
        async with serve(frame_deadline_ms=100) as server:
            slow, other = await server.client(), await server.client()
            data = frame(3, b"x" * 1000)
            for position in range(6):
                slow.send(data[position : position + 1])
                assert await other.ask(3, b"quick") == b"quick"
            assert await slow.is_closed()
            assert await other.ask(3, b"quick") == b"quick"
            assert server.table.metrics.requests_late == 1
    (line,) = lines(caplog)
    assert "its request timed out" in line


@pytest.mark.parametrize("sent", [1, 4, 5])
async def test_slowly_arriving_large_frame_is_late(sent):
    async with serve(frame_deadline_ms=100) as server:
        client = await server.client()
        client.send(frame(3, b"x" * (1 << 20))[:sent])
        assert await client.is_closed()


async def test_frame_after_a_waiting_request_is_not_late():
    async with serve(frame_deadline_ms=10_000) as server:
        client = await server.client()
        client.send(frame(12, b"", 1) + frame(3, b"half", 2)[:6])
        await server.until(lambda: server.waiting)
        assert not server.table._watched
        server.waiting[0].set_result([b"1"])
        assert await client.receive() == (1, b"1")
        client.send(frame(3, b"half", 2)[6:])
        assert await client.receive() == (2, b"half")
        assert not server.table._watched


async def test_idle_connections_are_closed_except_with_pending_responses(caplog):
    with caplog.at_level(logging.INFO):
        async with serve(connections_max_idle_ms=150) as server:
            idle, waiting = await server.client(), await server.client()
            waiting.send(frame(12, b"", 5))
            assert await idle.is_closed()
            assert len(server.table) == 1
            assert server.table.metrics.connections_expired == {"PLAINTEXT": 1}
            server.waiting[0].set_result([b"late but welcome"])
            assert await waiting.receive() == (5, b"late but welcome")
    assert "idle" in lines(caplog)[0]


async def test_negative_idle_time_disables_the_limit():
    async with serve(connections_max_idle_ms=-1) as server:
        client = await server.client()
        assert await client.ask(3, b"a") == b"a"
        assert server.table._idle_timer is None


async def test_connections_per_address_are_limited(caplog):
    with caplog.at_level(logging.INFO):
        async with serve(max_connections_per_ip=2) as server:
            first, second = await server.client(), await server.client()
            await first.ask(3)
            await second.ask(3)
            third = await server.client()
            assert await third.is_closed()
            await first.close()
            await server.until(lambda: len(server.table) == 1)
            assert await (await server.client()).ask(3, b"room") == b"room"
    assert "max.connections.per.ip" in lines(caplog)[0]


@pytest.mark.parametrize("limit", ["max_connections", "max_sockets"])
async def test_connections_beyond_the_limit_wait_in_the_backlog(limit, caplog):
    with caplog.at_level(logging.INFO):
        async with serve(**{limit: 2}) as server:
            first, second = await server.client(), await server.client()
            await first.ask(3)
            await second.ask(3)
            third = await server.client()
            third.send(frame(3, b"waits"))
            assert await first.ask(3, b"still served") == b"still served"
            assert len(server.table) == 2
            await second.close()
            assert (await third.receive())[1] == b"waits"
    assert len(lines(caplog)) == 1


async def test_shortage_of_descriptors_is_survived_and_logged_once(caplog, monkeypatch):
    with caplog.at_level(logging.INFO):
        async with serve() as server:
            real, shortages = server.listener._socket, [errno.EMFILE, errno.ENFILE, errno.EMFILE]

            class Short:
                def accept(self):
                    if shortages:
                        raise OSError(shortages.pop(), "too many open files")
                    return real.accept()

                def fileno(self):
                    return real.fileno()

                def close(self):
                    real.close()

            server.listener._socket = Short()
            client = await server.client()
            assert await client.ask(3, b"at last") == b"at last"
    (line,) = lines(caplog)
    assert "stops accepting connections" in line


def test_log_files_leave_half_of_the_limit_to_connections():
    assert data_files_within(1_000_000, wanted=32_768) == 32_768
    assert data_files_within(20_000, wanted=32_768) == 10_000 - 64
    assert sockets_within(20_000, data_files=10_000 - 64) == 10_000
    assert data_files_within(1024, wanted=32_768) == 448
    assert data_files_within(64, wanted=16) == 1


def test_connections_leave_descriptors_for_log_files():
    assert sockets_within(20_000, data_files=4096) == 20_000 - 4096 - 64
    assert sockets_within(1024, data_files=4096) == 512
    assert raise_open_file_limit() >= 256


async def test_close_lets_requests_in_flight_finish():
    async with serve() as server:
        idle, busy = await server.client(), await server.client()
        await idle.ask(3)
        busy.send(frame(12, b"", 9) + frame(3, b"not served any more"))
        await server.until(lambda: server.waiting)
        server.listener.close()
        closing = asyncio.create_task(server.table.close(grace_s=10))
        assert await idle.is_closed()
        server.waiting[0].set_result([b"done"])
        assert await busy.receive() == (9, b"done")
        assert await busy.is_closed()
        await closing


async def test_close_stops_waiting_after_the_grace_period(caplog):
    with caplog.at_level(logging.INFO):
        async with serve() as server:
            busy = await server.client()
            busy.send(frame(12))
            await server.until(lambda: server.waiting)
            await server.table.close(grace_s=0.05)
            assert await busy.is_closed()
            server.waiting[0].set_result([b"too late"])
            await next_turn()
    assert lines(caplog) == ["closing 1 connections with unanswered requests"]


async def test_large_frames_beyond_the_memory_budget_wait_and_arrive():
    async with serve(memory_budget_bytes=4 << 20) as server:
        size = 3 << 20
        clients = [await server.client() for _ in range(12)]
        other = await server.client()
        for number, client in enumerate(clients):
            client.send(frame(12, bytes([number]) * size, number))
        peak = 0
        answered_count = 0
        while answered_count < len(clients):
            peak = max(peak, server.table.budget.used_bytes)
            server.table.check()
            assert await other.ask(3, b"small ones are served") == b"small ones are served"
            for future in server.waiting:
                if not future.done():
                    future.set_result([b"ok"])
                    answered_count += 1
        for number, client in enumerate(clients):
            assert await client.receive() == (number, b"ok")
        assert [set(body) for body in sorted(server.bodies)] == [{n} for n in range(12)]
        assert peak <= (4 << 20) + size + 12 * (1 << 20)
        await server.until(lambda: server.table.budget.used_bytes == 0)


async def test_closed_connection_leaves_the_memory_queue():
    async with serve(memory_budget_bytes=1 << 20, frame_deadline_ms=2000) as server:
        size = 2 << 20
        clients = [await server.client() for _ in range(3)]
        for client in clients:
            client.send(frame(12, b"x" * size)[:-1000])
            await client.writer.drain()
        await server.until(lambda: server.table.budget._waiting)
        for client in clients:
            client.writer.transport.abort()
        await server.until(lambda: server.table.budget.used_bytes < 1 << 20)
        fresh = await server.client()
        fresh.send(frame(12, b"x" * size, 4))
        await server.until(lambda: server.waiting)
        server.waiting[0].set_result([b"ok"])
        assert await fresh.receive() == (4, b"ok")


async def test_a_connection_that_closes_within_a_large_frame_frees_its_memory_at_once():
    def alive() -> list[object]:
        return [item for item in gc.get_objects() if isinstance(item, Connection | FrameBuffer)]

    gc.collect()
    gc.disable()
    try:
        async with serve() as server:
            before = len(alive())
            client = await server.client()
            client.send(frame(3, b"x" * (2 << 20))[: 1 << 20])
            await server.until(lambda: server.table.budget.used_bytes > 1 << 19)
            assert len(alive()) == before + 2
            client.writer.transport.abort()
            await server.until(lambda: not len(server.table))
            assert len(alive()) == before
    finally:
        gc.enable()


async def test_accepted_sockets_have_the_configured_buffers_and_no_delay():
    async with serve(send_buffer_bytes=50_000) as server:
        client = await server.client()
        await client.ask(3)
        (connection,) = server.table._connections
        sock = connection._transport._socket
        # Linux doubles the requested size.
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == 2 * 50_000
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert connection.session.peer.startswith("127.0.0.1:")
        assert connection.session.local_port == server.listener.port
        assert connection.session.id.endswith("-0")


def backlog_of(config: Config) -> int:
    """Return the listen backlog: Send-Q of a listening socket in ss."""
    with bind("127.0.0.1", 0, NetworkSettings.from_config(config)) as sock:
        info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
        backlog: int = struct.unpack_from("=I", info, 28)[0]  # tcpi_sacked
        return backlog


def test_as_many_clients_may_wait_to_be_accepted_as_the_system_allows():
    allowed = int(Path("/proc/sys/net/core/somaxconn").read_text())
    assert backlog_of(Config()) == allowed
    assert backlog_of(Config({"socket.listen.backlog.size": "50"})) == 50
    assert backlog_of(Config({"socket.listen.backlog.size": "2000000000"})) == allowed


async def test_wildcard_address_means_ipv4_and_ipv6():
    async with serve() as server:
        settings = NetworkSettings()
        listener = Listener(server.table, "ANY", bind("", 0, settings))
        listener.start()
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
            client = Client(reader, writer)
            server.clients.append(client)
            assert await client.ask(3, b"v4") == b"v4"
            (connection,) = server.table._connections
            assert connection.session.peer.startswith("127.0.0.1:")
            assert connection.session.local_host == "127.0.0.1"
        finally:
            listener.close()
