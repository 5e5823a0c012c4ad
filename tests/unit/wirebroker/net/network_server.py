"""The network layer with a few handlers, and a client."""

import asyncio
import contextlib
import logging
import socket
import struct

from wirebroker.base.clock import Clock, SystemClock, pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.net.connection_table import ConnectionTable
from wirebroker.net.dispatch import Dispatcher
from wirebroker.net.listeners.listener import Listener, bind
from wirebroker.net.settings import NetworkSettings
from wirebroker.request.handlers import Cost, Registry
from wirebroker.request.request import CloseConnectionError


def frame(key: int, body: bytes = b"", correlation_id: int = 0) -> bytes:
    version = {0: 3, 1: 4, 3: 1, 12: 0, 15: 0}[key]
    head = struct.pack(">hhih", key, version, correlation_id, -1)
    return struct.pack(">i", len(head) + len(body)) + head + body


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def receive(self) -> tuple[int, bytes]:
        (length,) = struct.unpack(">i", await self.reader.readexactly(4))
        answer = await self.reader.readexactly(length)
        return struct.unpack_from(">i", answer)[0], answer[4:]

    async def ask(self, key: int, body: bytes = b"", correlation_id: int = 0) -> bytes:
        self.send(frame(key, body, correlation_id))
        got, answer = await self.receive()
        assert got == correlation_id
        return answer

    async def is_closed(self) -> bool:
        """Wait for the end of the connection; any other data is an error."""
        try:
            return await self.reader.read(1) == b""
        except ConnectionError:
            return True

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(ConnectionError):
            await self.writer.wait_closed()


class Server:
    def __init__(
        self,
        settings: NetworkSettings,
        max_sockets: int | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.registry = Registry()
        self.waiting: list[asyncio.Future] = []
        self.bodies: list[bytes] = []
        # For a Produce without a response; otherwise it closes the connection.
        self.no_answer = False
        self.registry.handles_raw(ApiKey.METADATA)(self._echo)
        self.registry.handles_raw(ApiKey.HEARTBEAT)(self._wait)
        self.registry.handles_raw(ApiKey.FETCH)(self.fetch)
        self.registry.handles_raw(ApiKey.DESCRIBE_GROUPS, cost=Cost.READS)(self._wait)
        self.registry.handles_raw(ApiKey.PRODUCE)(self._produce)
        self.pieces: list = []
        self.table = ConnectionTable(
            loop=asyncio.get_running_loop(),
            dispatch=Dispatcher(None, self.registry),
            clock=SystemClock() if clock is None else clock,
            settings=settings,
            max_sockets=max_sockets,
        )
        self.listener = Listener(self.table, "PLAINTEXT", bind("127.0.0.1", 0, settings))
        self.listener.start()
        self.clients: list[Client] = []
        self.peers: list[socket.socket] = []

    def _echo(self, _broker, request):
        return [bytes(request.frame[request.position :])]

    def _wait(self, _broker, request):
        self.bodies.append(bytes(request.frame[request.position :]))
        future = asyncio.get_running_loop().create_future()
        self.waiting.append(future)
        return future

    def fetch(self, _broker, _request):
        return list(self.pieces)

    def _produce(self, _broker, _request):
        if not self.no_answer:
            raise CloseConnectionError("acks=0 failed")

    async def client(self) -> Client:
        client = Client(*await asyncio.open_connection("127.0.0.1", self.listener.port))
        self.clients.append(client)
        return client

    def peer(self) -> socket.socket:
        """Return a blocking socket that is not managed by the loop."""
        peer = socket.create_connection(("127.0.0.1", self.listener.port), timeout=20)
        self.peers.append(peer)
        return peer

    async def until(self, condition) -> None:
        async with asyncio.timeout(20):
            while not condition():
                await pause(0.001)

    async def close(self) -> None:
        for client in self.clients:
            await client.close()
        for peer in self.peers:
            peer.close()
        self.listener.close()
        await self.table.close(grace_s=0.5)
        self.table.check()
        assert len(self.table) == 0
        assert self.table.budget.used_bytes == 0


@contextlib.asynccontextmanager
async def serve(*, max_sockets=None, clock=None, **settings):
    """Run a server with these settings; check that it holds nothing after the test."""
    server = Server(NetworkSettings(**settings), max_sockets, clock)
    try:
        async with asyncio.timeout(60):
            yield server
    finally:
        await server.close()


def lines(caplog, level=logging.INFO):
    return [record.getMessage() for record in caplog.records if record.levelno >= level]
