"""What clients reach a broker by: its listeners, what they ask of clients, the connections.

    take ports       so that a port in use is said before anything is written
    open             connections are served by a dispatcher; nothing is accepted yet
    follow           limits, keys, logins, listeners that dynamic configs add and remove
    accept           from here on clients are answered
    accept no more   who is connected is still served
    close            when what is in flight is answered

The controller's listeners are apart from these (controller_node.py).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from wirebroker.broker.bound_sockets import endpoint_of
from wirebroker.broker.enforced_quotas import enforce
from wirebroker.config.listeners.listeners import ListenerConfig, listeners_of
from wirebroker.coordinator.controller.security.token_control import SECRET_KEY
from wirebroker.net.connection_table import ConnectionTable
from wirebroker.net.listeners.open_listeners import OpenListeners
from wirebroker.net.listeners.ready_lines import BoundListener, is_everywhere
from wirebroker.net.settings import NetworkSettings
from wirebroker.security.sasl.listener_sasl import ListenerSasl
from wirebroker.security.tls.listener_tls import ListenerTls

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable

    from wirebroker.api.broker import Broker
    from wirebroker.base.clock import Clock
    from wirebroker.base.metrics import Metrics
    from wirebroker.config import Config
    from wirebroker.coordinator.controller.image.cluster_image import Endpoint
    from wirebroker.net.dispatch import Dispatcher


class Reception:
    """The listeners of one broker, and the clients that have come by them.

    Attributes:
        settings: Of the network, as they were at the start.
        sockets: The listeners of the start, with the sockets that were bound for them.
        listeners: Those that accept now; None before `open`.
        table: The connections; None before `open`.
    """

    __slots__ = (
        "_broker",
        "_clock",
        "_following",
        "_sasl",
        "_tls",
        "listeners",
        "settings",
        "sockets",
        "table",
    )

    def __init__(self, config: Config, *, clock: Clock, login_clock: Clock) -> None:
        """Begin without sockets.

        Args:
            config: Says what listeners ask of clients.
            clock: Connections wait by it.
            login_clock: Says when logins and tokens end.
        """
        self._clock = clock
        self.settings = NetworkSettings.from_config(config)
        self.sockets: list[tuple[ListenerConfig, socket.socket]] = []
        self.listeners: OpenListeners | None = None
        self.table: ConnectionTable | None = None
        self._sasl = ListenerSasl(login_clock, token_secret=config.optional_str(SECRET_KEY))
        self._tls = ListenerTls(self.settings)
        self._broker: Broker | None = None
        # Held while a configuration is taken over.
        self._following = asyncio.Lock()

    @property
    def bound(self) -> list[BoundListener]:
        """Return the listeners of the start that are open, in the order in which they are written.

        To be asked once they are open.
        """
        listeners = self._open_listeners
        return [
            BoundListener(
                listener.name,
                opened.host,
                opened.port,
                listener.advertised,
                is_open=listener.is_open,
            )
            for listener, opened in ((each, listeners[each.name]) for each, _ in self.sockets)
        ]

    @property
    def address(self) -> tuple[str, int]:
        """Return host and port of the first listener, as a client on this machine reaches it."""
        listener = self._open_listeners.first
        return ("127.0.0.1" if is_everywhere(listener.host) else listener.host), listener.port

    @property
    def endpoints(self) -> list[Endpoint]:
        """Return what the registration says of the listeners, for Quorum.endpoints."""
        return [endpoint_of(listener, sock) for listener, sock in self.sockets]

    @property
    def auto_listeners(self) -> frozenset[str]:
        """Return the listeners whose clients are told the address that they reached us at."""
        return _told_where_they_came(listener for listener, _ in self.sockets)

    @property
    def _open_listeners(self) -> OpenListeners:
        assert self.listeners is not None, "the server has not started"
        return self.listeners

    async def read_login_keys(self, config: Config) -> None:
        """Read keys of tokens and of Kerberos, so that what is wrong is said at the start.

        Raises:
            ConfigError: They cannot be read, or what reads them is missing.
        """
        await self._sasl.read_keys(listeners_of(config))

    async def read_tls_keys(self) -> None:
        """Read the keys of the listeners whose sockets are bound.

        Raises:
            StartError: Those of one can't be used.
        """
        await self._tls.open([each for each, _ in self.sockets])

    def open(
        self, broker: Broker, dispatcher: Dispatcher, *, most_sockets: int, metrics: Metrics
    ) -> None:
        """Have connections served, and charged by the quotas that there are."""
        self._broker = broker
        self._sasl.serve(dispatcher, lambda: broker.metadata.image, broker.cluster_id)
        self.table = ConnectionTable(
            loop=asyncio.get_running_loop(),
            dispatch=dispatcher,
            guards=self._sasl.guard,
            secure=self._tls.secure,
            has_to_wait=self._tls.has_to_wait,
            on_disk_failure=broker.replicas.file_failed,
            clock=self._clock,
            settings=self.settings,
            max_sockets=most_sockets,
            metrics=metrics,
        )
        enforce(broker, dispatcher, self.table)
        sockets = [(listener.name, sock) for listener, sock in self.sockets]
        self.listeners = OpenListeners(self.table, sockets)

    async def try_config(self, config: Config) -> None:
        """Try whether listeners could be opened with these keys.

        Raises:
            ConfigError: They cannot.
        """
        await self._tls.try_listeners(listeners_of(config))

    async def follow_config(self) -> None:
        """Take over what dynamic configs have changed about connections."""
        assert self._broker is not None
        async with self._following:
            if not self._broker.is_stopping:
                # The newest: what is read from files meanwhile must not outlive it.
                await self.use_config(self._broker.config)

    async def use_config(self, config: Config) -> None:
        """Have listeners, and what they ask of clients, be those of a configuration."""
        assert self._broker is not None
        listeners = self._open_listeners
        listeners.close_gone(config)
        self._sasl.use_listeners(listeners_of(config))
        await self._tls.use_listeners(listeners_of(config))
        await listeners.follow(config)
        self._broker.auto_listeners = _told_where_they_came(listeners_of(config))

    def accept(self) -> None:
        """Begin to accept connections."""
        self._open_listeners.start()

    def accept_no_more(self) -> None:
        """Stop accepting, for good."""
        if self.listeners is not None:
            self.listeners.close()

    async def close(self, *, grace_s: float) -> None:
        """Let requests in flight finish, for so long at most, and end all connections."""
        if self.table is not None:
            await self.table.close(grace_s=grace_s)
        self._sasl.close()

    def cut(self) -> None:
        """End as by a kill: nobody is answered any more."""
        self.accept_no_more()
        if self.table is not None:
            self.table.cut()
        self._sasl.close()

    def release(self) -> None:
        """Let go of the ports, whether or not anything was opened."""
        self._sasl.close()
        for _, sock in self.sockets:
            sock.close()


def _told_where_they_came(listeners: Iterable[ListenerConfig]) -> frozenset[str]:
    return frozenset(listener.name for listener in listeners if listener.advertised is None)
