"""The open listeners: those of the start, and changes by dynamic configs.

Source: Kafka's DynamicListenerConfig.reconfigure.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from wirebroker.base.threads import Work, in_thread
from wirebroker.config.listeners.listeners import listeners_of
from wirebroker.config.rows.texts import counts_by_host
from wirebroker.net.listeners.host_lookup import HostLookup
from wirebroker.net.listeners.listener import Listener, bind
from wirebroker.net.listeners.ready_lines import BoundListener, open_warning
from wirebroker.net.settings import NetworkSettings

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable

    from wirebroker.config import Config
    from wirebroker.net.connection_table import ConnectionTable

logger = logging.getLogger("wirebroker.net")


class OpenListeners:
    """The listeners of one broker, in the order of opening; `first` is in the ready line."""

    __slots__ = ("_by_name", "_hosts", "_is_closed", "_table", "first")

    def __init__(
        self, table: ConnectionTable, sockets: Iterable[tuple[str, socket.socket]]
    ) -> None:
        """Take over bound sockets, at least one."""
        self._table = table
        self._by_name = {name: Listener(table, name, sock) for name, sock in sockets}
        self._is_closed = False
        self._hosts = HostLookup()
        self.first = next(iter(self._by_name.values()))

    def __getitem__(self, name: str) -> Listener:
        return self._by_name[name]

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def start(self) -> None:
        """Begin to accept."""
        for listener in self._by_name.values():
            listener.start()

    def close(self) -> None:
        """Stop accepting, permanently."""
        self._is_closed = True
        self._hosts.close()
        for listener in self._by_name.values():
            listener.close()

    def close_removed(self, config: Config) -> None:
        """Close removed listeners; call it while their authentication settings still exist."""
        configured = {listener.name for listener in listeners_of(config)}
        for name in self._by_name.keys() - configured:
            self._by_name.pop(name).close()
            self._table.close_listener(name)
            logger.info("%s is closed", name)

    async def follow(self, config: Config) -> None:
        """Apply limits, and open new listeners."""
        settings = NetworkSettings.from_config(config, self._hosts.addresses)
        configured = listeners_of(config)
        self._table.use_settings(settings)
        await self._look_up_hosts(config)
        for listener in configured:
            if listener.name in self._by_name:
                continue
            try:
                sock = await in_thread(Work.LISTENERS, bind, listener.host, listener.port, settings)
            except OSError as error:
                logger.error(  # noqa: TRY400 - the traceback adds nothing
                    "%s cannot be opened on %s:%d: %s",
                    listener.name,
                    listener.host,
                    listener.port,
                    error,
                )
                continue
            if self._is_closed:  # the broker is stopping
                sock.close()
                return
            opened = self._by_name[listener.name] = Listener(self._table, listener.name, sock)
            opened.start()
            logger.info("%s listens on %s:%d", opened.name, opened.host, opened.port)
            bound_listener = BoundListener(
                listener.name,
                opened.host,
                opened.port,
                listener.advertised,
                is_open=listener.is_open,
            )
            warning = open_warning([bound_listener])
            if warning is not None:
                logger.warning("%s", warning)

    async def _look_up_hosts(self, config: Config) -> None:

        def take_over() -> None:
            addresses = self._hosts.addresses
            self._table.use_settings(NetworkSettings.from_config(config, addresses))

        hosts = counts_by_host(config.str("max.connections.per.ip.overrides"))
        await self._hosts.look_up(hosts, take_over)
