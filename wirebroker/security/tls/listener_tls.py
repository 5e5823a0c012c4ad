"""TLS of a process's listeners; loads the rest only if a listener uses it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wirebroker.config.listeners.listeners import ListenerConfig
    from wirebroker.net.settings import NetworkSettings
    from wirebroker.net.sockets.transport import ConnectionTransport
    from wirebroker.request.session import Session
    from wirebroker.security.tls.listeners_tls import ListenersTls


class ListenerTls:
    """Transports of connections; see ListenersTls."""

    __slots__ = ("_deadline_s", "_doors")

    def __init__(self, settings: NetworkSettings) -> None:
        self._deadline_s = settings.authentication_deadline_ms / 1000
        self._doors: ListenersTls | None = None

    async def open(self, listeners: Sequence[ListenerConfig]) -> None:
        """Read the keys of the first listeners.

        Raises:
            StartError: Some cannot be used.
        """
        doors = self._doors_of(listeners)
        if doors is not None:
            await doors.open(listeners)

    async def use_listeners(self, listeners: Sequence[ListenerConfig]) -> None:
        """Read keys again, for new connections."""
        doors = self._doors_of(listeners)
        if doors is not None:
            await doors.use_listeners(listeners)

    async def try_listeners(self, listeners: Sequence[ListenerConfig]) -> None:
        """Read keys without using them.

        Raises:
            ConfigError: Some cannot be used.
        """
        doors = self._doors_of(listeners)
        if doors is not None:
            await doors.try_listeners(listeners)

    def secure(self, transport: ConnectionTransport, session: Session) -> ConnectionTransport:
        """Return the transport of a new connection.

        Raises:
            ConnectionError: Its listener has no usable keys.
        """
        return transport if self._doors is None else self._doors.secure(transport, session)

    def has_to_wait(self, listener_name: str, go_on: Callable[[], None]) -> bool:
        """See ListenersTls."""
        return self._doors is not None and self._doors.has_to_wait(listener_name, go_on)

    def _doors_of(self, listeners: Sequence[ListenerConfig]) -> ListenersTls | None:
        if self._doors is None and any(listener.tls is not None for listener in listeners):
            from wirebroker.security.tls.listeners_tls import ListenersTls  # noqa: PLC0415 - see above

            self._doors = ListenersTls(asyncio.get_running_loop(), deadline_s=self._deadline_s)
        return self._doors
