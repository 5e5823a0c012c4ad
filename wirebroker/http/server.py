"""The HTTP server inside the broker's loop: listening sockets, few connections, routes.

A door that nobody needs to do his work: what goes wrong with a connection costs that connection,
and the number of connections is bounded. When all are taken, the oldest connection for which no
answer is being made is closed for the new one, and few answers are made at once. Otherwise peers
that are silent, or that send requests without reading, could keep probes out, and a supervisor
would end the broker. Open routes (probes) never wait for other answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
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

# Scrapers, probes and people; each holds 1 MiB of a body at most, and some 100 KiB besides.
_MOST_CONNECTIONS: Final = 64
# Of those; the others give way.
_MOST_ANSWERS: Final = 16


class HttpAddress(NamedTuple):
    """Where it listens: the numeric address, and the port that was bound."""

    host: str
    port: int


class HttpServer:
    """Serves the routes on bound sockets.

    Attributes:
        routes: What it answers; routes may be added while it serves.
        addresses: Where it listens.
    """

    def __init__(self, sockets: Sequence[socket.socket], access: Access) -> None:
        """Take over bound, listening sockets."""
        self.routes = Routes()
        self.addresses = [HttpAddress(*each.getsockname()[:2]) for each in sockets]
        self._access = access
        self._sockets = sockets
        self._servers: list[asyncio.Server] = []
        self._tasks: dict[asyncio.Task[None], HttpConversation] = {}
        self._turns = asyncio.Semaphore(_MOST_ANSWERS)

    async def start(self) -> None:
        """Begin to accept."""
        for each in self._sockets:
            self._servers.append(await asyncio.start_server(self._connected, sock=each))

    async def close(self) -> None:
        """Accept no more, and end the connections that there are."""
        for server in self._servers:
            server.close()
        for each in self._sockets:
            each.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._tasks) >= _MOST_CONNECTIONS and not self._make_room():
            logger.warning("%d HTTP connections are open: no more are taken", len(self._tasks))
            writer.transport.abort()
            return
        conversation = HttpConversation(reader, writer, self._answer_to)
        task = asyncio.get_running_loop().create_task(self._converse(conversation, writer))
        self._tasks[task] = conversation
        task.add_done_callback(self._ended)

    def _make_room(self) -> bool:
        """Give up a connection that is not being answered; say whether there was one."""
        for task, conversation in self._tasks.items():
            if not conversation.is_answering:
                del self._tasks[task]
                conversation.abort()  # by itself: the task may not have begun
                task.cancel()
                return True
        return False

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)

    async def _converse(self, conversation: HttpConversation, writer: asyncio.StreamWriter) -> None:
        try:
            await conversation.run()
            writer.close()
        except (TimeoutError, ConnectionError):
            logger.debug("an HTTP connection is given up")
        except Exception:  # the root of a task: it costs this connection
            logger.exception("an HTTP connection failed")
        finally:
            # What could not be sent in time is dropped.
            if not writer.is_closing():
                writer.transport.abort()

    async def _answer_to(self, conversation: HttpConversation, request: HttpRequest) -> HttpAnswer:
        route = self.routes.find(request.method, request.path)
        self._access.check(request, route)
        async with contextlib.nullcontext() if route.is_open else self._turns:
            conversation.is_answering = True
            try:
                return await self._answer_of(route, request)
            finally:
                conversation.is_answering = False

    async def _answer_of(self, route: Route, request: HttpRequest) -> HttpAnswer:
        try:
            return await route.answering(request)
        except (HttpError, TimeoutError):
            raise
        except Exception:  # a route's own mistake must not look like the peer's
            logger.exception("%s %s failed", request.method, request.path)
            return HttpAnswer.of_text("it failed, the broker's log says why", 500)
