"""TLS below a connection: plain bytes above, records below, bounds on both sides."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import ssl
import struct
import threading
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.security.tls_files import (
    authority,
    certificate,
    client_certificate,
    client_side,
)
from tests.support.security.tls_memory_client import TlsMemoryClient
from tests.unit.wirebroker.net.network_server import Client, frame, lines, serve
from wirebroker.base.clock import next_turn
from wirebroker.config.listeners.listeners import ListenerConfig
from wirebroker.config.security.principal_rules import principal_rules
from wirebroker.config.security.tls import StoreSettings, TlsSettings
from wirebroker.net.memory_transport import connect
from wirebroker.net.tls.tls_transport import TlsTransport
from wirebroker.security.tls.listeners_tls import ListenersTls
from wirebroker.storage.files import Files, FileSlice

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.unit.wirebroker.net.network_server import Server

FETCH, METADATA, HEARTBEAT = 1, 3, 12
MIB = 1 << 20


def settings(**options) -> TlsSettings:
    store = StoreSettings(certificates=certificate(), key=certificate())
    trusted = StoreSettings(certificates=authority().certificate, name="ssl.truststore")
    return TlsSettings(keystore=store, truststore=trusted, **options)


@contextlib.asynccontextmanager
async def serve_tls(
    tls: TlsSettings | None = None, *, deadline_s: float = 20.0, **network
) -> AsyncIterator[Server]:
    async with serve(**network) as server:
        doors = ListenersTls(server.table.loop, deadline_s=deadline_s)
        listener = ListenerConfig("PLAINTEXT", "127.0.0.1", 0, "SSL", None, None, tls or settings())
        await doors.open([listener])
        server.table.secure = doors.secure
        server.table.has_to_wait = doors.has_to_wait
        yield server


class _TlsClient(Client):
    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(OSError):  # a refusal that was already read is raised again
            await self.writer.wait_closed()


async def secured(server: Server, context: ssl.SSLContext) -> Client:
    streams = await asyncio.open_connection(
        "127.0.0.1", server.listener.port, ssl=context, server_hostname="localhost"
    )
    client = _TlsClient(*streams)
    server.clients.append(client)
    return client


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
async def test_requests_and_responses_of_any_size_pass(tmp_path: Path, version: str) -> None:
    async with serve_tls(settings(versions=(version,))) as server:
        client = await secured(server, client_side(tmp_path))
        negotiated = client.writer.get_extra_info("ssl_object").version()
        assert negotiated == version
        for size in (0, 1, 100, 16_384, 16_385, 65_536, 3 * MIB + 1):
            body = os.urandom(size)
            assert await client.ask(METADATA, body) == body
        # Many requests in one record, with the responses in order.
        client.send(b"".join(frame(METADATA, b"%d" % n, n) for n in range(100)))
        for n in range(100):
            assert await client.receive() == (n, b"%d" % n)


async def test_requests_in_many_small_records_are_all_served(tmp_path: Path) -> None:
    async with serve_tls() as server:
        client = await secured(server, client_side(tmp_path))
        crumbs = b"".join(frame(METADATA, b"%d" % n, n) for n in range(50))
        for start in range(0, len(crumbs), 2):  # one record each
            client.writer.write(crumbs[start : start + 2])
        for n in range(50):
            assert await client.receive() == (n, b"%d" % n)


async def test_request_in_the_same_record_is_served_after_the_first(tmp_path) -> None:
    async with serve_tls() as server:
        client = await secured(server, client_side(tmp_path))
        # A frame larger than one decryption step, with more after it in the same records.
        body = os.urandom(200_000)
        wait, large = frame(HEARTBEAT, b"w", 1), frame(METADATA, body, 2)
        client.send(wait + large + frame(METADATA, b"last", 3))
        await server.until(lambda: server.waiting)
        server.waiting[0].set_result([b"x"])
        assert await client.receive() == (1, b"x")
        assert await client.receive() == (2, body)
        assert await client.receive() == (3, b"last")


async def test_slow_reader_holds_one_chunk_of_a_file(tmp_path) -> None:
    data = os.urandom(4 * MIB)
    path = tmp_path / "file"
    path.write_bytes(data)
    files = Files()
    file = files.data(str(path))
    async with serve_tls() as server:
        server.pieces = [b"head", FileSlice(file, 0, len(data)), b"tail"]
        client = await secured(server, client_side(tmp_path))
        client.send(frame(FETCH, b"", 5))
        (connection,) = server.table._connections
        # A piece that isn't in the page cache is read first.
        await server.until(lambda: server.table.budget.used_bytes)
        transport = connection._transport
        assert isinstance(transport, TlsTransport)
        assert transport._sending.held_bytes + transport._engine.held_bytes < 80 << 10
        # The whole piece counts as request memory.
        assert 16 << 10 < server.table.budget.used_bytes < 80 << 10
        number, answer = await client.receive()
        assert number == 5
        assert answer == b"head" + data + b"tail"
        await server.until(lambda: not server.table.budget.used_bytes)
        # Nothing of it is retained.
        assert transport._sending.held_bytes == 0
    files.close_all()


async def test_slow_reader_holds_one_record_when_memory_is_short(tmp_path) -> None:
    async with serve_tls() as server:
        budget = server.table.budget
        budget.add(budget.limit_bytes)
        server.pieces = [b"x" * (4 * MIB)]
        client = await secured(server, client_side(tmp_path))
        client.send(frame(FETCH, b"", 5))
        (connection,) = server.table._connections
        await server.until(lambda: connection._queue.unsent_bytes)
        assert 0 < budget.used_bytes - budget.limit_bytes < 20 << 10
        assert await client.receive() == (5, b"x" * (4 * MIB))
        await server.until(lambda: budget.used_bytes == budget.limit_bytes)
        client.send(frame(FETCH, b"", 6))
        await server.until(lambda: budget.used_bytes > budget.limit_bytes)
        connection.close()
        assert budget.used_bytes == budget.limit_bytes
        budget.add(-budget.limit_bytes)


async def test_undecrypted_data_counts_against_the_memory_budget(tmp_path: Path) -> None:
    async with serve_tls() as server:
        client = await secured(server, client_side(tmp_path))
        wait = frame(HEARTBEAT, b"w", 1)
        client.send(wait)
        await server.until(lambda: server.waiting)
        # After a waiting request: checking for the peer's end consumes a record.
        client.send(frame(METADATA, os.urandom(100_000), 2))
        await server.until(lambda: server.table.budget.used_bytes)
        assert server.table.budget.used_bytes < 80 << 10
        server.waiting[0].set_result([b"x"])
        assert await client.receive() == (1, b"x")
        number, body = await client.receive()
        assert (number, len(body)) == (2, 100_000)
        await server.until(lambda: not server.table.budget.used_bytes)


async def test_client_principal_is_from_its_certificate(tmp_path: Path) -> None:
    rules = principal_rules("RULE:^CN=(.*)$/$1/U")
    tls = settings(client_auth="required", rules=rules)
    async with serve_tls(tls) as server:
        client = await secured(server, client_side(tmp_path, client_certificate("alice")))
        await client.ask(METADATA, b"x")
        (connection,) = server.table._connections
        assert str(connection.session.principal.name) == "ALICE"


@pytest.mark.parametrize("client_auth", ["none", "requested"])
async def test_client_without_a_certificate_is_anonymous(tmp_path: Path, client_auth: str) -> None:
    async with serve_tls(settings(client_auth=client_auth)) as server:
        client = await secured(server, client_side(tmp_path))
        await client.ask(METADATA, b"x")
        (connection,) = server.table._connections
        assert connection.session.principal.name == "ANONYMOUS"


@pytest.mark.parametrize(
    ("own", "cause"),
    [
        (None, "it sent no certificate, but one is required"),
        (client_certificate("eve", by="another authority"), "its certificate cannot be verified"),
        (client_certificate("late", days=-1), "certificate has expired"),
    ],
)
async def test_wrong_client_certificate_is_one_log_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, own: str | None, cause: str
) -> None:
    async with serve_tls(settings(client_auth="required")) as server:
        with contextlib.suppress(ssl.SSLError, ConnectionError):
            client = await secured(server, client_side(tmp_path, own))
            assert await client.reader.read() == b""
        await server.until(lambda: not len(server.table))
        (line,) = lines(caplog, logging.INFO)
        assert line.startswith("closing 127.0.0.1:")
        assert cause in line


async def test_certificate_name_without_matching_rule_is_refused(tmp_path: Path, caplog) -> None:
    tls = settings(client_auth="required", rules=principal_rules("RULE:^OU=(.*)$/$1/"))
    async with serve_tls(tls) as server:
        with contextlib.suppress(ConnectionError):
            client = await secured(server, client_side(tmp_path, client_certificate("alice")))
            assert await client.reader.read() == b""
        await server.until(lambda: not len(server.table))
        (line,) = lines(caplog)
        assert "no rule of ssl.principal.mapping.rules matches 'CN=alice'" in line


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        (frame(METADATA, b"x"), "it does not use TLS"),
        (b"GET /metrics HTTP/1.1\r\n\r\n", "an HTTP client is talking to a listener with TLS"),
        (b"\x16\x03\x01\x00\x05hello", "TLS handshake failed"),
        (b"\x16\x03\x01\xff\xff" + bytes(70_000), "TLS handshake failed"),
    ],
)
async def test_non_tls_client_is_one_log_line(data: bytes, cause: str, caplog) -> None:
    async with serve_tls() as server:
        peer = server.peer()
        peer.sendall(data)
        await server.until(lambda: not len(server.table) and caplog.records)
        (line,) = lines(caplog)
        assert line.startswith("closing 127.0.0.1:")
        assert cause in line


async def test_client_rejecting_our_certificate_is_one_log_line(tmp_path: Path, caplog) -> None:
    async with serve_tls() as server:
        context = client_side(tmp_path, by="another authority")
        peer = server.peer()

        def refuse() -> None:
            with pytest.raises(ssl.SSLCertVerificationError):
                context.wrap_socket(peer, server_hostname="localhost")

        await asyncio.get_running_loop().run_in_executor(None, refuse)
        await server.until(lambda: not len(server.table) and caplog.records)
        (line,) = lines(caplog)
        assert "it does not trust our certificate" in line


async def test_a_version_that_is_not_enabled_is_refused(tmp_path: Path, caplog) -> None:
    async with serve_tls(settings(versions=("TLSv1.3",))) as server:
        context = client_side(tmp_path)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises(ssl.SSLError):
            await secured(server, context)
        await server.until(lambda: not len(server.table) and caplog.records)
        (line,) = lines(caplog)
        assert "no common TLS version" in line


async def test_slow_handshake_is_closed(caplog) -> None:
    async with serve_tls(deadline_s=0.05) as server:
        peer = server.peer()
        peer.sendall(b"\x16")
        await server.until(lambda: not len(server.table) and caplog.records)
        (line,) = lines(caplog)
        assert "it took too long (wirebroker.authentication.deadline.ms)" in line
        assert peer.recv(1) == b""


@pytest.mark.parametrize("does_read", [True, False], ids=["read", "not read"])
async def test_unread_alert_is_kept_until_the_deadline(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, *, does_read: bool
) -> None:
    async with serve_tls(
        settings(versions=("TLSv1.3",)), deadline_s=20 if does_read else 0.05
    ) as server:
        context = client_side(tmp_path)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        client = TlsMemoryClient(connect(server.table), context)
        carrier: Any = client.peer.transport
        carrier._most_bytes = 3  # of an alert's seven bytes
        with contextlib.suppress(ssl.SSLWantReadError):
            client.engine.do_handshake()
        client.peer.send(client.outgoing.read())
        await server.until(lambda: carrier.outgoing and caplog.records)
        if does_read:
            assert len(server.table) == 1
            with pytest.raises(ssl.SSLError, match="ALERT_PROTOCOL_VERSION"):
                await client.until_done(client.begin)
        await server.until(lambda: not len(server.table))
        assert carrier.is_closed
        (line,) = lines(caplog)
        assert "no common TLS version" in line


async def test_refused_client_that_reads_nothing_is_closed_at_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # The handshake has finished, and its deadline with it: nothing else would end this connection.
    tls = settings(client_auth="required", rules=principal_rules("RULE:^OU=(.*)$/$1/"))
    async with serve_tls(tls) as server:
        own = client_side(tmp_path, client_certificate("alice"))
        client = TlsMemoryClient(connect(server.table), own)
        carrier: Any = client.peer.transport
        await client.until_done(client.engine.do_handshake)
        carrier._most_bytes = 3  # of the tickets that end a handshake
        client.peer.send(client.outgoing.read())
        await server.until(lambda: caplog.records)
        await server.until(lambda: not len(server.table))
        assert carrier.is_closed
        (line,) = lines(caplog)
        assert "no rule of ssl.principal.mapping.rules matches 'CN=alice'" in line


async def test_stalled_handshake_takes_no_loop_turns(tmp_path: Path) -> None:
    async with serve_tls() as server:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        engine = client_side(tmp_path).wrap_bio(incoming, outgoing, server_hostname="localhost")
        with contextlib.suppress(ssl.SSLWantReadError):
            engine.do_handshake()
        peer = server.peer()
        peer.sendall(outgoing.read())
        await server.until(lambda: len(server.table))
        (connection,) = server.table._connections
        # Our close_notify is sent; wait for the peer's.
        transport: Any = connection._transport
        await server.until(lambda: transport._handshake.received_bytes)
        reads = 0

        def read() -> None:
            nonlocal reads
            reads += 1

        transport.add_reader(transport.descriptor, read)
        for _ in range(20):
            await next_turn()
        assert reads <= 1


async def test_port_probe_is_not_logged(caplog) -> None:
    async with serve_tls() as server:
        server.peer().close()
        await server.until(lambda: server.table.metrics.connections_closed["PLAINTEXT"])
        assert lines(caplog) == []


async def test_broken_records_after_the_handshake_are_one_log_line(tmp_path: Path, caplog) -> None:
    async with serve_tls() as server:
        client = await secured(server, client_side(tmp_path))
        await client.ask(METADATA, b"x")
        raw = client.writer.get_extra_info("socket")
        os.write(raw.fileno(), b"\x17\x03\x03\x00\x20" + bytes(32))
        await server.until(lambda: not len(server.table))
        (line,) = lines(caplog)
        assert line.startswith("closing 127.0.0.1:")


async def test_both_sides_see_the_end(tmp_path: Path) -> None:
    async with serve_tls() as server:
        peer = server.peer()
        context = client_side(tmp_path)

        def exchange() -> bytes:
            with context.wrap_socket(
                peer, server_hostname="localhost", suppress_ragged_eofs=False
            ) as tls:
                tls.sendall(frame(METADATA, b"x"))
                got = tls.recv(4)
                assert struct.unpack(">i", got)[0] == 5
                tls.recv(5)
                received.set()
                return tls.recv(1)  # ssl.SSLEOFError without close_notify

        received = threading.Event()
        done = asyncio.get_running_loop().run_in_executor(None, exchange)
        await server.until(received.is_set)
        (connection,) = server.table._connections
        connection.end()
        assert await done == b""


async def test_session_ends_when_the_peer_ends_while_a_request_waits(tmp_path: Path) -> None:
    async with serve_tls() as server:
        client = await secured(server, client_side(tmp_path))
        client.send(frame(HEARTBEAT, b"w"))
        await server.until(lambda: server.waiting)
        end_calls: list[bool] = []
        (connection,) = server.table._connections
        connection.session.when_ended(lambda: end_calls.append(True))
        client.writer.close()
        await server.until(lambda: end_calls)
        server.waiting[0].set_result([b""])
        await server.until(lambda: not len(server.table))


async def test_peer_leaving_while_reading_is_paused_is_closed(tmp_path: Path) -> None:
    async with serve_tls() as server:
        server.pieces = [b"x" * (8 * MIB)]
        client = await secured(server, client_side(tmp_path))
        client.send(frame(FETCH) + frame(METADATA))
        (connection,) = server.table._connections
        await server.until(lambda: connection._queue.unsent_bytes)
        client.send(frame(METADATA))
        await server.until(lambda: not connection._is_reading)
        sock = client.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.writer.transport.abort()
        await server.until(lambda: not len(server.table))
        assert connection._transport.descriptor == -1


async def test_one_handshake_step_runs_per_loop_turn(tmp_path: Path) -> None:
    """No handshake is computed in the turn of another, however many begin at the same time."""
    async with serve_tls() as server:
        context = client_side(tmp_path)
        clients = await asyncio.gather(*(secured(server, context) for _ in range(20)))
        answers = await asyncio.gather(*(client.ask(METADATA, b"x") for client in clients))
        assert answers == [b"x"] * 20


async def test_tls_works_over_memory_one_byte_at_a_time(tmp_path: Path) -> None:
    async with serve_tls() as server:
        client = TlsMemoryClient(connect(server.table), client_side(tmp_path), step=1)
        await client.until_done(client.begin)
        client.engine.write(frame(METADATA, b"hello", 9))
        answer = await client.until_done(lambda: client.engine.read(100))
        assert answer == struct.pack(">ii", 9, 9) + b"hello"


async def test_listener_with_unusable_keys_serves_nobody(caplog) -> None:
    broken = TlsSettings(keystore=StoreSettings(location="/nowhere.pem"))
    async with serve_tls() as server:
        doors = ListenersTls(server.table.loop, deadline_s=1)
        listener = ListenerConfig("PLAINTEXT", "127.0.0.1", 0, "SSL", None, None, broken)
        await doors.use_listeners([listener])
        assert "/nowhere.pem cannot be read" in caplog.text
        server.table.secure = doors.secure
        server.peer()
        await server.until(lambda: server.table.metrics.connections_refused)
        assert server.table.metrics.connections_refused["PLAINTEXT"] == 1
