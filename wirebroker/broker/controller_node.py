"""The controller of this process: its log, its rules, and the listeners that others reach it by.

    node.bind()                 so that a port in use is said before anything is written
    await node.open(...)        the log replayed and led; from now on other nodes are answered, for
                                brokers that are served here must not be fenced while ours starts
    await node.close()          no one waits any more, connections end, what was submitted is done

Without a listener in controller.listener.names it serves the broker of its own process alone.

Source: Kafka's ControllerServer, whose sockets are not its broker's either.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import socket
from typing import TYPE_CHECKING, Final

from wirebroker.api.controller.registry import CONTROLLER_REGISTRY
from wirebroker.broker.bound_sockets import bind_all, endpoint_of
from wirebroker.config.listeners.listeners import controller_listeners_of, is_wildcard
from wirebroker.coordinator.controller.security.token_control import SECRET_KEY
from wirebroker.net.connection_table import ConnectionTable
from wirebroker.net.dispatch import Dispatcher
from wirebroker.net.listeners.listener import Listener
from wirebroker.net.listeners.ready_lines import BoundListener, shown_address
from wirebroker.net.settings import NetworkSettings
from wirebroker.quorum.controller.quorum_controller import QuorumController
from wirebroker.quorum.controller.regular_elections import RegularElections
from wirebroker.quorum.controller.token_removal import TokenRemoval
from wirebroker.security.sasl.listener_sasl import ListenerSasl
from wirebroker.security.tls.listener_tls import ListenerTls

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.base.clock import Clock
    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.config import Config
    from wirebroker.config.listeners.listeners import ListenerConfig
    from wirebroker.coordinator.controller.controller import Controller
    from wirebroker.coordinator.controller.image.cluster_image import Endpoint
    from wirebroker.storage.files import Files

logger = logging.getLogger("wirebroker")

# Modules whose handlers serve a controller listener.
_API_MODULES: Final = (
    "acls",
    "describe_cluster",
    "describe_configs",
    "envelope",
    "metadata_log",
    "requests",
    "sasl",
    "versions",
)
_SINGLE: Final = (
    "the controller at {} is the only one of its cluster: while it is down brokers go on serving, "
    "but none fails over and nothing is changed"
)
# Some for each of hundreds of brokers.
_MOST_CONNECTIONS: Final = 1_000
# How long requests in hand may take when the controller is told to stop.
_STOP_GRACE_S: Final = 1.0


class ControllerNode:
    """The controller role of one process.

    Attributes:
        controller: What it is, once it is open.
    """

    __slots__ = (
        "_clock",
        "_elections",
        "_files",
        "_listeners",
        "_sasl",
        "_settings",
        "_sockets",
        "_table",
        "_tls",
        "_token_removal",
        "_wanted",
        "controller",
    )

    def __init__(self, config: Config, *, clock: Clock, files: Files) -> None:
        self._clock = clock
        self._files = files
        self._settings = NetworkSettings.from_config(config)
        self._wanted = controller_listeners_of(config)
        self._sockets: list[tuple[ListenerConfig, socket.socket]] = []
        self._listeners: list[Listener] = []
        self._tls = ListenerTls(self._settings)
        self._sasl = ListenerSasl(clock, token_secret=config.optional_str(SECRET_KEY))
        self._table: ConnectionTable | None = None
        self._elections: RegularElections | None = None
        self._token_removal: TokenRemoval | None = None
        self.controller: QuorumController | None = None

    @property
    def bound(self) -> list[BoundListener]:
        """Return the listeners that are bound, in the order in which they are written."""
        return [
            BoundListener(each.name, *_address(sock), each.advertised, is_open=each.is_open)
            for each, sock in self._sockets
        ]

    def bind(self) -> None:
        """Take the ports.

        Raises:
            StartError: One cannot be had.
        """
        self._sockets = bind_all(self._wanted, self._settings)

    async def open(
        self, log_directory: str, rules: Controller, first_users: Sequence[MetadataRecord] = ()
    ) -> QuorumController:
        """Read the metadata log, lead it, and answer others.

        Args:
            log_directory: Where `__cluster_metadata-0` lies; locked and formatted already.
            rules: With the configuration of this node, the only voter.
            first_users: Records of users that a new cluster begins with.

        Raises:
            StartError: The log cannot be used.
            OSError: The disk.
        """
        controller = self.controller = await QuorumController.open(
            log_directory,
            files=self._files,
            clock=self._clock,
            rules=rules,
            endpoints=[_endpoint(listener, sock) for listener, sock in self._sockets],
            first_users=first_users,
        )
        self._token_removal = TokenRemoval(controller)
        self._elections = RegularElections(controller, serves_others=bool(self._sockets))
        if self._sockets:
            await self._tls.open(self._wanted)
            self.serve(controller)
            places = ", ".join(shown_address(each.host, each.port) for each in self.bound)
            logger.info("%s", _SINGLE.format(places))
        return controller

    async def close(self) -> None:
        """Finish what was submitted, and let go of connections and files."""
        for listener in self._listeners:
            listener.close()
        await self.end_duties()
        if self.controller is not None:
            self.controller.fetches.stop()
        if self._table is not None:
            await self._table.close(grace_s=_STOP_GRACE_S)
        if self.controller is not None:
            await self.controller.close()

    async def abandon(self) -> None:
        """End as by a kill: nobody is answered."""
        for listener in self._listeners:
            listener.close()
        await self.end_duties()
        if self._table is not None:
            self._table.cut()
        if self.controller is not None:
            await self.controller.close()

    async def end_duties(self) -> None:
        """Do nothing more of its own accord."""
        self._sasl.close()
        if self._elections is not None:
            await self._elections.stop()
        if self._token_removal is not None:
            await self._token_removal.stop()

    def release(self) -> None:
        """Let go of the ports, whatever has become of the rest."""
        for listener in self._listeners:
            listener.close()
        if self._table is not None:
            self._table.cut()
        for _, sock in self._sockets:
            sock.close()

    def serve(self, controller: QuorumController) -> None:
        """Answer others from now on; `open` does it."""
        for module in _API_MODULES:
            importlib.import_module(f"wirebroker.api.controller.{module}")
        registry = CONTROLLER_REGISTRY
        if controller.authorization is not None:
            from wirebroker.authorization.guarded import (  # noqa: PLC0415 - if asked for
                guarded_controller,
            )

            registry = guarded_controller(registry, controller.authorization)
        dispatcher = Dispatcher(controller, registry)
        self._sasl.serve(dispatcher, lambda: controller.follower.image, controller.rules.cluster_id)
        self._sasl.use_listeners(self._wanted)
        self._table = ConnectionTable(
            loop=asyncio.get_running_loop(),
            dispatch=dispatcher,
            guards=self._sasl.guard,
            secure=self._tls.secure,
            has_to_wait=self._tls.has_to_wait,
            clock=self._clock,
            settings=self._settings,
            max_sockets=_MOST_CONNECTIONS,
        )
        for each, sock in self._sockets:
            listener = Listener(self._table, each.name, sock)
            listener.start()
            self._listeners.append(listener)


def _address(sock: socket.socket) -> tuple[str, int]:
    host, port = sock.getsockname()[:2]
    return host, port


def _endpoint(listener: ListenerConfig, sock: socket.socket) -> Endpoint:
    """Return where others are told to reach a listener; for a wildcard, this machine's name.

    Source: Kafka's ListenerInfo.withWildcardHostnamesResolved.
    """
    told = endpoint_of(listener, sock)
    return told._replace(host=socket.gethostname()) if is_wildcard(told.host) else told
