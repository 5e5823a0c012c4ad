"""All open connections: shared resources, limits, deadlines and idle times.

Two sweeps find late frames (protocol.py) and idle connections, without reading the clock on the hot
path. A connection with a pending request is not idle.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.log_bound import about
from wirebroker.base.malloc_tuning import give_back_free_pages
from wirebroker.base.metrics import Metrics
from wirebroker.base.threads import Work, begin_in_thread
from wirebroker.net.bounds.memory_budget import MemoryBudget
from wirebroker.net.client.settings import PeerAddress
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
    from wirebroker.net.open_connection import OpenConnection
    from wirebroker.net.settings import NetworkSettings
    from wirebroker.net.sockets.poller import Sockets
    from wirebroker.net.sockets.transport import ConnectionTransport

    Secure = Callable[[ConnectionTransport, Session], ConnectionTransport]
    HasToWait = Callable[[str, Callable[[], None]], bool]

logger = logging.getLogger("wirebroker.net")

# Sweep intervals: short enough for tests, rare in production.
_SHORTEST_SWEEP_S: Final = 0.01
_LONGEST_DEADLINE_SWEEP_S: Final = 1.0
_LONGEST_IDLE_SWEEP_S: Final = 30.0
# After this many closes free memory is returned to the system: up to 45 KiB each with TLS.
_MANY_CLOSED: Final = 250


class ConnectionTable:
    """The connections of one event loop.

    Attributes:
        sockets: The loop's poller, or the loop.
        guards: Returns the guard of a new connection, or None.
        secure: Wraps a transport (TLS); may refuse with a ConnectionError.
        has_to_wait: Returns whether a listener must pause accepting; if so, calls the given
            callback when it may continue.
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
        """`max_sockets` is the limit from open files."""
        self.loop = loop
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
        self._connections: dict[OpenConnection, None] = {}
        # Connections that are receiving a frame.
        self._watched: dict[OpenConnection, None] = {}
        # Unauthenticated connections, with their deadlines.
        self._unknown: dict[OpenConnection, tuple[Guard, asyncio.TimerHandle]] = {}
        # Callbacks of listeners that wait for a closed connection or other limits.
        self._on_room: list[Callable[[], None]] = []
        self._deadline_timer: asyncio.TimerHandle | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self._all_closed: asyncio.Event | None = None
        self._next_number = 0
        # Since free memory was last returned.
        self._most_open = 0

    def __len__(self) -> int:
        return len(self._connections)

    def sessions(self) -> list[Session]:
        """Return the sessions of the open connections."""
        return [connection.session for connection in self._connections]

    def when_there_is_room(self, callback: Callable[[], None]) -> None:
        """Call back once when a connection closes or limits change."""
        self._on_room.append(callback)

    def use_settings(self, settings: NetworkSettings) -> None:
        """Apply other limits; close connections beyond max.connections."""
        self.settings = self.quotas.settings = settings
        self._close_excess()
        self._call_waiting()

    def close_listener(self, name: str) -> None:
        """Close the connections of a removed listener."""
        for connection in list(self._connections):
            if connection.session.listener_name == name:
                connection.close_because("its listener was removed")

    def _close_excess(self) -> None:
        """Close the longest idle connections beyond max.connections."""
        excess = self.quotas.excess()
        if not excess:
            return
        candidates = [
            connection
            for connection in self._connections
            if self.quotas.may_be_closed(connection.session.listener_name)
        ]
        # Those active at the last sweep come last, longest open first.
        candidates.sort(
            key=lambda connection: (
                connection.is_busy,
                connection.activity != connection.seen_activity,
                connection.quiet_since,
            )
        )
        for connection in candidates[:excess]:
            connection.close_because("too many connections (max.connections)")

    def _call_waiting(self) -> None:
        waiting, self._on_room = self._on_room, []
        for callback in waiting:
            self.loop.call_soon(callback)

    def late_close_s(self, host: str) -> float:
        """Count a connection; return the seconds until its host's quota closes it, or 0."""
        delay_s = self.quotas.address_delay_s(_host(host), self.clock.monotonic())
        if delay_s:
            self.metrics.connections_throttled += 1
        return delay_s

    def open(self, sock: socket.socket, *, address: Any, listener_name: str) -> Connection | None:
        """Serve an accepted, non-blocking socket; return None if it is refused."""
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

    def _refuse(self, sock: socket.socket, peer: str, listener_name: str, reason: str) -> None:
        bounds = about(peer, listener_name)
        logger.info("refusing %s on %s: %s", peer, listener_name, reason, extra=bounds)
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
        """Serve a connected transport, which the connection owns from now on.

        Raises:
            ConnectionError: It is refused.
        """
        host, port = remote
        local_host, local_port = _host(local[0]), local[1]
        number, self._next_number = self._next_number, self._next_number + 1
        session = Session(
            connection_id=f"{local_host}:{local_port}-{host}:{port}-{number}",
            peer=str(PeerAddress(host, port)),
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
            self._begin_authentication(connection, guard)
        self.quotas.opened(listener_name, host)
        self.metrics.connections_opened[listener_name] += 1
        self._close_excess()
        if self._idle_timer is None and self.settings.connections_max_idle_ms >= 0:
            self._schedule_idle_sweep()
        return connection

    def _begin_authentication(self, connection: OpenConnection, guard: Guard) -> None:
        timer = self.loop.call_later(
            self.settings.authentication_deadline_ms / 1000,
            connection.close_because,
            "it has not authenticated in time (wirebroker.authentication.deadline.ms)",
        )
        self._unknown[connection] = (guard, timer)
        connection.protocol.limit(guard.most_bytes, "sasl.server.max.receive.size")
        guard.when_known(partial(self._is_known, connection))

    def _is_known(self, connection: OpenConnection) -> None:
        limit = self.settings.request_max_bytes
        connection.protocol.limit(limit, "socket.request.max.bytes")
        self._forget_guard(connection)

    def _forget_guard(self, connection: OpenConnection) -> None:
        guard, timer = self._unknown.pop(connection)
        timer.cancel()
        guard.when_known(None)

    def closed(self, connection: OpenConnection) -> None:
        """See Owner."""
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

    def watch(self, connection: OpenConnection) -> None:
        """See Owner."""
        self._watched[connection] = None
        if self._deadline_timer is None:
            self._schedule_deadline_sweep()

    def unwatch(self, connection: OpenConnection) -> None:
        """See Owner."""
        self._watched.pop(connection, None)

    async def close(self, *, grace_s: float) -> None:
        """Close all connections after pending responses or the grace period."""
        self._all_closed = asyncio.Event()
        for connection in list(self._connections):
            connection.end()
        if self._connections:
            try:
                async with asyncio.timeout(grace_s):
                    await self._all_closed.wait()
            except TimeoutError:
                logger.warning(
                    "closing %d connections with unanswered requests", len(self._connections)
                )
        self.cut()

    def cut(self) -> None:
        """Close all connections immediately."""
        for connection in list(self._connections):
            connection.close()
        self.old_pages.work.close()
        for timer in (self._idle_timer, self._deadline_timer):
            if timer is not None:
                timer.cancel()

    def check(self) -> None:
        """Assert the invariants."""
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
                connection.close_because(f"its request timed out: received {arrived}")
        self._deadline_timer = None
        if self._watched:
            self._schedule_deadline_sweep()

    def _schedule_idle_sweep(self) -> None:
        interval_s = self.settings.connections_max_idle_ms / 20_000
        interval_s = min(_LONGEST_IDLE_SWEEP_S, max(_SHORTEST_SWEEP_S, interval_s))
        self._idle_timer = self.loop.call_later(interval_s, self._sweep_idle)

    def _sweep_idle(self) -> None:
        now = self.clock.monotonic()
        quiet_before = now - self.settings.connections_max_idle_ms / 1000
        idle: list[OpenConnection] = []
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
    # Dual-stack sockets have this prefix for IPv4.
    return host.removeprefix("::ffff:")
