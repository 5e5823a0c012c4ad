"""A quorum of controllers in other processes, of Apache Kafka or wirebroker.

Responses of one connection arrive in order, so there are three connections: for Fetch, which waits;
for heartbeats (member_lifecycle.py); and for everything else.
"""

from __future__ import annotations

import asyncio
import logging
import random
from typing import TYPE_CHECKING, Final

from wirebroker.authorization.acl_updates import unserved_protection
from wirebroker.base.addresses import is_loopback
from wirebroker.base.clock import pause
from wirebroker.codecs.errors import KafkaError, MalformedFrameError
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
from wirebroker.net.client.active_controller import ActiveController, NotControllersError
from wirebroker.net.client.errors import PeerError
from wirebroker.net.client.settings import ClientSettings, PeerAddress
from wirebroker.quorum.channel.remote_channel import RemoteChannel
from wirebroker.quorum.image.metadata_follower import MetadataFollower
from wirebroker.quorum.log.observed_log import ObservedLog
from wirebroker.quorum.membership.member_lifecycle import MemberLifecycle, Pace
from wirebroker.quorum.membership.metadata_fetcher import MetadataFetcher
from wirebroker.quorum.membership.voters import check_is_no_voter
from wirebroker.security.login.outgoing import connection_method

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wirebroker.base.clock import Clock
    from wirebroker.config import Config
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage, Endpoint
    from wirebroker.disks.data_directory import DataDirectory
    from wirebroker.net.listeners.ready_lines import BoundListener
    from wirebroker.quorum.channel.broker_lifecycle import BrokerLifecycle
    from wirebroker.quorum.channel.controller_channel import ControllerChannel
    from wirebroker.quorum.controller.quorum_controller import QuorumController
    from wirebroker.security.login.outgoing import ConnectionMethod
    from wirebroker.storage.files import Files

LOGGER = logging.getLogger("wirebroker")

_RETRY_S: Final = 0.25
_FIND_S: Final = 2.0
_LOG_AGAIN_S: Final = 5.0
# After this time another controller is tried.
_REQUEST_S: Final = 5.0


def controllers_at(
    addresses: Sequence[PeerAddress],
    clock: Clock,
    *,
    way: ConnectionMethod,
    request_timeout_s: float = _REQUEST_S,
    node_id: int | None = None,
    more: Callable[[], Sequence[PeerAddress]] | None = None,
) -> ActiveController:
    """Return new connections to the controllers at `addresses` and `more`."""
    name = "wirebroker" if node_id is None else f"broker-{node_id}"
    return ActiveController(
        addresses,
        dialer=way.dialer,
        handshake=way.handshake,
        settings=ClientSettings(client_id=name, request_timeout_s=request_timeout_s),
        clock=clock,
        random=random.Random(),  # noqa: S311 - jitter, no secrets
        more=more,
    )


def registered_controllers(image: ClusterImage, listener: str) -> list[PeerAddress]:
    """Return the addresses of an image's controllers on a listener."""
    return [
        PeerAddress(endpoint.host, endpoint.port)
        for record in image.controllers.values()
        for endpoint in record.body.end_points
        if endpoint.name.upper() == listener.upper()
    ]


async def find_cluster(
    controllers: ActiveController, *, clock: Clock, timeout_s: float
) -> tuple[str, str]:
    """Return the cluster's id and the local address of the connection to its controller.

    Raises:
        StartError: No controller has responded in time.
    """
    started = clock.monotonic()
    deadline = started + timeout_s
    next_log_at = started
    while True:
        try:
            node = await controllers.find(_FIND_S)
            connection = await node.connect(_FIND_S)
        except NotControllersError as error:
            raise StartError(
                f"no controller was found: {error.what}",
                "give the address of a controller's listener (controller.quorum.bootstrap.servers)",
            ) from error
        except PeerError as error:
            if clock.monotonic() >= deadline:
                raise StartError(
                    f"no controller was found within {timeout_s:g} s ({error})",
                    "check controller.quorum.bootstrap.servers, and that the controllers run",
                ) from error
            if (now := clock.monotonic()) >= next_log_at:
                next_log_at = now + _LOG_AGAIN_S
                LOGGER.info(
                    "no controller has responded after %.0f of %g s: %s",
                    now - started,
                    timeout_s,
                    error,
                )
            await pause(_RETRY_S)
        else:
            assert controllers.cluster_id is not None, "every controller returns the cluster id"
            return controllers.cluster_id, connection.local_host


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
        "_fetcher",
        "_fetching",
        "_files",
        "_has_chosen_id",
        "_lifecycle",
        "_local_host",
        "_log",
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
        self._log: ObservedLog | None = None
        self._fetcher: MetadataFetcher | None = None
        self._fetching: asyncio.Task[None] | None = None

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
            self._controllers, clock=self._clock, timeout_s=self._patience_s
        )
        await check_is_no_voter(self._controllers, self._config.node_id, timeout_s=self._patience_s)
        return cluster_id

    async def open(self, metadata_home: str, *, cluster_id: str, directory_id: bytes) -> None:
        """Fetch and apply the metadata."""
        log = self._log = ObservedLog(
            metadata_home, files=self._files, clock=self._clock, config=self._config
        )
        try:
            self.metadata.image = await log.load()
            self.metadata.kraft_version = log.kraft_version
        except (KafkaError, MalformedFrameError) as error:
            raise StartError(
                f"the metadata log in {log.directory} cannot be read: {error}",
                "remove that folder; the broker fetches it again from the controllers",
            ) from None
        self._fetcher = MetadataFetcher(
            self._new_controllers(),
            log,
            self.metadata,
            clock=self._clock,
            cluster_id=cluster_id,
            node_id=self._config.node_id,
            directory_id=directory_id,
            on_failure=self._fail,
        )
        self._channel.silence = self._fetcher.silence
        self._fetching = asyncio.create_task(self._fetcher.run(), name="metadata fetcher")
        await self._until_caught_up(self._fetcher)
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
        )

    def _new_controllers(self, *, request_timeout_s: float = _REQUEST_S) -> ActiveController:
        (listener, *_) = self._config.list("controller.listener.names") or ("CONTROLLER",)
        return controllers_at(
            self._addresses,
            self._clock,
            way=self._connection_method,
            request_timeout_s=request_timeout_s,
            node_id=self._config.node_id,
            more=lambda: registered_controllers(self.metadata.image, listener),
        )

    def _fail(self, line: str) -> None:
        self._failure = line
        self._on_failure(line)

    async def _until_caught_up(self, fetcher: MetadataFetcher) -> None:
        assert self._fetching is not None
        caught_up = asyncio.create_task(fetcher.caught_up.wait())
        await asyncio.wait(
            {caught_up, self._fetching},
            timeout=self._patience_s,
            return_when=asyncio.FIRST_COMPLETED,
        )
        caught_up.cancel()
        if self._failure is not None:
            raise StartError(self._failure, "see docs/cluster.md for what can be joined")
        if not fetcher.caught_up.is_set():
            raise StartError(
                f"the metadata was not fetched within {self._patience_s:g} s",
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
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.wait([self._fetching])
        await self._channel.close()
        log, self._log = self._log, None
        if log is not None:
            await log.close()

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
