"""The broker's listeners for clients: sockets, authentication, connections.

    bind
    open             a dispatcher serves connections; nothing is accepted yet
    follow           limits, keys, logins and listeners of dynamic configs
    accept           serve clients
    accept no more   connected clients are still served
    close            after requests in flight are served

The controller's listeners are in controller_node.py.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from wirebroker.broker.bound_sockets import endpoint_of
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
    from wirebroker.coordinator.quotas.quota_entity import ClientQuotas
    from wirebroker.net.dispatch import Dispatcher


class Listeners:
    """The listeners of one broker, and their connections.

    Attributes:
        settings: Network settings at the start.
        sockets: The listeners that were bound at the start, with their sockets.
        listeners: The open ones; None before `open`.
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
        """Begin without sockets; `clock` times connections, `login_clock` logins and tokens."""
        self._clock = clock
        self.settings = NetworkSettings.from_config(config)
        self.sockets: list[tuple[ListenerConfig, socket.socket]] = []
        self.listeners: OpenListeners | None = None
        self.table: ConnectionTable | None = None
        self._sasl = ListenerSasl(login_clock, token_secret=config.optional_str(SECRET_KEY))
        self._tls = ListenerTls(self.settings)
        self._broker: Broker | None = None
        self._following = asyncio.Lock()

    @property
    def bound(self) -> list[BoundListener]:
        """The listeners that were bound at the start, in configuration order."""
        listeners = self._open_listeners
        return [
            BoundListener(
                listener.name,
                opened.host,
                opened.port,
                listener.advertised,
                is_open=listener.is_open,
            )
            for listener, opened in ((config, listeners[config.name]) for config, _ in self.sockets)
        ]

    @property
    def address(self) -> tuple[str, int]:
        """Host and port of the first listener for clients on this machine."""
        listener = self._open_listeners.first
        return ("127.0.0.1" if is_everywhere(listener.host) else listener.host), listener.port

    @property
    def endpoints(self) -> list[Endpoint]:
        """Endpoints for the registration."""
        return [endpoint_of(listener, sock) for listener, sock in self.sockets]

    @property
    def auto_listeners(self) -> frozenset[str]:
        """Listeners that advertise the address to which the client connected."""
        return _use_listener_addresses(listener for listener, _ in self.sockets)

    @property
    def _open_listeners(self) -> OpenListeners:
        assert self.listeners is not None, "the server has not started"
        return self.listeners

    async def read_login_keys(self, config: Config) -> None:
        """Read keys of tokens and Kerberos now, so that errors are reported at the start.

        Raises:
            ConfigError: They cannot be read, or a library is missing.
        """
        await self._sasl.read_keys(listeners_of(config))

    async def read_tls_keys(self) -> None:
        """Read the TLS keys of the bound listeners.

        Raises:
            StartError: A listener's keys cannot be used.
        """
        await self._tls.open([config for config, _ in self.sockets])

    def open(
        self, broker: Broker, dispatcher: Dispatcher, *, most_sockets: int, metrics: Metrics
    ) -> None:
        """Prepare to serve connections."""
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
        """Check that the TLS keys of a new configuration can be read, without using them.

        Raises:
            ConfigError: Some cannot be used.
        """
        await self._tls.try_listeners(listeners_of(config))

    async def follow_config(self) -> None:
        """Apply dynamic configs to connections."""
        assert self._broker is not None
        async with self._following:
            if not self._broker.is_stopping:
                # The newest config, because reading files takes time.
                await self.use_config(self._broker.config)

    async def use_config(self, config: Config) -> None:
        """Apply a configuration."""
        assert self._broker is not None
        listeners = self._open_listeners
        listeners.close_removed(config)
        self._sasl.use_listeners(listeners_of(config))
        await self._tls.use_listeners(listeners_of(config))
        await listeners.follow(config)
        self._broker.auto_listeners = _use_listener_addresses(listeners_of(config))

    def accept(self) -> None:
        """Accept connections."""
        self._open_listeners.start()

    def stop_accepting(self) -> None:
        """Stop accepting permanently."""
        if self.listeners is not None:
            self.listeners.close()

    async def close(self, *, grace_s: float) -> None:
        """Let requests in flight finish within the grace period, and close all connections."""
        if self.table is not None:
            await self.table.close(grace_s=grace_s)
        self._sasl.close()

    def cut(self) -> None:
        """End as after a kill, without responses."""
        self.stop_accepting()
        if self.table is not None:
            self.table.cut()
        self._sasl.close()

    def release(self) -> None:
        """Close the ports, in any state."""
        self._sasl.close()
        for _, sock in self.sockets:
            sock.close()


def _use_listener_addresses(listeners: Iterable[ListenerConfig]) -> frozenset[str]:
    return frozenset(listener.name for listener in listeners if listener.advertised is None)


def enforce(broker: Broker, dispatcher: Dispatcher, table: ConnectionTable) -> None:
    """Apply the current and later quotas to requests and connections."""

    def use(quotas: ClientQuotas) -> None:
        dispatcher.quotas = broker.quotas if broker.quotas.has_quotas else None
        table.quotas.use_rates(quotas)

    rates = broker.quotas.by_name()
    table.metrics.throttle_ms = lambda: {name: quota.throttled_ms for name, quota in rates.items()}
    table.metrics.throttled = lambda: {name: quota.throttled_count for name, quota in rates.items()}
    broker.quota_users.append(use)
    broker.use_quotas(broker.metadata.image.client_quotas)
