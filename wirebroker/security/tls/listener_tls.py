"""TLS of a process's listeners; what it takes is loaded if one of them has it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wirebroker.config.listeners.listeners import ListenerConfig
    from wirebroker.net.settings import NetworkSettings
    from wirebroker.net.sockets.transport import ConnectionTransport
    from wirebroker.request.session import Session
    from wirebroker.security.tls.tls_doors import TlsDoors


class ListenerTls:
    """What connections go over; see tls_doors.TlsDoors."""

    __slots__ = ("_deadline_s", "_doors")

    def __init__(self, settings: NetworkSettings) -> None:
        self._deadline_s = settings.authentication_deadline_ms / 1000
        self._doors: TlsDoors | None = None

    async def open(self, listeners: Sequence[ListenerConfig]) -> None:
        """Read the keys of the listeners of the start.

        Raises:
            StartError: Those of one can't be used.
        """
        doors = self._doors_of(listeners)
        if doors is not None:
            await doors.open(listeners)

    async def use_listeners(self, listeners: Sequence[ListenerConfig]) -> None:
        """Read keys again: from the next connection on they count."""
        doors = self._doors_of(listeners)
        if doors is not None:
            await doors.use_listeners(listeners)

    async def try_listeners(self, listeners: Sequence[ListenerConfig]) -> None:
        """Read keys, and change nothing.

        Raises:
            ConfigError: Those of a listener can't be used.
        """
        doors = self._doors_of(listeners)
        if doors is not None:
            await doors.try_listeners(listeners)

    def secure(self, transport: ConnectionTransport, session: Session) -> ConnectionTransport:
        """Return what a new connection goes over.

        Raises:
            ConnectionError: Its listener has no keys that can be used.
        """
        return transport if self._doors is None else self._doors.secure(transport, session)

    def has_to_wait(self, listener_name: str, go_on: Callable[[], None]) -> bool:
        """Tell whether a listener may accept nobody for now; then it is called back."""
        return self._doors is not None and self._doors.has_to_wait(listener_name, go_on)

    def _doors_of(self, listeners: Sequence[ListenerConfig]) -> TlsDoors | None:
        if self._doors is None and any(each.tls is not None for each in listeners):
            from wirebroker.security.tls.tls_doors import TlsDoors  # noqa: PLC0415 - see above

            self._doors = TlsDoors(asyncio.get_running_loop(), deadline_s=self._deadline_s)
        return self._doors
