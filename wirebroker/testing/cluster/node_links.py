"""The proxies between the nodes of a test cluster.

    node ──► proxy (the port that another node advertises) ──► that node's listener

The client id `broker-<id>` of the first request identifies the connecting node.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from typing import Final

from wirebroker.testing.settings.node_settings import HOST

_CLIENT_ID: Final = re.compile(rb"broker-([0-9]{1,9})")
# length, key, version, correlation id, length of the client id
_HEADER_BYTES: Final = 14
_MOST_CLIENT_ID_BYTES: Final = 64
_CHUNK_BYTES: Final = 256 * 1024


class NodeLinks:
    """The proxies between the nodes of a cluster, on one event loop."""

    def __init__(self) -> None:
        self.isolated: set[int] = set()
        self._servers: list[asyncio.Server] = []
        # (opening node, target); None until the first request.
        self._connections: dict[asyncio.Task[None], tuple[int | None, int]] = {}

    async def open_proxy(self, node_id: int, port: int) -> int:
        """Start a proxy for a node's port, and return the port it listens on."""

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._connections[task] = (None, node_id)
            try:
                # Either end may close; isolation cancels the task.
                with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                    await self._forward_connection(task, node_id, port, reader, writer)
            finally:
                del self._connections[task]
                writer.close()

        server = await asyncio.start_server(serve, HOST, 0)
        self._servers.append(server)
        listening_port: int = server.sockets[0].getsockname()[1]
        return listening_port

    def isolate(self, node_id: int) -> None:
        """Close the connections from and to a node until `heal`."""
        self.isolated.add(node_id)
        for task, node_ids in self._connections.items():
            if node_id in node_ids:
                task.cancel()

    def heal(self, node_id: int) -> None:
        """Reconnect a node."""
        self.isolated.discard(node_id)

    def close(self) -> None:
        """Close all proxies and their connections."""
        for server in self._servers:
            server.close()
        for task in self._connections:
            task.cancel()

    async def _forward_connection(
        self,
        task: asyncio.Task[None],
        node_id: int,
        port: int,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        first_bytes, source_id = await _read_first_bytes(reader)
        self._connections[task] = (source_id, node_id)
        if self.isolated.isdisjoint({source_id, node_id}):
            await _relay(first_bytes, reader, writer, port)


async def _read_first_bytes(reader: asyncio.StreamReader) -> tuple[bytes, int | None]:
    """Return a connection's first bytes, and the node that opened it."""
    header = await reader.readexactly(_HEADER_BYTES)
    length = int.from_bytes(header[-2:], "big", signed=True)
    client_id = await reader.readexactly(min(max(0, length), _MOST_CLIENT_ID_BYTES))
    match = _CLIENT_ID.match(client_id)
    return header + client_id, None if match is None else int(match[1])


async def _relay(
    first_bytes: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int
) -> None:
    target_reader, target_writer = await asyncio.open_connection(HOST, port)
    try:
        target_writer.write(first_bytes)
        tasks = [
            asyncio.create_task(_copy(reader, target_writer)),
            asyncio.create_task(_copy(target_reader, writer)),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    finally:
        target_writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_CHUNK_BYTES):
        writer.write(data)
        await writer.drain()
