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
        told = Told()
        # By name: the first address may refuse connections.
        transport = await TcpDialer().dial("localhost", listener.getsockname()[1], told)
        peer, _ = await loop.sock_accept(listener)
        with peer:
            peer.setblocking(False)
            assert isinstance(transport, PolledTransport)
            yield transport, told, peer
            transport.close()


async def test_what_arrives_is_told_piece_by_piece():
    loop = asyncio.get_running_loop()
    async with dialed() as (transport, told, peer):
        assert transport.local_host == "127.0.0.1"
        data = bytes(range(256)) * 400
        await loop.sock_sendall(peer, data)
        await until(lambda: len(told.received) == len(data))
        assert told.received == data
        assert told.ends == []


async def test_more_than_a_peer_takes_at_once_is_sent_in_order():
    loop = asyncio.get_running_loop()
    async with dialed() as (transport, _, peer):
        data = bytes(range(251)) * 40_000
        transport.write(data)
        transport.write(b"the end")
        taken = bytearray()
        while len(taken) < len(data) + 7:
            taken += await loop.sock_recv(peer, 1 << 20)
        assert taken == data + b"the end"


@pytest.mark.parametrize("is_reset", [False, True])
async def test_the_peer_s_end_is_told_once(is_reset):
    async with dialed() as (transport, told, peer):
        if is_reset:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        peer.close()
        await until(lambda: told.ends)
        transport.write(b"nobody reads it")
        transport.close()
        for _ in range(3):
            await next_turn()
        (end,) = told.ends
        assert isinstance(end, ConnectionResetError) if is_reset else end is None


async def test_who_writes_to_a_peer_that_has_gone_is_told_in_a_turn_of_his_own():
    async with dialed() as (transport, told, peer):
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        peer.close()
        transport.write(b"nobody reads it")
        assert told.ends == []
        await until(lambda: told.ends)
        assert isinstance(told.ends[0], ConnectionError)


async def test_who_has_no_memory_for_what_arrives_is_told_of_the_end_once():
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


async def test_our_own_end_drops_what_is_unsent():
    async with dialed() as (transport, told, peer):
        transport.write(bytes(40 << 20))
        transport.close()
        assert told.ends == []
        await until(lambda: told.ends)
        assert told.ends == [None]
        with contextlib.suppress(ConnectionResetError):
            while await asyncio.get_running_loop().sock_recv(peer, 1 << 20):
                pass
        assert told.ends == [None]


async def test_nobody_who_listens_is_told_by_the_system_s_words():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(ConnectionRefusedError, match="Connect call failed"):
        await TcpDialer().dial("127.0.0.1", port, Told())
