"""A network between nodes whose links can be cut, in one direction or both.

    node ──► proxy (the port that another node advertises) ──► that node's listener

A node ends its client ids with its node id, so the first request of a connection tells which node
opened it. A cut link keeps its connections and holds their bytes, as TCP does when packets are
lost; they arrive when the link is healed.
"""

from __future__ import annotations

import asyncio
import re
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

from tests.support.tools.ports import HOST

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable

T = TypeVar("T")

_NODE_ID: Final = re.compile(rb".*?(?:broker|client|controller|node)-([0-9]{1,9})")
# length, key, version, correlation id, length of the client id
_HEADER_BYTES: Final = 14
_MOST_CLIENT_ID_BYTES: Final = 100
_CHUNK_BYTES: Final = 64 * 1024
_TIMEOUT_S: Final = 10.0


class NodeProxies:
    """The proxies, on an event loop in a thread.

    Attributes:
        unknown: Client ids of connections whose node is unknown; they are never cut.
    """

    def __init__(self) -> None:
        self.unknown: set[bytes] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._cut: set[tuple[int, int]] = set()
        self._is_healed = asyncio.Event()
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread.start()

    def open(self, node_id: int, port: int, *, listen_port: int) -> None:
        """Begin to forward a port to a node's listener."""
        self._do(self._open(node_id, port, listen_port))

    def cut(self, links: Iterable[tuple[int, int]]) -> None:
        """Hold everything from the first node of each pair to the second."""
        self._do(self._set(set(links)))

    def heal(self) -> None:
        """Let everything pass."""
        self._do(self._set(set()))

    def close(self) -> None:
        """Close all connections and end the thread."""
        self._do(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_TIMEOUT_S)
        self._loop.close()

    def _do(self, work: Coroutine[object, object, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_TIMEOUT_S)

    async def _open(self, node_id: int, port: int, listen_port: int) -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._tasks.add(task)
            try:
                # Either end may close.
                with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                    await self._forward(node_id, port, reader, writer)
            finally:
                self._tasks.discard(task)
                writer.close()

        self._servers.append(await asyncio.start_server(serve, HOST, listen_port))

    async def _set(self, links: set[tuple[int, int]]) -> None:
        self._cut = links
        former, self._is_healed = self._is_healed, asyncio.Event()
        former.set()

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _forward(
        self,
        node_id: int,
        port: int,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        head = await reader.readexactly(_HEADER_BYTES)
        length = max(0, int.from_bytes(head[-2:], signed=True))
        client_id = await reader.readexactly(min(length, _MOST_CLIENT_ID_BYTES))
        match = _NODE_ID.match(client_id)
        source_id = -1 if match is None else int(match[1])
        if match is None:
            self.unknown.add(client_id)
        await self._pass(source_id, node_id)
        target_reader, target_writer = await asyncio.open_connection(HOST, port)
        try:
            target_writer.write(head + client_id)
            tasks = [
                asyncio.create_task(self._copy(reader, target_writer, source_id, node_id)),
                asyncio.create_task(self._copy(target_reader, writer, node_id, source_id)),
            ]
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            target_writer.close()

    async def _copy(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        source_id: int,
        target_id: int,
    ) -> None:
        while data := await reader.read(_CHUNK_BYTES):
            await self._pass(source_id, target_id)
            writer.write(data)
            await writer.drain()

    async def _pass(self, source_id: int, target_id: int) -> None:
        """Wait until the link is not cut."""
        while (source_id, target_id) in self._cut:
            await self._is_healed.wait()
