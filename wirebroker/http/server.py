"""The HTTP server inside the broker's loop: listening sockets, few connections, routes.

A door that nobody needs to do his work: what goes wrong with a connection costs that connection,
and the number of connections is bounded. Beyond the bound a connection that waits for its peer is
closed, of the address that has most of them the oldest; few answers are made at once. Otherwise
peers that are silent, or that send requests without reading, could keep probes out, and a
supervisor would end the broker.

Open routes (probes) never wait for other answers. A connection is new, and outside of that bound,
until its first request has had time to arrive and an open route has answered it: so many that
connect and leave at once do not close a probe whose request nobody has read yet.
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

# Scrapers, probes and people; each holds 1 MiB of a body at most, and some 100 KiB besides.
_MOST_CONNECTIONS: Final = 64
# Besides them; they are new for a quarter of a second, and hold 4 KiB of a request at most.
_MOST_NEW: Final = 512
# Of all; the others wait.
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
        new = [each for each in self._tasks.values() if each.is_new]
        if len(new) >= _MOST_NEW:
            self._give_up(new[0])
        conversation = HttpConversation(reader, writer, self._answer_to, self._keep_to_bound)
        task = asyncio.get_running_loop().create_task(self._converse(conversation, writer))
        self._tasks[task] = conversation
        task.add_done_callback(self._ended)

    def _keep_to_bound(self, known: HttpConversation) -> None:
        """Give up a connection if one too many is known: the last to be known if all are served."""
        others = [each for each in self._tasks.values() if not each.is_new]
        if len(others) <= _MOST_CONNECTIONS:
            return
        waiting = [each for each in others if not each.is_answering]
        if not waiting:
            logger.warning("%d HTTP connections are answered: no more are taken", len(others) - 1)
            self._give_up(known)
            return
        counts = Counter(each.address for each in waiting)
        self._give_up(max(waiting, key=lambda each: counts[each.address]))  # the first of equals

    def _give_up(self, conversation: HttpConversation) -> None:
        for task, each in self._tasks.items():
            if each is conversation:
                del self._tasks[task]
                conversation.abort()  # by itself: the task may not have begun
                task.cancel()
                return

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
        except Exception:  # a route's own mistake must not look like the peer's
            logger.exception("%s %s failed", request.method, request.path)
            return HttpAnswer.of_text("it failed, the broker's log says why", 500)
