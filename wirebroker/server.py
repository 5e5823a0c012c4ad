"""Builds a broker, starts its parts in order, stops them in reverse. Read this first.

    bind sockets            so that a port in use is said before anything is written
    HTTP                    if it is asked for: from here on it says that the broker is not ready
    lock log directories    meta.properties tells node and cluster; a quorum elsewhere tells it too
    quorum                  the metadata log replayed into an image: this node becomes its leader,
                            or has fetched what other controllers have committed (membership/)
    register                as a broker of Apache Kafka does; what a kill has left is taken from the
                            incarnation before
    replicas                every log opened, recovered if the last stop was no clean one
    subscribe, unfence      from now on it follows the metadata, and leads
    accept                  the ready line; Metadata is answered from here on

Stopping: have other brokers take the leaderships, accept no more, let requests in flight finish,
close every log, mark the directories clean. serving.py makes a process of it.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import random
from functools import partial
from typing import TYPE_CHECKING

from wirebroker.api.modules import API_MODULES
from wirebroker.api.registry import REGISTRY
from wirebroker.authorization.following import follow_acls
from wirebroker.bound_sockets import bind_all, endpoint_of
from wirebroker.broker import Broker, dynamic_config
from wirebroker.clock import Clock, SystemClock
from wirebroker.cluster.auto_creation import AutoCreation
from wirebroker.cluster.compaction_child import run_here, run_in_child
from wirebroker.cluster.compactor import Compactor
from wirebroker.cluster.group_coordinator import GroupCoordinator
from wirebroker.cluster.maintenance import Maintenance
from wirebroker.cluster.metadata_cache import MetadataCache
from wirebroker.cluster.producer_id_supply import ProducerIdSupply
from wirebroker.cluster.remote_markers import RemoteMarkers
from wirebroker.cluster.remote_verification import RemoteVerification
from wirebroker.cluster.replica_manager import ReplicaManager
from wirebroker.cluster.replication import Replication
from wirebroker.cluster.transaction_coordinator import TransactionCoordinator
from wirebroker.cluster.transaction_markers import MarkerWriter
from wirebroker.cluster.transaction_verifier import TransactionVerifier
from wirebroker.codecs.errors import KafkaError
from wirebroker.config import Config, StartError
from wirebroker.config.listeners import ListenerConfig, listeners_of
from wirebroker.config.quorum import is_member
from wirebroker.coordinator.controller.token_control import SECRET_KEY
from wirebroker.coordinator.groups.settings import GroupSettings
from wirebroker.coordinator.transactions.settings import TransactionSettings
from wirebroker.enforced_quotas import enforce
from wirebroker.fetch_sessions import FetchSessions
from wirebroker.garbage import uncollected
from wirebroker.gate import Gate
from wirebroker.locked_directories import LockedDirectories
from wirebroker.membership.own_quorum import OwnQuorum
from wirebroker.metrics import Metrics
from wirebroker.net.connection_table import ConnectionTable
from wirebroker.net.dispatch import Dispatcher
from wirebroker.net.listener import (
    data_files_within,
    raise_open_file_limit,
    sockets_within,
)
from wirebroker.net.open_listeners import OpenListeners
from wirebroker.net.settings import NetworkSettings
from wirebroker.port_file import PortFile
from wirebroker.quotas.client_quotas import ClientQuotas
from wirebroker.ready_lines import (
    BoundListener,
    is_everywhere,
)
from wirebroker.security.listener_sasl import ListenerSasl
from wirebroker.security.listener_tls import ListenerTls
from wirebroker.storage.files import Files
from wirebroker.threads import Work, in_thread, until_idle

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from wirebroker.cluster.broker_lifecycle import BrokerLifecycle
    from wirebroker.cluster.quorum_controller import QuorumController
    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.coordinator.controller.cluster_image import ClusterImage
    from wirebroker.handlers import Registry
    from wirebroker.http.server import HttpServer
    from wirebroker.membership.quorum import Quorum
    from wirebroker.otlp.push import MetricsPush

logger = logging.getLogger("wirebroker")

# How long requests in flight may take to finish when the broker is told to stop.
STOP_GRACE_S = 5.0
# How long a start waits until the controller knows where replicas lie.
_TELL_S = 5.0


class Server:
    """One broker in one event loop. Clock and files may be a test's own."""

    def __init__(
        self,
        config: Config,
        *,
        port_file: Path | None = None,
        clock: Clock | None = None,
        files: Files | None = None,
        metrics: Metrics | None = None,
        on_failure: Callable[[str], None] | None = None,
        gate: Gate | None = None,
        first_users: Sequence[MetadataRecord] = (),
        has_chosen_id: bool = False,
    ) -> None:
        """Take what the broker is made of; `on_failure` is told why it cannot go on."""
        self.config = config
        self.metrics = metrics or Metrics()
        self._port_file = PortFile(port_file)
        self.clock = clock or SystemClock()
        self.files = files or Files(max_open_files=config.int("wirebroker.open.files"))
        self._gate = gate or Gate()
        # Connections wait by it.
        self._network_clock: Clock = self.clock
        self.broker: Broker | None = None
        self._settings = NetworkSettings.from_config(config)
        self._sockets: list[tuple[ListenerConfig, socket.socket]] = []
        self._directories = LockedDirectories(config, self.files)
        self.listeners: OpenListeners | None = None
        self._table: ConnectionTable | None = None
        self._sasl = ListenerSasl(self.clock, token_secret=config.optional_str(SECRET_KEY))
        self._tls = ListenerTls(self._settings)
        # Held while a configuration is taken over.
        self._following = asyncio.Lock()
        self._maintenance: Maintenance | None = None
        self._compactor: Compactor | None = None
        self._replication: Replication | None = None
        self.quorum: Quorum = (
            self._joined(on_failure or _log_failure, has_chosen_id=has_chosen_id)
            if is_member(config)
            else OwnQuorum(config, files=self.files, clock=self.clock, first_users=first_users)
        )
        self._is_registered = False
        # Serves from before the broker opens until it is closed, if it is asked for.
        self.http: HttpServer | None = None
        self._push: MetricsPush | None = None

    def _joined(self, on_failure: Callable[[str], None], *, has_chosen_id: bool) -> Quorum:
        # It reaches controllers by connections: modules that a node of its own does without.
        from wirebroker.membership.joined_quorum import JoinedQuorum  # noqa: PLC0415

        return JoinedQuorum(
            self.config,
            files=self.files,
            clock=self.clock,
            on_failure=on_failure,
            has_chosen_id=has_chosen_id,
        )

    @property
    def controller(self) -> QuorumController | None:
        """The controller in this process, if there is one, once it is open."""
        return self.quorum.controller if isinstance(self.quorum, OwnQuorum) else None

    @property
    def lifecycle(self) -> BrokerLifecycle:
        """This broker's membership in its cluster."""
        return self.quorum.lifecycle

    @property
    def bound(self) -> list[BoundListener]:
        """Return the open listeners, in the order in which they are written."""
        assert self.listeners is not None, "the server has not started"
        return [
            BoundListener(
                listener.name,
                opened.host,
                opened.port,
                listener.advertised,
                is_open=listener.is_open,
            )
            for listener, opened in ((each, self.listeners[each.name]) for each, _ in self._sockets)
        ]

    @property
    def controllers(self) -> list[BoundListener]:
        """Return the open listeners of the controller in this process."""
        return self.quorum.listeners

    @property
    def cluster_id(self) -> str:
        """The cluster that its directories belong to."""
        return self._directories.cluster_id

    @property
    def data_directories(self) -> list[str]:
        """Return where data lies, as absolute paths."""
        return [directory.path for directory in self._directories.of_logs]

    @property
    def address(self) -> tuple[str, int]:
        """Return host and port of the first listener, as a client on this machine reaches it."""
        assert self.listeners is not None, "the server has not started"
        listener = self.listeners.first
        return ("127.0.0.1" if is_everywhere(listener.host) else listener.host), listener.port

    async def start(self) -> None:
        """Bring everything up; returns when Metadata is answered.

        Raises:
            StartError: Something that the user can mend.
            ConfigError: A listener that cannot be used.
        """
        open_files = raise_open_file_limit()
        data_files = data_files_within(open_files, wanted=self.config.int("wirebroker.open.files"))
        self.files.bound_open_files(data_files)
        try:
            await self._sasl.read_keys(listeners_of(self.config))
            self._bind()
            self.quorum.bind()
            await self._tls.open([each for each, _ in self._sockets])
            await self._be_watched()
            self._directories.open(await self.quorum.find_cluster_id())
            self._port_file.remove()
            broker = self.broker = await self._open_broker()
        except (OSError, KafkaError) as error:
            await self._give_up()
            raise StartError(
                f"the data directory cannot be used: {error}",
                "check the disk and its permissions, or choose another (--data-dir DIR)",
            ) from error
        except BaseException:
            await self._give_up()
            raise
        self._maintenance = Maintenance(broker)
        self._maintenance.start()
        run = run_in_child if type(self.files) is Files else run_here(self.files)
        self._compactor = Compactor(broker, self.files, run)
        self._compactor.start()
        dispatcher = Dispatcher(
            broker, self._handlers(broker), gate=self._gate, metrics=self.metrics
        )
        self._sasl.serve(dispatcher, lambda: broker.metadata.image)
        self._table = ConnectionTable(
            loop=asyncio.get_running_loop(),
            dispatch=dispatcher,
            guards=self._sasl.guard,
            secure=self._tls.secure,
            on_disk_failure=broker.replicas.file_failed,
            clock=self._network_clock,
            settings=self._settings,
            max_sockets=sockets_within(open_files, data_files=data_files),
            metrics=self.metrics,
        )
        enforce(broker, dispatcher, self._table)
        sockets = [(listener.name, sock) for listener, sock in self._sockets]
        self.listeners = OpenListeners(self._table, sockets)
        # Those that dynamic configs have added, and what they limit.
        broker.config_followers.append(self._follow_config)
        await self._follow_config(broker.config)
        broker.config_trials.append(self._try_config)
        self.listeners.start()
        self.quorum.serve()
        try:
            self._port_file.write(self.address[1])
        except StartError:
            await self.stop()
            raise

    @property
    def is_controller(self) -> bool:
        """Whether the active controller is in this process."""
        return self.controller is not None

    def why_not_ready(self) -> str | None:
        """Say what keeps clients from being served; None: nothing does."""
        if self.broker is None or self.listeners is None:
            return "it recovers its logs" if self._is_registered else "it starts"
        if self.broker.is_stopping:
            return "it stops"
        registered = self.broker.metadata.image.brokers.get(self.broker.node_id)
        if registered is None or registered.fenced:
            return "the controller has fenced it"
        return None

    async def stop(self) -> None:
        """Finish what is in flight, write everything down and let go."""
        if self.listeners is not None:
            self._port_file.remove()
            await self.quorum.retire()
            self.listeners.close()
        if self.broker is not None:
            self.broker.is_stopping = True
            self.broker.replicas.wake_all()
        if self.broker is not None:
            await self.broker.transactions.stop()
            await self.broker.groups.stop()
        if self._table is not None:
            await self._table.close(grace_s=STOP_GRACE_S)
        self._sasl.close()
        if self._compactor is not None:
            await self._compactor.stop()
        if self._maintenance is not None:
            await self._maintenance.stop()
        if self.broker is not None:
            broker_epoch = await self.quorum.leave()
            assert self._replication is not None, "it was started with the broker"
            await self._replication.stop()
            await self.broker.replicas.until_settled()
            # In a thread, so that a second SIGINT is heard while disks are waited for.
            await in_thread(
                Work.TOPICS, partial(self.broker.replicas.close, broker_epoch=broker_epoch)
            )
            await until_idle()
        await self._release()

    async def abandon(self) -> None:
        """End as by a kill: nothing is answered, given away, flushed or marked clean.

        What was written is in the files; the next start finds them as after a kill. Call it once,
        after `start`.
        """
        broker, table = self.broker, self._table
        assert broker is not None, "it was started"
        assert table is not None
        assert self.listeners is not None
        self._port_file.remove()
        self.listeners.close()
        table.cut()
        self._sasl.close()
        broker.is_stopping = True
        broker.replicas.wake_all()
        for part in (self._compactor, self._maintenance, broker.transactions, broker.groups):
            assert part is not None
            await part.stop()
        assert self._replication is not None
        await self._replication.stop()
        await self.quorum.abandon()
        await broker.replicas.until_settled()
        broker.replicas.deleted_partitions.close()
        await until_idle()
        await self._release()

    async def _try_config(self, config: Config) -> None:
        """Try whether listeners could be opened with these keys.

        Raises:
            ConfigError: They cannot.
        """
        await self._tls.try_listeners(listeners_of(config))

    async def _follow_config(self, _config: Config) -> None:
        """Take over what dynamic configs have changed about connections and compaction."""
        assert self.broker is not None
        async with self._following:
            if not self.broker.is_stopping:
                # The newest: what is read from files meanwhile must not outlive it.
                await self._use_config(self.broker.config)

    async def _use_config(self, config: Config) -> None:
        assert self.broker is not None
        assert self.listeners is not None
        assert self._compactor is not None
        self._compactor.config_changed()
        self.listeners.close_gone(config)
        self._sasl.use_listeners(listeners_of(config))
        await self._tls.use_listeners(listeners_of(config))
        await self.listeners.follow(config)
        self.broker.auto_listeners = _told_where_they_came(listeners_of(config))

    async def _open_http(self) -> None:
        from wirebroker.http.opening import open_http  # noqa: PLC0415 - loaded if it is asked for
        from wirebroker.scrape.scrape import add_metrics  # noqa: PLC0415 - likewise

        self.http = await open_http(self.config, why_not_ready=self.why_not_ready)
        add_metrics(self.http.routes, self)

    async def _be_watched(self) -> None:
        """Let others ask how it is, and tell those who don't ask, where that is set."""
        if self.config.list("wirebroker.http.listeners"):
            await self._open_http()
        if self.config.str("wirebroker.otlp.endpoint"):
            from wirebroker.otlp.push import MetricsPush  # noqa: PLC0415 - as HTTP itself

            self._push = MetricsPush(self)
            self._push.start()

    def _bind(self) -> None:
        self._sockets = bind_all(listeners_of(self.config), self._settings)

    async def _open_broker(self) -> Broker:
        config, clock = self.config, self.clock
        node_id = config.node_id
        cluster_id = self._directories.cluster_id
        quorum = self.quorum
        await quorum.open(
            self._directories.metadata_home,
            cluster_id=cluster_id,
            directory_id=self._directories.online[0].directory_id,
        )
        # What a newer broker wrote is refused before anything is touched.
        self._directories.begin_use()
        metadata, channel = quorum.metadata, quorum.channel
        await self._register()
        # All parts are built from this image, and follow what comes after it (follow_metadata).
        loaded = metadata.image
        config = dynamic_config(config, loaded, node_id)
        quorum.use_config(config)
        replicas = await self._open_replicas(config, loaded)
        replication = self._replication = Replication(
            config,
            replicas=replicas,
            lifecycle=quorum.lifecycle,
            channel=channel,
            image=lambda: metadata.image,
            clock=clock,
        )
        _load_handlers()
        groups = GroupCoordinator(
            GroupSettings.from_config(config),
            clock=clock,
            metadata=metadata,
            controller=channel,
            replicas=replicas,
        )
        producer_ids = ProducerIdSupply(channel, quorum.lifecycle)
        transactions = self._open_transactions(config, replication, groups, producer_ids)
        slots = config.int("max.incremental.fetch.session.cache.slots")
        broker = Broker(
            config=config,
            clock=clock,
            node_id=node_id,
            cluster_id=cluster_id,
            metadata=metadata,
            controller=channel,
            replicas=replicas,
            isr_changes=replication.isr_changes,
            replica_moves=replication.moves,
            groups=groups,
            transactions=transactions,
            transaction_verifier=self._verifier(config, replication, transactions),
            producer_ids=producer_ids,
            fetch_sessions=FetchSessions(slots, random.Random()),  # noqa: S311 - ids, not secrets
            metadata_cache=MetadataCache(),
            auto_creation=AutoCreation(channel),
            quotas=ClientQuotas(config, self._network_clock),
            replication_quotas=replication.quotas,
            auto_listeners=_told_where_they_came(listener for listener, _ in self._sockets),
        )
        broker.config_users += (
            replicas.choice.use_cordon,
            quorum.use_config,
            replication.use_config,
        )
        await broker.follow_metadata(loaded)
        await self._begin_to_lead(replication)
        broker.groups.start()
        broker.transactions.start()
        return broker

    async def _open_replicas(self, config: Config, image: ClusterImage) -> ReplicaManager:
        replicas = ReplicaManager(
            self._directories.of_logs,
            self.files,
            config=config,
            clock=self.clock,
            node_id=config.node_id,
        )
        self.quorum.on_disk_failure(replicas.file_failed)
        self.quorum.watch_disks(replicas.directories)
        replicas.on_directory_failed = self.quorum.disk_failed
        await replicas.load(image)
        return replicas

    async def _begin_to_lead(self, replication: Replication) -> None:
        replication.start()
        # A replica in a directory that the controller does not know of may not lead.
        await replication.directories.until_told(timeout_s=_TELL_S)
        await self.quorum.lifecycle.unfence()

    def _handlers(self, broker: Broker) -> Registry:
        """Return what serves clients: where they may not do everything, behind who decides it."""
        metadata, controller = broker.metadata, self.controller
        authorization = (
            follow_acls(self.config, metadata) if controller is None else controller.authorization
        )
        if authorization is None:
            return REGISTRY
        from wirebroker.authorization.guarded import guarded  # noqa: PLC0415 - if asked for

        broker.authorization = authorization
        # What sessions have prepared was decided under the ACLs of then.
        authorization.tell_changes(self._gate.raise_epoch)
        return guarded(REGISTRY, authorization)

    def _open_transactions(
        self,
        config: Config,
        replication: Replication,
        groups: GroupCoordinator,
        producer_ids: ProducerIdSupply,
    ) -> TransactionCoordinator:
        replicas, clock = replication.replicas, self.clock
        return TransactionCoordinator(
            TransactionSettings.from_config(config),
            clock=clock,
            metadata=self.quorum.metadata,
            controller=self.quorum.channel,
            replicas=replicas,
            producer_ids=producer_ids,
            markers=MarkerWriter(
                clock=clock,
                replicas=replicas,
                groups=groups,
                sender=RemoteMarkers(replication.find_node),
            ),
        )

    def _verifier(
        self, config: Config, replication: Replication, transactions: TransactionCoordinator
    ) -> TransactionVerifier:
        remote = RemoteVerification(config.node_id, self.quorum.metadata, replication.find_node)
        return TransactionVerifier(transactions, remote=remote, clock=self.clock, config=config)

    async def _register(self) -> None:
        """Register as a broker of the cluster: what a kill has left of the last is gone by that."""
        directories = self._directories.online
        # Of one that has failed nobody knows how it was left.
        epochs = {each.previous_broker_epoch for each in self._directories.of_logs}
        endpoints = [endpoint_of(listener, sock) for listener, sock in self._sockets]
        await self.quorum.lifecycle.register(
            cluster_id=self._directories.cluster_id,
            endpoints=await self.quorum.endpoints(endpoints),
            log_directories=[directory.directory_id for directory in directories],
            rack=self.config.optional_str("broker.rack"),
            # Directories that tell of different incarnations tell of no clean stop.
            previous_broker_epoch=epochs.pop() if len(epochs) == 1 else -1,
        )
        self._is_registered = True

    async def _give_up(self) -> None:
        """Let go of everything after a start that failed."""
        if self._replication is not None:
            await self._replication.stop()
        await self.quorum.give_up()
        await self._release()

    async def _release(self) -> None:
        self._sasl.close()
        if self._push is not None:
            await self._push.close()
        if self.http is not None:
            await self.http.close()
        for _, sock in self._sockets:
            sock.close()
        self._directories.close()
        self.files.close_all()


def _load_handlers() -> None:
    with uncollected():
        for module in API_MODULES:
            importlib.import_module(f"wirebroker.api.{module}")


def _log_failure(line: str) -> None:
    logger.error("%s", line)


def _told_where_they_came(listeners: Iterable[ListenerConfig]) -> frozenset[str]:
    return frozenset(listener.name for listener in listeners if listener.advertised is None)
