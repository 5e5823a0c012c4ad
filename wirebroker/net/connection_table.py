"""All open connections: what they share, how many there may be, which of them are closed for time.

Two sweeps, neither of which costs the hot path a clock reading:

- a frame that is late (protocol.py): only connections in the middle of a frame are looked at, and
  the timer exists only while there are any;
- a connection that is idle (`connections.max.idle.ms`): every connection counts its activity, and
  every twentieth of that time the counts are compared. One with a request in flight is not idle.

Newcomers beyond a limit wait or are closed: connection_quotas.py.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.freed_memory import give_back_free_pages
from wirebroker.base.log_bound import about
from wirebroker.base.metrics import Metrics
from wirebroker.base.threads import Work, begin_in_thread
from wirebroker.net.bounds.memory_budget import MemoryBudget
from wirebroker.net.connection import Connection
from wirebroker.net.connection_quotas import ConnectionQuotas
from wirebroker.net.frames.receive_area import ReceiveArea
from wirebroker.net.pages.old_pages import OldPages
from wirebroker.net.pages.page_work import PageWork
from wirebroker.net.sockets.transport import socket_transport
from wirebroker.request.session import Session

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from wirebroker.base.clock import Clock
    from wirebroker.net.connection_owner import Dispatch, Guard
    from wirebroker.net.settings import NetworkSettings
    from wirebroker.net.sockets.poller import Sockets
    from wirebroker.net.sockets.transport import ConnectionTransport

    Secure = Callable[[ConnectionTransport, Session], ConnectionTransport]
    HasToWait = Callable[[str, Callable[[], None]], bool]

logger = logging.getLogger("wirebroker.net")

# How far apart sweeps are: precise enough for the shortest settings of tests, seldom in production.
_SHORTEST_SWEEP_S: Final = 0.01
_LONGEST_DEADLINE_SWEEP_S: Final = 1.0
_LONGEST_IDLE_SWEEP_S: Final = 30.0
# When so many fewer are open, their memory goes back to the system: up to 45 KiB each with TLS,
# and 1 ms of a thread for all.
_MANY_CLOSED: Final = 250


class ConnectionTable:
    """The connections of one event loop.

    Attributes:
        loop: The loop that all of them run on.
        sockets: Who says that one of them is readable: the loop's poller, or the loop.
        area: The memory that all of them receive into.
        budget: The memory that all of them may hold.
        old_pages: What readers of old data have brought into the page cache.
        clock: Time for deadlines.
        dispatch: Serves a frame.
        guards: Makes by a listener's name what stands before the handlers of its connections.
        secure: Puts what a connection goes over between it and its transport (TLS); a
            ConnectionError refuses it.
        has_to_wait: Told a listener's name, whether it may accept nobody for now; it calls back the
            listener that has to wait.
        on_disk_failure: Told the path of a file that could not be sent because its disk failed.
        quotas: How many there may be.
        settings: Limits.
        metrics: What is counted of them.
    """

    __slots__ = (
        "_all_closed",
        "_connections",
        "_deadline_timer",
        "_idle_timer",
        "_most_open",
        "_next_number",
        "_on_room",
        "_unknown",
        "_watched",
        "area",
        "budget",
        "clock",
        "dispatch",
        "guards",
        "has_to_wait",
        "loop",
        "metrics",
        "old_pages",
        "on_disk_failure",
        "quotas",
        "secure",
        "settings",
        "sockets",
    )

    def __init__(
        self,
        *,
        loop: asyncio.AbstractEventLoop,
        dispatch: Dispatch,
        clock: Clock,
        settings: NetworkSettings,
        max_sockets: int | None = None,
        on_disk_failure: Callable[[str, OSError], None] = lambda _path, _error: None,
        guards: Callable[[str], Guard | None] = lambda _listener_name: None,
        secure: Secure = lambda transport, _session: transport,
        has_to_wait: HasToWait = lambda _listener_name, _go_on: False,
        metrics: Metrics | None = None,
    ) -> None:
        """Make an empty table; `max_sockets` is what the limit of open files leaves room for."""
        self.loop = loop
        # The broker's own loop (loop_watch.py) has a poller; any other serves sockets itself.
        self.sockets: Sockets = getattr(loop, "poller", loop)
        self.area = ReceiveArea()
        self.budget = MemoryBudget(settings.memory_budget_bytes, schedule=loop.call_soon)
        self.old_pages = OldPages(PageWork(self.sockets))
        self.clock = clock
        self.dispatch = dispatch
        self.on_disk_failure = on_disk_failure
        self.guards = guards
        self.secure = secure
        self.has_to_wait = has_to_wait
        self.settings = settings
        self.quotas = ConnectionQuotas(settings, max_sockets=max_sockets or 2**31 - 1)
        self.metrics = metrics or Metrics()
        self.metrics.connection_count = self.quotas.by_listener
        self.metrics.request_memory_bytes = lambda: self.budget.used_bytes
        self._connections: dict[Connection, None] = {}
        # Those in the middle of a frame.
        self._watched: dict[Connection, None] = {}
        # Those whose clients are not known yet, with the end of their time.
        self._unknown: dict[Connection, tuple[Guard, asyncio.TimerHandle]] = {}
        # Listeners that wait for a connection to close, or for other limits.
        self._on_room: list[Callable[[], None]] = []
        self._deadline_timer: asyncio.TimerHandle | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self._all_closed: asyncio.Event | None = None
        self._next_number = 0
        # Since memory was given back.
        self._most_open = 0

    def __len__(self) -> int:
        return len(self._connections)

    def when_there_is_room(self, callback: Callable[[], None]) -> None:
        """Call back once when a connection has closed, or limits have changed."""
        self._on_room.append(callback)

    def use_settings(self, settings: NetworkSettings) -> None:
        """Take over other limits of connections: what is beyond max.connections is closed."""
        self.settings = self.quotas.settings = settings
        self._close_excess()
        self._call_waiting()

    def close_listener(self, name: str) -> None:
        """Close the connections of a listener that there is no more."""
        for connection in list(self._connections):
            if connection.session.listener_name == name:
                connection.close_because("its listener was removed")

    def _close_excess(self) -> None:
        """Close what has been quiet longest until max.connections is kept to."""
        excess = self.quotas.excess()
        if not excess:
            return
        candidates = [
            each
            for each in self._connections
            if self.quotas.may_be_closed(each.session.listener_name)
        ]
        # Those that the last sweep found active come last, the longest open of them first.
        candidates.sort(
            key=lambda each: (each.is_busy, each.activity != each.seen_activity, each.quiet_since)
        )
        for connection in candidates[:excess]:
            connection.close_because("there are too many (max.connections)")

    def _call_waiting(self) -> None:
        waiting, self._on_room = self._on_room, []
        for callback in waiting:
            self.loop.call_soon(callback)

    def late_close_s(self, host: str) -> float:
        """Count a connection of a host; return when to close it (its quota); 0: serve it."""
        delay_s = self.quotas.address_delay_s(_host(host), self.clock.monotonic())
        if delay_s:
            self.metrics.connections_throttled += 1
        return delay_s

    def open(self, sock: socket.socket, *, address: Any, listener_name: str) -> Connection | None:
        """Serve an accepted socket, which is non-blocking; None if that is refused."""
        host, port = _host(address[0]), address[1]
        if self.quotas.is_too_many_of(host):
            count = self.quotas.count_of(host)
            self._refuse(
                sock,
                f"{host}:{port}",
                listener_name,
                f"it has {count} connections (max.connections.per.ip)",
            )
            return None
        try:
            return self.adopt(
                socket_transport(self.sockets, sock),
                remote=(host, port),
                local=sock.getsockname()[:2],
                listener_name=listener_name,
            )
        except ConnectionError as error:
            self._refuse(sock, f"{host}:{port}", listener_name, str(error))
            return None

    def _refuse(self, sock: socket.socket, peer: str, listener_name: str, why: str) -> None:
        bounds = about(peer, listener_name)
        logger.info("refusing %s on %s: %s", peer, listener_name, why, extra=bounds)
        self.metrics.connections_refused[listener_name] += 1
        sock.close()

    def adopt(
        self,
        transport: ConnectionTransport,
        *,
        remote: tuple[str, int],
        local: tuple[str, int],
        listener_name: str,
    ) -> Connection:
        """Serve what a transport carries.

        Args:
            transport: Connected; becomes the connection's.
            remote: The peer's address and port.
            local: Where it has reached us.
            listener_name: Of the listener that accepted it.

        Raises:
            ConnectionError: It is refused.
        """
        host, port = remote
        local_host, local_port = _host(local[0]), local[1]
        number, self._next_number = self._next_number, self._next_number + 1
        session = Session(
            connection_id=f"{local_host}:{local_port}-{host}:{port}-{number}",
            peer=f"[{host}]:{port}" if ":" in host else f"{host}:{port}",
            listener_name=listener_name,
            local_host=local_host,
            local_port=local_port,
        )
        guard = self.guards(listener_name)
        # Pyright takes a function in a slot for a method.
        secured = self.secure(transport, session)
        secured.use_budget(self.budget)
        connection = Connection(self, secured, session, host, guard)  # pyright: ignore[reportArgumentType]
        self._connections[connection] = None
        self._most_open = max(self._most_open, len(self._connections))
        if guard is not None:
            self._ask_who(connection, guard)
        self.quotas.opened(listener_name, host)
        self.metrics.connections_opened[listener_name] += 1
        self._close_excess()
        if self._idle_timer is None and self.settings.connections_max_idle_ms >= 0:
            self._schedule_idle_sweep()
        return connection

    def _ask_who(self, connection: Connection, guard: Guard) -> None:
        """Give a client little room and little time until its guard knows it."""
        timer = self.loop.call_later(
            self.settings.authentication_deadline_ms / 1000,
            connection.close_because,
            "it has not authenticated in time (wirebroker.authentication.deadline.ms)",
        )
        self._unknown[connection] = (guard, timer)
        connection.protocol.limit(guard.most_bytes, "sasl.server.max.receive.size")
        guard.when_known(partial(self._is_known, connection))

    def _is_known(self, connection: Connection) -> None:
        limit = self.settings.request_max_bytes
        connection.protocol.limit(limit, "socket.request.max.bytes")
        self._forget_guard(connection)

    def _forget_guard(self, connection: Connection) -> None:
        guard, timer = self._unknown.pop(connection)
        timer.cancel()
        guard.when_known(None)

    def closed(self, connection: Connection) -> None:
        """Forget a connection (called by it, once)."""
        del self._connections[connection]
        if connection in self._unknown:
            self._forget_guard(connection)
        self._watched.pop(connection, None)
        self.quotas.closed(connection.session.listener_name, connection.address)
        self.metrics.connections_closed[connection.session.listener_name] += 1
        if self._most_open - len(self._connections) >= _MANY_CLOSED:
            self._most_open = len(self._connections)
            begin_in_thread(Work.UPKEEP, give_back_free_pages)
        if self._on_room:
            self._call_waiting()
        if self._all_closed is not None and not self._connections:
            self._all_closed.set()

    def watch(self, connection: Connection) -> None:
        """Close the connection when the frame that it is in the middle of is late."""
        self._watched[connection] = None
        if self._deadline_timer is None:
            self._schedule_deadline_sweep()

    def unwatch(self, connection: Connection) -> None:
        """Note that a connection is between frames."""
        self._watched.pop(connection, None)

    async def close(self, *, grace_s: float) -> None:
        """Close all: at once where nothing is in flight, the others when answered or late."""
        self._all_closed = asyncio.Event()
        for connection in list(self._connections):
            connection.end()
        if self._connections:
            try:
                async with asyncio.timeout(grace_s):
                    await self._all_closed.wait()
            except TimeoutError:
                logger.warning("%d connections are closed unanswered", len(self._connections))
        self.cut()

    def cut(self) -> None:
        """Close all at once, answered or not."""
        for connection in list(self._connections):
            connection.close()
        self.old_pages.work.close()
        for timer in (self._idle_timer, self._deadline_timer):
            if timer is not None:
                timer.cancel()

    def check(self) -> None:
        """Assert the laws."""
        self.quotas.check(len(self._connections))
        assert all(connection in self._connections for connection in self._watched)
        assert all(connection in self._connections for connection in self._unknown)
        self.budget.check()

    def _schedule_deadline_sweep(self) -> None:
        interval_s = self.settings.frame_deadline_ms / 8000
        interval_s = min(_LONGEST_DEADLINE_SWEEP_S, max(_SHORTEST_SWEEP_S, interval_s))
        self._deadline_timer = self.loop.call_later(interval_s, self._sweep_deadlines)

    def _sweep_deadlines(self) -> None:
        now = self.clock.monotonic()
        for connection in list(self._watched):
            protocol = connection.protocol
            if protocol.is_late(now):
                arrived = protocol.describe_partial()
                self.metrics.requests_late += 1
                connection.close_because(f"its request is late: {arrived} have arrived")
        self._deadline_timer = None
        if self._watched:
            self._schedule_deadline_sweep()

    def _schedule_idle_sweep(self) -> None:
        interval_s = self.settings.connections_max_idle_ms / 20_000
        interval_s = min(_LONGEST_IDLE_SWEEP_S, max(_SHORTEST_SWEEP_S, interval_s))
        self._idle_timer = self.loop.call_later(interval_s, self._sweep_idle)

    def _sweep_idle(self) -> None:
        """Compare all activity counts: about 0.15 us a connection."""
        now = self.clock.monotonic()
        quiet_before = now - self.settings.connections_max_idle_ms / 1000
        idle: list[Connection] = []
        for connection in self._connections:
            activity = connection.activity
            if activity != connection.seen_activity:
                connection.seen_activity = activity
                connection.quiet_since = now
            elif connection.quiet_since < quiet_before and not connection.is_busy:
                idle.append(connection)
        for connection in idle:
            self.metrics.connections_expired[connection.session.listener_name] += 1
            connection.close_because("it is idle (connections.max.idle.ms)")
        self._idle_timer = None
        if self._connections:
            self._schedule_idle_sweep()


def _host(host: str) -> str:
    """Return an address as text, without the prefix that a dual-stack socket gives to IPv4."""
    return host.removeprefix("::ffff:")
