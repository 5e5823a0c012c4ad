"""The network between the nodes of a cluster for tests, which can be parted.

    node ──► place, where another is told to be ──► the other's listener

Each connection says who opened it: nodes call themselves `broker-<id>` in every request. While a
node is cut off, connections that it has opened and those to it end, and new ones find nobody.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from typing import Final

from wirebroker.testing.settings.node_settings import HOST

_NAME: Final = re.compile(rb"broker-([0-9]{1,9})")
# length, key, version, correlation id, length of the client id
_HEADER_BYTES: Final = 14
_MOST_NAME_BYTES: Final = 64
_CHUNK_BYTES: Final = 256 * 1024


class NodeLinks:
    """All places of one cluster; every method is called on one loop.

    Attributes:
        parted: Nodes that are cut off from all others.
    """

    def __init__(self) -> None:
        self.parted: set[int] = set()
        self._servers: list[asyncio.Server] = []
        # Who is connected to whom, None while he has not said who he is.
        self._open: dict[asyncio.Task[None], tuple[int | None, int]] = {}

    async def place(self, node_id: int, port: int) -> int:
        """Open a place where a node's listener is to be had; return its port."""

        async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._open[task] = (None, node_id)
            try:
                # Either end may go at any time; a node that is cut off ends it here.
                with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                    await self._connect(task, node_id, port, reader, writer)
            finally:
                del self._open[task]
                writer.close()

        server = await asyncio.start_server(meet, HOST, 0)
        self._servers.append(server)
        found: int = server.sockets[0].getsockname()[1]
        return found

    def part(self, node_id: int) -> None:
        """Cut a node off."""
        self.parted.add(node_id)
        for task, ends in self._open.items():
            if node_id in ends:
                task.cancel()

    def heal(self, node_id: int) -> None:
        """Let a node reach the others again."""
        self.parted.discard(node_id)

    def close(self) -> None:
        """Close all places."""
        for server in self._servers:
            server.close()
        for task in self._open:
            task.cancel()

    async def _connect(
        self,
        task: asyncio.Task[None],
        node_id: int,
        port: int,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        first, asking = await _first_words(reader)
        self._open[task] = (asking, node_id)
        if self.parted.isdisjoint({asking, node_id}):
            await _relay(first, reader, writer, port)


async def _first_words(reader: asyncio.StreamReader) -> tuple[bytes, int | None]:
    """Return what begins a connection, and the node that it says it comes from."""
    header = await reader.readexactly(_HEADER_BYTES)
    length = int.from_bytes(header[-2:], "big", signed=True)
    name = await reader.readexactly(min(max(0, length), _MOST_NAME_BYTES))
    match = _NAME.match(name)
    return header + name, None if match is None else int(match[1])


async def _relay(
    first: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int
) -> None:
    """Pass on what comes until either end goes."""
    there_reader, there_writer = await asyncio.open_connection(HOST, port)
    try:
        there_writer.write(first)
        ways = [
            asyncio.create_task(_pass_on(reader, there_writer)),
            asyncio.create_task(_pass_on(there_reader, writer)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in ways:
                each.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
    finally:
        there_writer.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_CHUNK_BYTES):
        writer.write(data)
        await writer.drain()
