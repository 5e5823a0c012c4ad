"""The controller of this process.

Without a listener in controller.listener.names it serves only the broker of its process.

Source: Kafka's ControllerServer, whose sockets are also separate from its broker's.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import socket
from functools import partial
from typing import TYPE_CHECKING, Final

from wirebroker.api.controller.registry import CONTROLLER_REGISTRY
from wirebroker.broker.bound_sockets import bind_all, endpoint_of
from wirebroker.broker.late_modules import import_late
from wirebroker.broker.voter_membership import membership_of, registration_of
from wirebroker.config import ConfigError
from wirebroker.config.listeners.listeners import controller_listeners_of, is_wildcard
from wirebroker.coordinator.controller.security.token_control import SECRET_KEY
from wirebroker.net.connection_table import ConnectionTable
from wirebroker.net.dispatch import Dispatcher
from wirebroker.net.listeners.listener import Listener
from wirebroker.net.listeners.ready_lines import BoundListener, shown_address
from wirebroker.net.settings import NetworkSettings
from wirebroker.quorum.controller.controller_duties import ControllerDuties
from wirebroker.quorum.controller.controller_reports import ControllerReports
from wirebroker.quorum.controller.membership import voter_endpoints
from wirebroker.quorum.controller.quorum_controller import QuorumController
from wirebroker.quorum.raft.leader_watch import LeaderWatch, voter_states
from wirebroker.security.sasl.listener_sasl import ListenerSasl
from wirebroker.security.tls.listener_tls import ListenerTls

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wirebroker.base.clock import Clock
    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.config import Config
    from wirebroker.config.listeners.listeners import ListenerConfig
    from wirebroker.coordinator.controller.controller import Controller
    from wirebroker.coordinator.controller.image.cluster_image import Endpoint
    from wirebroker.quorum.controller.membership import Membership
    from wirebroker.quorum.membership.controller_registration import ControllerRegistration
    from wirebroker.storage.files import Files

logger = logging.getLogger("wirebroker")

# Of a node that has to reach other controllers.
_CLIENT_MODULES: Final = (
    "wirebroker.quorum.channel.remote_channel",
    "wirebroker.quorum.membership.controller_registration",
    "wirebroker.quorum.membership.joined_quorum",
)
_API_MODULES: Final = ("envelope", "local_requests", "quorum_requests", "requests")
_SINGLE: Final = (
    "the controller at {} is the only one of its cluster: while it is down, brokers keep serving, "
    "but no partition fails over and no metadata changes"
)
# Several for each of hundreds of brokers.
_MOST_CONNECTIONS: Final = 1_000
_STOP_GRACE_S: Final = 1.0


class ControllerNode:
    """The controller role of one process.

    Attributes:
        controller: Set by `open`.
    """

    __slots__ = (
        "_clock",
        "_duties",
        "_files",
        "_is_stopping",
        "_joining",
        "_listener_configs",
        "_listeners",
        "_membership",
        "_on_disk_failure",
        "_on_unusable",
        "_registration",
        "_sasl",
        "_settings",
        "_sockets",
        "_table",
        "_tls",
        "_watch",
        "controller",
    )

    def __init__(
        self,
        config: Config,
        *,
        clock: Clock,
        files: Files,
        on_disk_failure: Callable[[str, OSError], None],
        on_unusable: Callable[[str], None],
    ) -> None:
        """Store the parts; the callbacks are those of ControllerReports."""
        self._clock = clock
        self._files = files
        self._on_disk_failure = on_disk_failure
        self._on_unusable = on_unusable
        self._settings = NetworkSettings.from_config(config)
        self._listener_configs = controller_listeners_of(config)
        self._sockets: list[tuple[ListenerConfig, socket.socket]] = []
        self._listeners: list[Listener] = []
        self._tls = ListenerTls(self._settings)
        self._sasl = ListenerSasl(clock, token_secret=config.optional_str(SECRET_KEY))
        self._table: ConnectionTable | None = None
        self._duties: ControllerDuties | None = None
        self._registration: ControllerRegistration | None = None
        self._watch: LeaderWatch | None = None
        self._membership: Membership | None = None
        self._is_stopping = False
        # While a node that was the only voter prepares to have others.
        self._joining: asyncio.Task[None] | None = None
        self.controller: QuorumController | None = None

    @property
    def bound(self) -> list[BoundListener]:
        """The bound listeners in their configured order."""
        return [
            BoundListener(config.name, *_address(sock), config.advertised, is_open=config.is_open)
            for config, sock in self._sockets
        ]

    def bind(self) -> None:
        """Bind the ports.

        Raises:
            StartError: One cannot be bound.
        """
        self._sockets = bind_all(self._listener_configs, self._settings)

    async def open(
        self,
        log_directory: str,
        rules: Controller,
        *,
        directory_id: bytes,
        first_users: Sequence[MetadataRecord] = (),
    ) -> QuorumController:
        """Replay the metadata log, lead it or take part in its quorum, and serve other nodes.

        So other nodes' brokers are not fenced while this node's broker starts. `log_directory` has
        `__cluster_metadata-0`, locked and formatted, and the id `directory_id`.

        Raises:
            StartError: The log cannot be used.
            ConfigError: The connections to the other voters cannot be used.
            OSError: The disk failed.
        """
        membership = membership_of(
            rules.config,
            clock=self._clock,
            directory_id=directory_id,
            endpoints=[_endpoint(listener, sock) for listener, sock in self._sockets],
        )
        if self._sockets and self._is_formatted_now(
            log_directory, rules.config, membership, first_users
        ):
            first_users = ()
        controller = self.controller = await QuorumController.open(
            log_directory,
            files=self._files,
            clock=self._clock,
            rules=rules,
            membership=membership,
            first_users=first_users,
            reports=ControllerReports(
                self._on_disk_failure, self._on_unusable, on_voters=self._voters_changed
            ),
        )
        self._membership = membership
        self._duties = ControllerDuties(controller, serves_others=bool(self._sockets))
        if self._sockets:
            await self._tls.open(self._listener_configs)
            self.serve(controller)
            if controller.node.is_only_voter:
                self._log_single()
            else:
                self._join_others(controller, membership)
        return controller

    def _voters_changed(self) -> None:
        """Begin to watch the quorum when this node is no longer its only voter."""
        controller = self.controller
        if controller is None or self._table is None or self._joining is not None:
            return  # not open yet, or nothing to do
        if self._is_stopping:
            return  # what begins now would not be stopped
        if self._watch is None and not controller.node.is_only_voter:
            self._joining = asyncio.create_task(self._begin_to_join(), name="join the voters")

    async def _begin_to_join(self) -> None:
        await import_late(_CLIENT_MODULES)
        assert self.controller is not None, "voters change when it is open"
        assert self._membership is not None, "likewise"
        if self.controller.node.is_ended:
            return
        try:
            self._join_others(self.controller, self._membership)
        except ConfigError as error:
            logger.warning("this controller cannot register with the other ones: %s", error)

    def _is_formatted_now(
        self,
        log_directory: str,
        config: Config,
        membership: Membership,
        first_users: Sequence[MetadataRecord],
    ) -> bool:
        """Format a new directory if this node begins a quorum that others can join."""
        from wirebroker.quorum.formatting.standalone import format_standalone  # noqa: PLC0415

        return format_standalone(
            log_directory,
            config,
            files=self._files,
            directory_id=membership.directory_id,
            endpoints=voter_endpoints(membership.endpoints),
            first_users=first_users,
        )

    def _join_others(self, controller: QuorumController, membership: Membership) -> None:
        """Watch for an active controller, and register with it.

        Raises:
            ConfigError: The connections to the other voters cannot be used.
        """
        config = controller.rules.config
        describe = partial(
            voter_states, controller.node, membership.transport, membership.listener_name
        )
        self._watch = LeaderWatch(controller.node, describe, self._clock)
        self._watch.start()
        self._registration = registration_of(config, self._clock, controller)
        self._registration.start()

    def _log_single(self) -> None:
        addresses = ", ".join(
            shown_address(bound_listener.host, bound_listener.port) for bound_listener in self.bound
        )
        logger.info("%s", _SINGLE.format(addresses))

    async def close(self) -> None:
        """Finish submitted operations, resign, and close connections and files.

        The listeners accept connections until this node has resigned: the others may need its vote.
        """
        await self._stop_parts()
        if self.controller is not None:
            await self.controller.close()
        for listener in self._listeners:
            listener.close()
        self._sasl.close()
        if self._table is not None:
            await self._table.close(grace_s=_STOP_GRACE_S)

    @property
    def voters(self) -> str:
        """The voters with their addresses and states, if there are several."""
        return "" if self._watch is None else self._watch.describe()

    async def abandon(self) -> None:
        """End as after a kill, without responses."""
        for listener in self._listeners:
            listener.close()
        await self.end_duties()
        if self._table is not None:
            self._table.cut()
        if self.controller is not None:
            await self.controller.abandon()

    async def end_duties(self) -> None:
        """Stop background tasks."""
        self._sasl.close()
        await self._stop_parts()

    async def _stop_parts(self) -> None:
        self._is_stopping = True
        if self._joining is not None:
            self._joining.cancel()
            await asyncio.wait([self._joining])
        for part in (self._duties, self._registration, self._watch):
            if part is not None:
                await part.stop()

    def release(self) -> None:
        """Close the ports, in any state."""
        for listener in self._listeners:
            listener.close()
        if self._table is not None:
            self._table.cut()
        for _, sock in self._sockets:
            sock.close()

    def serve(self, controller: QuorumController) -> None:
        """Serve other nodes; called by `open`."""
        for module in _API_MODULES:
            importlib.import_module(f"wirebroker.api.controller.{module}")
        registry = CONTROLLER_REGISTRY
        if controller.authorization is not None:
            from wirebroker.authorization.guarded import (  # noqa: PLC0415
                guarded_controller,
            )

            registry = guarded_controller(registry, controller.authorization)
        dispatcher = Dispatcher(controller, registry)
        self._sasl.serve(dispatcher, lambda: controller.follower.image, controller.rules.cluster_id)
        self._sasl.use_listeners(self._listener_configs)
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
        for config, sock in self._sockets:
            listener = Listener(self._table, config.name, sock)
            listener.start()
            self._listeners.append(listener)


def _address(sock: socket.socket) -> tuple[str, int]:
    host, port = sock.getsockname()[:2]
    return host, port


def _endpoint(listener: ListenerConfig, sock: socket.socket) -> Endpoint:
    """Return a listener's endpoint, with this machine's name for a wildcard address.

    Source: Kafka's ListenerInfo.withWildcardHostnamesResolved.
    """
    endpoint = endpoint_of(listener, sock)
    return endpoint._replace(host=socket.gethostname()) if is_wildcard(endpoint.host) else endpoint
