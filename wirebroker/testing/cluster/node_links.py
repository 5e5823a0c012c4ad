"""The network between the nodes of a test cluster, in which nodes can be isolated.

    node ──► place (the port that another node advertises) ──► that node's listener

The client id `broker-<id>` of the first request identifies the connecting node. While a node is
isolated, connections from and to it are closed.
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
    """All places of a cluster; use it on one loop."""

    def __init__(self) -> None:
        self.parted: set[int] = set()
        self._servers: list[asyncio.Server] = []
        # (opening node, target); None until the first request.
        self._open: dict[asyncio.Task[None], tuple[int | None, int]] = {}

    async def place(self, node_id: int, port: int) -> int:
        """Open a place that forwards to a node's port; return the place's port."""

        async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._open[task] = (None, node_id)
            try:
                # Either end may close at any time; isolation cancels the task.
                with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                    await self._connect(task, node_id, port, reader, writer)
            finally:
                del self._open[task]
                writer.close()

        server = await asyncio.start_server(meet, HOST, 0)
        self._servers.append(server)
        listening_port: int = server.sockets[0].getsockname()[1]
        return listening_port

    def part(self, node_id: int) -> None:
        """Isolate a node."""
        self.parted.add(node_id)
        for task, ends in self._open.items():
            if node_id in ends:
                task.cancel()

    def heal(self, node_id: int) -> None:
        """Reconnect a node."""
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
    """Return a connection's first bytes, and the node that opened it."""
    header = await reader.readexactly(_HEADER_BYTES)
    length = int.from_bytes(header[-2:], "big", signed=True)
    name = await reader.readexactly(min(max(0, length), _MOST_NAME_BYTES))
    match = _NAME.match(name)
    return header + name, None if match is None else int(match[1])


async def _relay(
    first: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int
) -> None:
    """Forward data in both directions until either end closes."""
    there_reader, there_writer = await asyncio.open_connection(HOST, port)
    try:
        there_writer.write(first)
        tasks = [
            asyncio.create_task(_pass_on(reader, there_writer)),
            asyncio.create_task(_pass_on(there_reader, writer)),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    finally:
        there_writer.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_CHUNK_BYTES):
        writer.write(data)
        await writer.drain()
