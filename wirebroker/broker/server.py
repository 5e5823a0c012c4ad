"""Builds a broker, starts its parts in order, and stops them in reverse.

    bind sockets
    HTTP                    if configured; reports that the broker is not ready
    lock log directories    meta.properties or a remote quorum has the cluster id
    open the broker         replay the metadata, register, open every log, follow the metadata,
                            lead (broker_opening.py)
    accept                  print the ready line; serve Metadata (listeners.py)

Stopping: move the leaderships to other brokers, accept no more, let requests in flight finish,
close every log, mark the directories clean.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from wirebroker.api.registry import enabled
from wirebroker.authorization.acl_updates import follow_acls
from wirebroker.base.clock import Clock, SystemClock
from wirebroker.base.metrics import Metrics
from wirebroker.base.threads import Work, in_thread, until_idle
from wirebroker.broker.bound_sockets import bind_all
from wirebroker.broker.broker_opening import BrokerOpening
from wirebroker.broker.listeners import Listeners
from wirebroker.broker.own_quorum import OwnQuorum
from wirebroker.broker.port_file import PortFile
from wirebroker.codecs.errors import KafkaError
from wirebroker.config.listeners.listeners import ListenerConfig, listeners_of
from wirebroker.config.quorum import has_other_voters, is_member
from wirebroker.disks.log_dir_locks import LogDirLocks, why_not_started
from wirebroker.maintenance.compaction_child import run_here, run_in_child
from wirebroker.maintenance.compactor import Compactor
from wirebroker.maintenance.maintenance import Maintenance
from wirebroker.net.dispatch import Dispatcher
from wirebroker.net.listeners.listener import (
    data_files_within,
    raise_open_file_limit,
    sockets_within,
)
from wirebroker.request.request_admission import RequestAdmission
from wirebroker.storage.files import Files

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from wirebroker.api.broker import Broker
    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.config import Config
    from wirebroker.http.server import HttpServer
    from wirebroker.net.connection_table import ConnectionTable
    from wirebroker.net.listeners.open_listeners import OpenListeners
    from wirebroker.net.listeners.ready_lines import BoundListener
    from wirebroker.quorum.channel.broker_lifecycle import BrokerLifecycle
    from wirebroker.quorum.controller.quorum_controller import QuorumController
    from wirebroker.quorum.membership.quorum import Quorum
    from wirebroker.quorum.raft.raft_figures import RaftFigures
    from wirebroker.replication.replication import Replication
    from wirebroker.request.handlers import Registry

logger = logging.getLogger("wirebroker")

# For requests in flight.
STOP_GRACE_S = 5.0


class Server:
    """One broker in one event loop; tests may pass their own clock and files."""

    def __init__(
        self,
        config: Config,
        *,
        port_file: Path | None = None,
        clock: Clock | None = None,
        files: Files | None = None,
        metrics: Metrics | None = None,
        on_failure: Callable[[str], None] | None = None,
        admission: RequestAdmission | None = None,
        network_clock: Clock | None = None,
        first_users: Sequence[MetadataRecord] = (),
        has_chosen_id: bool = False,
    ) -> None:
        """Build the parts.

        `on_failure` receives the reason why the broker cannot continue; `network_clock` times the
        waits of connections.
        """
        self.config = config
        self.metrics = metrics or Metrics()
        self._port_file = PortFile(port_file)
        self.clock = clock or SystemClock()
        self.files = files or Files(max_open_files=config.int("wirebroker.open.files"))
        self._admission = admission or RequestAdmission()
        network_clock = network_clock or self.clock
        self.broker: Broker | None = None
        self._directories = LogDirLocks(config, self.files)
        self.reception = Listeners(config, clock=network_clock, login_clock=self.clock)
        self._maintenance: Maintenance | None = None
        self.compactor: Compactor | None = None
        self.quorum: Quorum
        if is_member(config):
            self.quorum = self._joined(on_failure or _log_failure, has_chosen_id=has_chosen_id)
        elif has_other_voters(config):
            self.quorum = self._voting(on_failure or _log_failure, first_users)
        else:
            self.quorum = OwnQuorum(
                config, files=self.files, clock=self.clock, first_users=first_users
            )
        self._opening = BrokerOpening(
            config,
            directories=self._directories,
            files=self.files,
            quorum=self.quorum,
            reception=self.reception,
            clock=self.clock,
            network_clock=network_clock,
            metrics=self.metrics,
        )
        self.http: HttpServer | None = None

    def _joined(self, on_failure: Callable[[str], None], *, has_chosen_id: bool) -> Quorum:
        # A node with its own controller does not need its client modules.
        from wirebroker.quorum.membership.joined_quorum import JoinedQuorum  # noqa: PLC0415

        return JoinedQuorum(
            self.config,
            files=self.files,
            clock=self.clock,
            on_failure=on_failure,
            has_chosen_id=has_chosen_id,
        )

    def _voting(
        self, on_failure: Callable[[str], None], first_users: Sequence[MetadataRecord]
    ) -> Quorum:
        from wirebroker.broker.voting_quorum import VotingQuorum  # noqa: PLC0415 - likewise

        return VotingQuorum(
            self.config,
            files=self.files,
            clock=self.clock,
            on_failure=on_failure,
            first_users=first_users,
        )

    @property
    def controller(self) -> QuorumController | None:
        """The controller in this process, if any, once it is open."""
        return self.quorum.controller

    def raft_figures(self) -> RaftFigures:
        """Return the figures of this node's replica of the metadata log, once it is open."""
        return self.quorum.raft_figures()

    @property
    def connections(self) -> ConnectionTable | None:
        """The connections of all listeners; None before they are open."""
        return self.reception.table

    @property
    def lifecycle(self) -> BrokerLifecycle:
        """This broker's membership in its cluster."""
        return self.quorum.lifecycle

    @property
    def bound(self) -> list[BoundListener]:
        """The open listeners in their configured order."""
        return self.reception.bound

    @property
    def controllers(self) -> list[BoundListener]:
        """The open listeners of the controller in this process."""
        return self.quorum.listeners

    @property
    def cluster_id(self) -> str:
        """The cluster that its directories belong to."""
        return self._directories.cluster_id

    @property
    def data_directories(self) -> list[str]:
        """Absolute paths of the log directories."""
        return [directory.path for directory in self._directories.of_logs]

    @property
    def address(self) -> tuple[str, int]:
        """Host and port of the first listener for clients on this machine."""
        return self.reception.address

    @property
    def listeners(self) -> OpenListeners | None:
        """The listeners, accepting or about to; None until the broker is open."""
        return self.reception.listeners

    @property
    def replication(self) -> Replication | None:
        """Replication, once it is built."""
        return self._opening.replication

    async def start(self) -> None:
        """Start all parts; return when Metadata is served.

        Raises:
            StartError: The user can fix the problem.
            ConfigError: A listener cannot be used.
        """
        open_files = raise_open_file_limit()
        data_files = data_files_within(open_files, wanted=self.config.int("wirebroker.open.files"))
        self.files.bound_open_files(data_files)
        try:
            await self.reception.read_login_keys(self.config)
            self.reception.sockets = self._bind()
            self.quorum.bind()
            await self.reception.read_tls_keys()
            await self._open_monitoring()
            self._directories.open(await self.quorum.find_cluster_id())
            self._port_file.remove()
            broker = self.broker = await self._opening.open()
        except (OSError, KafkaError) as error:
            await self._give_up()
            raise why_not_started(error) from error
        except BaseException:
            await self._give_up()
            raise
        try:
            most_sockets = sockets_within(open_files, data_files=data_files)
            await self._begin_to_serve(broker, most_sockets)
            self._port_file.write(self.address[1])
        except BaseException:
            await self.stop()
            raise

    async def _begin_to_serve(self, broker: Broker, most_sockets: int) -> None:
        self._maintenance = Maintenance(broker)
        self._maintenance.start()
        run = run_in_child if type(self.files) is Files else run_here(self.files)
        self.compactor = Compactor(broker, self.files, run)
        self.compactor.start()
        dispatcher = Dispatcher(
            broker, self._handlers(broker), admission=self._admission, metrics=self.metrics
        )
        self.reception.open(broker, dispatcher, most_sockets=most_sockets, metrics=self.metrics)
        broker.config_followers.append(self._follow_config)
        await self._follow_config(broker.config)
        broker.config_trials.append(self.reception.try_config)
        self.reception.accept()
        self.quorum.serve()

    @property
    def is_controller(self) -> bool:
        """Whether the active controller is in this process."""
        return self.controller is not None and self.controller.is_active

    def not_ready_reason(self) -> str | None:
        """Return why clients are not served, or None."""
        if self.broker is None or self.listeners is None:
            return "recovering the logs" if self._opening.is_registered else "starting"
        if self.broker.is_stopping:
            return "stopping"
        registered = self.broker.metadata.image.brokers.get(self.broker.node_id)
        if registered is None or registered.fenced:
            return "fenced by the controller"
        return None

    async def stop(self) -> None:
        """Finish requests in flight, write everything to disk, and release everything."""
        if self.broker is not None:
            self._port_file.remove()
            await self.quorum.retire()
            self.reception.stop_accepting()
            self.broker.is_stopping = True
            self.broker.replicas.wake_all()
            await self.broker.transactions.stop()
            await self.broker.groups.stop()
            await self.broker.share_parts.stop()
            await self.broker.share_coordinator.stop()
        await self.reception.close(grace_s=STOP_GRACE_S)
        if self.compactor is not None:
            await self.compactor.stop()
        if self._maintenance is not None:
            await self._maintenance.stop()
        if self.broker is not None:
            broker_epoch = await self.quorum.leave()
            assert self.replication is not None, "it starts with the broker"
            await self.replication.stop()
            await self.broker.replicas.until_settled()
            # In a thread, so that a second SIGINT works while the disks are slow.
            await in_thread(
                Work.TOPICS, partial(self.broker.replicas.close, broker_epoch=broker_epoch)
            )
            await until_idle()
        await self._release()

    async def abandon(self) -> None:
        """End as after a kill, without responses, leadership moves, flushes or clean marks.

        Call it once, after `start`.
        """
        broker = self.broker
        assert broker is not None, "the server has not started"
        self._port_file.remove()
        self.reception.cut()
        broker.is_stopping = True
        broker.replicas.wake_all()
        coordinators = broker.transactions, broker.groups, broker.share_parts
        for part in (self.compactor, self._maintenance, *coordinators, broker.share_coordinator):
            assert part is not None
            await part.stop()
        assert self.replication is not None
        await self.replication.stop()
        await self.quorum.abandon()
        await broker.replicas.until_settled()
        broker.replicas.deleted_partitions.close()
        await until_idle()
        await self._release()

    async def _follow_config(self, _config: Config) -> None:
        assert self.compactor is not None
        self.compactor.config_changed()
        await self.reception.follow_config()

    def _bind(self) -> list[tuple[ListenerConfig, socket.socket]]:
        return bind_all(listeners_of(self.config), self.reception.settings)

    async def _open_http(self) -> None:
        from wirebroker.http.opening import open_http  # noqa: PLC0415
        from wirebroker.metrics.scrape import add_metrics  # noqa: PLC0415

        self.http = await open_http(self.config, not_ready_reason=self.not_ready_reason)
        add_metrics(self.http.routes, self)

    async def _open_monitoring(self) -> None:
        if self.config.list("wirebroker.http.listeners"):
            await self._open_http()

    def _handlers(self, broker: Broker) -> Registry:
        metadata, controller = broker.metadata, self.controller
        handlers = enabled(broker.config)
        authorization = (
            follow_acls(self.config, metadata) if controller is None else controller.authorization
        )
        if authorization is None:
            return handlers
        from wirebroker.authorization.guarded import guarded  # noqa: PLC0415

        broker.authorization = authorization
        # Prepared requests of sessions depend on earlier ACLs.
        authorization.tell_changes(self._admission.raise_epoch)
        return guarded(handlers, authorization)

    async def _give_up(self) -> None:
        if self.replication is not None:
            await self.replication.stop()
        await self.quorum.give_up()
        if is_member(self.config) and not self._opening.is_registered:
            self._directories.take_back()
        await self._release()

    async def _release(self) -> None:
        if self.http is not None:
            await self.http.close()
        self.reception.release()
        self._directories.close()
        self.files.close_all()


def _log_failure(line: str) -> None:
    logger.error("%s", line)
