"""A quorum of controllers in other processes, of Apache Kafka or wirebroker.

Responses of one connection arrive in order, so there are three kinds of connections: for Fetch,
which waits (metadata_observer.py); for heartbeats (member_lifecycle.py); and for everything else.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from wirebroker.authorization.acl_updates import unserved_protection
from wirebroker.base.addresses import is_loopback
from wirebroker.codecs.errors import KafkaError
from wirebroker.config import StartError
from wirebroker.config.listeners.listeners import (
    inter_broker_listener,
    is_auto,
    is_wildcard,
    to_controllers,
)
from wirebroker.config.protection import check_cluster
from wirebroker.config.quorum import controllers_of
from wirebroker.coordinator.controller.features.feature_control import check_features
from wirebroker.coordinator.raft.model.replica_key import ReplicaKey
from wirebroker.net.client.settings import PeerAddress
from wirebroker.quorum.channel.remote_channel import RemoteChannel
from wirebroker.quorum.image.metadata_follower import MetadataFollower
from wirebroker.quorum.membership.cluster_lookup import (
    REQUEST_S,
    controller_listener,
    controllers_at,
    find_cluster,
    registered_controllers,
)
from wirebroker.quorum.membership.member_lifecycle import MemberLifecycle, Pace
from wirebroker.quorum.membership.metadata_observer import MetadataObserver
from wirebroker.quorum.membership.voters import check_is_no_voter
from wirebroker.security.login.outgoing import connection_method

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wirebroker.base.clock import Clock
    from wirebroker.config import Config
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage, Endpoint
    from wirebroker.disks.data_directory import DataDirectory
    from wirebroker.net.client.active_controller import ActiveController
    from wirebroker.net.listeners.ready_lines import BoundListener
    from wirebroker.quorum.channel.broker_lifecycle import BrokerLifecycle
    from wirebroker.quorum.channel.controller_channel import ControllerChannel
    from wirebroker.quorum.controller.quorum_controller import QuorumController
    from wirebroker.quorum.raft.raft_figures import RaftFigures
    from wirebroker.storage.files import Files

LOGGER = logging.getLogger("wirebroker")


def check_joinable(image: ClusterImage, config: Config) -> None:
    """Check that this broker supports and protects everything in the cluster.

    Raises:
        StartError: It does not.
    """
    try:
        check_features(image.features)
    except KafkaError as error:
        raise StartError(str(error.message), "start a newer broker in this cluster") from None
    check_cluster(unserved_protection(image, config), config)


class JoinedQuorum:
    """This broker's side of a remote quorum.

    `on_failure` is called with a line that explains why this broker must end. If `has_chosen_id`,
    the id was chosen automatically, and a taken one fails immediately.
    """

    __slots__ = (
        "_addresses",
        "_channel",
        "_clock",
        "_config",
        "_connection_method",
        "_controllers",
        "_failure",
        "_files",
        "_has_chosen_id",
        "_lifecycle",
        "_local_host",
        "_observer",
        "_on_failure",
        "metadata",
    )

    def __init__(
        self,
        config: Config,
        *,
        files: Files,
        clock: Clock,
        on_failure: Callable[[str], None],
        has_chosen_id: bool = False,
    ) -> None:
        self._config = config
        self._has_chosen_id = has_chosen_id
        self._files = files
        self._clock = clock
        self._on_failure = on_failure
        self._failure: str | None = None
        self._addresses = tuple(PeerAddress(*address) for address in controllers_of(config))
        self._connection_method = connection_method(to_controllers(config))
        self.metadata = MetadataFollower(clock)
        self._controllers = self._new_controllers()
        self._channel = RemoteChannel(self._controllers, self._clock)
        self._local_host = ""
        self._lifecycle: MemberLifecycle | None = None
        self._observer: MetadataObserver | None = None

    @property
    def channel(self) -> ControllerChannel:
        """The channel to the active controller."""
        return self._channel

    @property
    def lifecycle(self) -> BrokerLifecycle:
        """This broker's membership."""
        assert self._lifecycle is not None, "the quorum is not open"
        return self._lifecycle

    @property
    def controller(self) -> QuorumController | None:
        """None: the controllers are elsewhere."""
        return None

    def raft_figures(self) -> RaftFigures:
        """Return the figures of the observer."""
        assert self._observer is not None, "the quorum is not open"
        return self._observer.node.figures()

    @property
    def listeners(self) -> list[BoundListener]:
        """Always empty: the controllers are elsewhere."""
        return []

    # The start

    def bind(self) -> None:
        """Do nothing: there is no controller here."""

    async def find_cluster_id(self) -> str | None:
        """Query the controllers."""
        names = ", ".join(map(str, self._addresses))
        LOGGER.info("looking up the cluster at controllers %s", names)
        cluster_id, self._local_host = await find_cluster(
            self._controllers,
            self._config,
            clock=self._clock,
            timeout_s=self._patience_s,
            known_id=self._config.optional_str("wirebroker.cluster.id"),
        )
        await check_is_no_voter(self._controllers, self._config.node_id, timeout_s=self._patience_s)
        return cluster_id

    async def open(self, metadata_home: str, *, cluster_id: str, directory_id: bytes) -> None:
        """Fetch and apply the metadata."""
        observer = self._observer = MetadataObserver(
            self._config,
            self.metadata,
            servers=self._addresses,
            files=self._files,
            clock=self._clock,
            on_failure=self._fail,
        )
        await observer.open(
            metadata_home, cluster_id, ReplicaKey(self._config.node_id, directory_id)
        )
        self._channel.silence = lambda: observer.silence(self._controllers.addresses)
        await self._until_caught_up(observer)
        observer.watch()
        check_joinable(self.metadata.image, self._config)
        self._lifecycle = self._new_lifecycle()

    def _new_lifecycle(self) -> MemberLifecycle:
        return MemberLifecycle(
            self._channel,
            self.metadata,
            node_id=self._config.node_id,
            clock=self._clock,
            pace=self._pace,
            make_controllers=lambda: self._new_controllers(
                request_timeout_s=self._pace.session_s / 2
            ),
            on_replaced=self._fail,
            has_leader=self._has_leader,
        )

    def _has_leader(self) -> bool:
        return self._observer is not None and self._observer.node.has_working_leader

    def _new_controllers(self, *, request_timeout_s: float = REQUEST_S) -> ActiveController:
        listener = controller_listener(self._config)
        return controllers_at(
            self._addresses,
            self._clock,
            way=self._connection_method,
            request_timeout_s=request_timeout_s,
            node_id=self._config.node_id,
            more=lambda: list(registered_controllers(self.metadata.image, listener).values()),
        )

    def _fail(self, line: str) -> None:
        self._failure = line
        self._on_failure(line)

    async def _until_caught_up(self, observer: MetadataObserver) -> None:
        is_complete = await observer.until_caught_up(self._patience_s)
        if self._failure is not None:
            remedy = observer.remedy or "see docs/cluster.md for what can be joined"
            raise StartError(self._failure, remedy)
        if not is_complete:
            states = observer.describe_servers()
            raise StartError(
                f"the metadata was not fetched within {self._patience_s:g} s: {states}",
                "check that the controllers run and have elected a leader",
            )

    async def endpoints(self, endpoints: Sequence[Endpoint]) -> Sequence[Endpoint]:
        """Replace wildcard hosts by the local address towards the controller."""
        advertised = [
            endpoint._replace(host=self._local_host) if is_wildcard(endpoint.host) else endpoint
            for endpoint in endpoints
        ]
        # Other listeners may be for this machine only, as a container's published port.
        needed = (
            {endpoint.name for endpoint in advertised}
            if is_auto(self._config)
            else {inter_broker_listener(self._config)}
        )
        for endpoint in advertised:
            if (
                endpoint.name in needed
                and is_loopback(endpoint.host)
                and not is_loopback(self._local_host)
            ):
                raise StartError(
                    f"{endpoint.name} would be registered as {endpoint.host}, which only "
                    "this machine can reach, but the controllers are on another",
                    "listen on a network address (--host 0.0.0.0), or set advertised.listeners",
                )
        return advertised

    def on_disk_failure(self, tell: Callable[[str, OSError], None]) -> None:
        """Do nothing: a failure of the log's disk ends this broker."""

    def watch_disks(self, directories: Sequence[DataDirectory]) -> None:
        """See Quorum."""
        assert self._lifecycle is not None, "the quorum is not open"
        self._lifecycle.watch_disks(directories)

    def disk_failed(self) -> None:
        """See Quorum."""
        assert self._lifecycle is not None, "the quorum is not open"
        self._lifecycle.send_now()

    def use_config(self, config: Config) -> None:
        """Report changes to the controllers, which have their own configuration."""
        del config
        if self._lifecycle is not None:
            self._lifecycle.send_now()

    def serve(self) -> None:
        """Do nothing: nothing was postponed."""

    # The end

    async def retire(self) -> None:
        """Request a controlled shutdown."""
        assert self._lifecycle is not None, "the quorum is not open"
        if self._failure is not None:
            return
        try:
            await self._lifecycle.shut_down()
        except KafkaError as error:
            LOGGER.warning("stopping anyway: %s", error.message or error.code.name)

    async def leave(self) -> int:
        """Stop following."""
        await self.abandon()
        return self.lifecycle.broker_epoch

    async def give_up(self) -> None:
        """Close all connections."""
        await self.abandon()

    async def abandon(self) -> None:
        """Close all connections and the log; may be repeated."""
        if self._lifecycle is not None:
            await self._lifecycle.close()
        if self._observer is not None:
            await self._observer.abandon()
        await self._channel.close()

    @property
    def _patience_s(self) -> float:
        return self._pace.registration_s

    @property
    def _pace(self) -> Pace:
        config = self._config
        registration_s = config.int("initial.broker.registration.timeout.ms") / 1000
        return Pace(
            heartbeat_s=config.int("broker.heartbeat.interval.ms") / 1000,
            session_s=config.int("broker.session.timeout.ms") / 1000,
            registration_s=registration_s,
            duplicate_s=0.0 if self._has_chosen_id else registration_s,
        )
