"""The HTTP server on the broker's event loop.

Silent peers, or peers that send requests without reading, must not keep probes out, because a
supervisor would kill the broker. So the server closes a waiting connection beyond the limit, the
oldest of the address with the most of them, and produces few responses at a time.

A new connection does not count toward the limit until its first request had time to arrive and an
open route has served it, so that many short connections do not close a probe's.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.http.conversation import HttpConversation
from wirebroker.http.message import HttpAnswer, HttpError
from wirebroker.http.routes import Routes

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

    from wirebroker.http.access import Access
    from wirebroker.http.message import HttpRequest
    from wirebroker.http.routes import Route

logger = logging.getLogger("wirebroker.http")

# Each holds at most 1 MiB of a body and some 100 KiB more.
_MOST_CONNECTIONS: Final = 64
# Each is new for 0.25 s and holds at most 4 KiB.
_MOST_NEW: Final = 512
# Responses in progress; further requests wait.
_MOST_ANSWERS: Final = 16


class HttpAddress(NamedTuple):
    """A numeric address and the port that was bound."""

    host: str
    port: int


class HttpServer:
    """A server of routes on bound sockets; routes may be added while it runs."""

    def __init__(self, sockets: Sequence[socket.socket], access: Access) -> None:
        """Take over bound, listening sockets."""
        self.routes = Routes()
        self.addresses = [HttpAddress(*sock.getsockname()[:2]) for sock in sockets]
        self._access = access
        self._sockets = sockets
        self._servers: list[asyncio.Server] = []
        self._tasks: dict[asyncio.Task[None], HttpConversation] = {}
        self._turns = asyncio.Semaphore(_MOST_ANSWERS)

    async def start(self) -> None:
        """Start to accept connections."""
        for sock in self._sockets:
            self._servers.append(await asyncio.start_server(self._connected, sock=sock))

    async def close(self) -> None:
        """Stop accepting and close all connections."""
        for server in self._servers:
            server.close()
        for sock in self._sockets:
            sock.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        new = [other for other in self._tasks.values() if other.is_new]
        if len(new) >= _MOST_NEW:
            self._give_up(new[0])
        conversation = HttpConversation(reader, writer, self._answer_to, self._enforce_limit)
        task = asyncio.get_running_loop().create_task(self._converse(conversation, writer))
        self._tasks[task] = conversation
        task.add_done_callback(self._ended)

    def _enforce_limit(self, newest: HttpConversation) -> None:
        """Close a connection beyond the limit: `newest` itself if all others are being served."""
        established = [
            conversation for conversation in self._tasks.values() if not conversation.is_new
        ]
        if len(established) <= _MOST_CONNECTIONS:
            return
        waiting = [conversation for conversation in established if not conversation.is_answering]
        if not waiting:
            logger.warning("serving %d HTTP connections: refusing new ones", len(established) - 1)
            self._give_up(newest)
            return
        counts = Counter(conversation.address for conversation in waiting)
        self._give_up(max(waiting, key=lambda conversation: counts[conversation.address]))

    def _give_up(self, conversation: HttpConversation) -> None:
        for task, candidate in self._tasks.items():
            if candidate is conversation:
                del self._tasks[task]
                conversation.abort()  # the task may not have started
                task.cancel()
                return

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)

    async def _converse(self, conversation: HttpConversation, writer: asyncio.StreamWriter) -> None:
        try:
            await conversation.run()
            writer.close()
        except (TimeoutError, ConnectionError):
            logger.debug("closed an HTTP connection")
        except Exception:  # the root of a task
            logger.exception("an HTTP connection failed")
        finally:
            if not writer.is_closing():
                writer.transport.abort()

    async def _answer_to(self, conversation: HttpConversation, request: HttpRequest) -> HttpAnswer:
        route = self.routes.find(request.method, request.path)
        self._access.check(request, route)
        conversation.is_answering = True
        try:
            if route.is_open:
                return await self._answer_of(route, request)
            conversation.know()
            async with self._turns:
                return await self._answer_of(route, request)
        finally:
            conversation.is_answering = False

    async def _answer_of(self, route: Route, request: HttpRequest) -> HttpAnswer:
        try:
            return await route.answering(request)
        except (HttpError, TimeoutError):
            raise
        except Exception:  # not a fault of the peer
            logger.exception("%s %s failed", request.method, request.path)
            return HttpAnswer.of_text("the request failed; see the broker's log", 500)
