"""Sockets on the broker's own loop: reads, writes, and one notification of the end."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import struct
from typing import TYPE_CHECKING

import pytest

from tests.support.tools.waiting import until
from wirebroker.base.clock import next_turn
from wirebroker.net.client.polled_transport import PolledTransport
from wirebroker.net.client.tcp_dialer import TcpDialer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_RESET = struct.pack("ii", 1, 0)


class Told:
    def __init__(self) -> None:
        self.received = bytearray()
        self.ends: list[Exception | None] = []
        self._memory = memoryview(bytearray(4096))

    def get_buffer(self) -> memoryview:
        return self._memory

    def buffer_updated(self, count: int) -> None:
        self.received += self._memory[:count]

    def lost(self, error: Exception | None) -> None:
        self.ends.append(error)


@contextlib.asynccontextmanager
async def dialed() -> AsyncIterator[tuple[PolledTransport, Told, socket.socket]]:
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        recorder = Told()
        # By name: the first address may refuse connections.
        transport = await TcpDialer().dial("localhost", listener.getsockname()[1], recorder)
        peer, _ = await loop.sock_accept(listener)
        with peer:
            peer.setblocking(False)
            assert isinstance(transport, PolledTransport)
            yield transport, recorder, peer
            transport.close()


async def test_received_data_is_delivered_in_chunks():
    loop = asyncio.get_running_loop()
    async with dialed() as (transport, recorder, peer):
        assert transport.local_host == "127.0.0.1"
        data = bytes(range(256)) * 400
        await loop.sock_sendall(peer, data)
        await until(lambda: len(recorder.received) == len(data))
        assert recorder.received == data
        assert recorder.ends == []


async def test_data_beyond_the_socket_buffer_is_sent_in_order():
    loop = asyncio.get_running_loop()
    async with dialed() as (transport, _, peer):
        data = bytes(range(251)) * 40_000
        transport.write(data)
        transport.write(b"the end")
        received = bytearray()
        while len(received) < len(data) + 7:
            received += await loop.sock_recv(peer, 1 << 20)
        assert received == data + b"the end"


@pytest.mark.parametrize("is_reset", [False, True])
async def test_end_of_the_peer_is_reported_once(is_reset):
    async with dialed() as (transport, recorder, peer):
        if is_reset:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        peer.close()
        await until(lambda: recorder.ends)
        transport.write(b"nobody reads it")
        transport.close()
        for _ in range(3):
            await next_turn()
        (end,) = recorder.ends
        assert isinstance(end, ConnectionResetError) if is_reset else end is None


async def test_write_error_is_reported_in_a_later_loop_turn():
    async with dialed() as (transport, recorder, peer):
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        peer.close()
        transport.write(b"nobody reads it")
        assert recorder.ends == []
        await until(lambda: recorder.ends)
        assert isinstance(recorder.ends[0], ConnectionError)


async def test_failed_receive_buffer_reports_the_end_once():
    class Short(Told):
        calls = 0

        def get_buffer(self) -> memoryview:
            self.calls += 1
            raise OSError(errno.ENOMEM, "no memory")

    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        short = Short()
        transport = await TcpDialer().dial("127.0.0.1", listener.getsockname()[1], short)
        peer, _ = await loop.sock_accept(listener)
        with peer:
            peer.setblocking(False)
            await loop.sock_sendall(peer, b"an answer")
            await until(lambda: short.calls)
            for _ in range(3):
                await next_turn()
            transport.close()
    (end,) = short.ends
    assert isinstance(end, OSError)
    assert end.errno == errno.ENOMEM
    assert short.calls == 1


async def test_own_close_drops_unsent_data():
    async with dialed() as (transport, recorder, peer):
        transport.write(bytes(40 << 20))
        transport.close()
        assert recorder.ends == []
        await until(lambda: recorder.ends)
        assert recorder.ends == [None]
        with contextlib.suppress(ConnectionResetError):
            while await asyncio.get_running_loop().sock_recv(peer, 1 << 20):
                pass
        assert recorder.ends == [None]


async def test_refused_connection_has_the_system_message():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(ConnectionRefusedError, match="Connect call failed"):
        await TcpDialer().dial("127.0.0.1", port, Told())
