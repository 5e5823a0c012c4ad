"""Responses to pipelined requests are sent together: order, limits, and flush conditions."""

import asyncio
import contextlib
import logging
import socket
from typing import ClassVar

import pytest

from tests.support.records.clocks import HandClock
from tests.unit.wirebroker.net.network_server import Client, frame, lines, serve
from wirebroker.base.clock import next_turn
from wirebroker.net.sockets import socket_calls, transport
from wirebroker.storage.files import Files, FileSlice


class CountingSocket(socket.socket):
    """A socket that notes the size of each send, by itself or by its descriptor."""

    by_descriptor: ClassVar[dict[int, "CountingSocket"]] = {}

    def __init__(self, sock):
        super().__init__(fileno=sock.detach())
        self.setblocking(False)
        self.sends = []
        self.by_descriptor[self.fileno()] = self

    def send(self, data, *flags):
        self.sends.append(len(data))
        return super().send(data, *flags)


@pytest.fixture(autouse=True)
def _sends_are_counted(monkeypatch):
    def counted(descriptor, data):
        CountingSocket.by_descriptor[descriptor].sends.append(len(data))
        return socket_calls.send(descriptor, data)

    monkeypatch.setattr(transport, "send", counted)
    monkeypatch.setattr(CountingSocket, "by_descriptor", {})


class Peer:
    """The other end of one of the server's connections, on a blocking socket."""

    def __init__(self, server):
        with contextlib.ExitStack() as stack:
            listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            self.sock = socket.create_connection(listener.getsockname())
            accepted, address = listener.accept()
        self.ours = CountingSocket(accepted)
        self.connection = server.table.open(self.ours, address=address, listener_name="X")

    async def client(self, server):
        client = Client(*await asyncio.open_connection(sock=self.sock))
        server.clients.append(client)
        return client


async def test_requests_that_arrive_together_are_answered_by_two_sends():
    async with serve(clock=HandClock()) as server:
        peer = Peer(server)
        peer.sock.sendall(b"".join(frame(3, b"x" * 20, number) for number in range(50)))
        client = await peer.client(server)
        for number in range(50):
            assert await client.receive() == (number, b"x" * 20)
        assert peer.ours.sends == [26 * 28, 24 * 28]
        assert await client.ask(3, b"alone", 50) == b"alone"
        assert peer.ours.sends[2:] == [13]


async def test_joined_responses_are_limited_to_some_kilobytes():
    async with serve(clock=HandClock()) as server:
        peer = Peer(server)
        peer.sock.sendall(b"".join(frame(3, b"x" * 1000, number) for number in range(30)))
        client = await peer.client(server)
        for number in range(30):
            assert await client.receive() == (number, b"x" * 1000)
        assert sum(peer.ours.sends) == 30 * 1008
        assert 3 <= len(peer.ours.sends) < 10
        assert max(peer.ours.sends) <= 10_000


async def test_large_responses_and_file_slices_keep_their_order(tmp_path):
    (tmp_path / "log").write_bytes(b"of a file" * 100)
    files = Files()

    async with serve(clock=HandClock()) as server:
        data = files.data(str(tmp_path / "log"))
        server.pieces = [b"head", FileSlice(data, 3, 6), b"tail"]
        kinds = [(3, b"a"), (3, b"b"), (1, b""), (3, b"L" * 50_000), (1, b""), (3, b"c")]
        peer = Peer(server)
        peer.sock.sendall(b"".join(frame(key, body, n) for n, (key, body) in enumerate(kinds)))
        client = await peer.client(server)
        for number, (key, body) in enumerate(kinds):
            expected = body if key == 3 else b"heada filetail"
            assert await client.receive() == (number, expected)
    files.close_all()


async def test_responses_before_a_waiting_request_are_sent_at_once():
    async with serve(clock=HandClock()) as server:
        peer = Peer(server)
        numbered = [(3, b"a"), (3, b"b"), (12, b"later"), (3, b"c"), (3, b"d")]
        peer.sock.sendall(b"".join(frame(key, body, n) for n, (key, body) in enumerate(numbered)))
        client = await peer.client(server)
        assert [await client.receive() for _ in range(2)] == [(0, b"a"), (1, b"b")]
        assert len(peer.ours.sends) == 1
        server.waiting[0].set_result([b"now"])
        remaining = [await client.receive() for _ in range(3)]
        assert remaining == [(2, b"now"), (3, b"c"), (4, b"d")]
        assert len(peer.ours.sends) == 3


async def test_request_without_a_response_leaves_no_gap():
    async with serve(clock=HandClock()) as server:
        server.no_answer = True
        peer = Peer(server)
        keys = [3, 0, 3, 0]
        peer.sock.sendall(b"".join(frame(key, b"x", n) for n, key in enumerate(keys)))
        client = await peer.client(server)
        assert [await client.receive() for _ in range(2)] == [(0, b"x"), (2, b"x")]
        assert len(peer.ours.sends) == 1
        assert await client.ask(3, b"y", 9) == b"y"


@pytest.mark.parametrize(
    ("bad", "line"),
    [
        (b"\xff\xff\xff\xff", "a request cannot have -1 bytes"),
        (frame(0), "acks=0 failed"),
        (frame(12)[:4] + b"\x7f\xff" + frame(12)[6:], "api key 32767"),
    ],
)
async def test_good_requests_before_one_that_closes_are_answered(bad, line, caplog):
    with caplog.at_level(logging.INFO):
        async with serve(clock=HandClock()) as server:
            peer = Peer(server)
            peer.sock.sendall(frame(3, b"a", 1) + frame(3, b"b", 2) + bad)
            client = await peer.client(server)
            assert [await client.receive() for _ in range(2)] == [(1, b"a"), (2, b"b")]
            assert await client.is_closed()
            assert peer.ours.sends == [2 * 9]
    closing_lines = [logged for logged in lines(caplog) if "closing" in logged]
    assert len(closing_lines) == 1
    assert line in closing_lines[0]


async def test_a_peer_that_never_reads_is_not_served_beyond_the_high_water_mark():
    async with serve(clock=HandClock()) as server:
        peer = Peer(server)
        peer.ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        peer.sock.setblocking(False)
        together = b"".join(frame(3, b"x" * 900, number) for number in range(8))
        sent = 0
        # Each time less than a joint send, until the server stops serving.
        for _ in range(5000):
            with contextlib.suppress(BlockingIOError):
                sent += peer.sock.send(together[sent % len(together) :])
            await next_turn()
            if peer.connection.session.pauses:
                break
        assert peer.connection.session.pauses
        assert peer.connection._queue.unsent_bytes <= (64 << 10) + (16 << 10)
        client = await peer.client(server)
        for number in range(sent // len(frame(3, b"x" * 900))):
            assert await client.receive() == (number % 8, b"x" * 900)
