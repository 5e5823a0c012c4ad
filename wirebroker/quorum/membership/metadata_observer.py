"""Observes the metadata log of a quorum in other processes: the replica of a broker.

It never votes. Only problems that retries cannot solve end it: records that it cannot apply, a
failed disk, a leader that keeps refusing this node, a leader without records that were committed.

Source: Kafka's KafkaRaftManager in a broker, and MetadataLoader.
"""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Protocol

from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.raft.model.replica_key import (
    Destination,
    bootstrap_destinations,
    destination_of,
)
from wirebroker.coordinator.raft.states.replica_core import Identity
from wirebroker.quorum.membership.cluster_lookup import (
    controller_listener,
    registered_controllers,
)
from wirebroker.quorum.membership.leader_refusals import (
    FIRST_PATIENCE_S,
    PATIENCE_S,
    LeaderRefusals,
)
from wirebroker.quorum.membership.missing_right import missing_right
from wirebroker.quorum.raft.leader_watch import LeaderWatch, server_states
from wirebroker.quorum.raft.quorum_settings import quorum_settings, static_voters
from wirebroker.quorum.raft.raft_channel import RESPONDS
from wirebroker.quorum.raft.raft_connections import raft_channel
from wirebroker.quorum.raft.raft_opening import RaftSurroundings, open_replica

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wirebroker.base.clock import Clock
    from wirebroker.config import Config
    from wirebroker.coordinator.raft.model.replica_key import ReplicaKey
    from wirebroker.net.client.settings import PeerAddress
    from wirebroker.quorum.image.metadata_follower import MetadataFollower
    from wirebroker.quorum.raft.raft_actions import QuorumLeadership
    from wirebroker.quorum.raft.raft_channel import OnRefused, RaftTransport
    from wirebroker.quorum.raft.raft_node import RaftNode
    from wirebroker.storage.files import Files

# A waiting Fetch has two responses per second, so this is no election.
_SILENT_S: Final = 3.0
_FATAL: Final = frozenset(
    {ErrorCode.INCONSISTENT_CLUSTER_ID, ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
)


class Connect(Protocol):
    """Returns the connections of a replica; see raft_connections.py."""

    def __call__(
        self,
        config: Config,
        clock: Clock,
        *,
        node_id: int,
        listener_name: str,
        on_refused: OnRefused | None,
    ) -> RaftTransport:
        """Return connections that are opened when they are used."""
        ...


class MetadataObserver:
    """One observer, used on one event loop.

    Attributes:
        failure: Why it has ended by itself, or None.
        remedy: What to do about the failure, if that is known.
    """

    __slots__ = (
        "_clock",
        "_config",
        "_connect",
        "_controllers",
        "_failed",
        "_files",
        "_follower",
        "_listener",
        "_node",
        "_on_failure",
        "_opened_s",
        "_refusals",
        "_servers",
        "_transport",
        "_watch",
        "failure",
        "remedy",
    )

    def __init__(
        self,
        config: Config,
        follower: MetadataFollower,
        *,
        servers: Sequence[PeerAddress],
        files: Files,
        clock: Clock,
        on_failure: Callable[[str], None],
        connect: Connect = raft_channel,
    ) -> None:
        """Create an observer that is not open yet.

        Args:
            config: The configuration of this node.
            follower: Applies the committed records.
            servers: Controllers that may know the leader, besides the static voters.
            files: The file system.
            clock: The clock.
            on_failure: Called with the reason when it ends by itself.
            connect: Returns connections to the controllers.
        """
        self._config = config
        self._listener = controller_listener(config)
        self._follower = follower
        self._servers = bootstrap_destinations(servers)
        self._files = files
        self._clock = clock
        self._on_failure = on_failure
        self._connect = connect
        self._transport: RaftTransport | None = None
        self._node: RaftNode | None = None
        self._watch: LeaderWatch | None = None
        # Those of the applied image.
        self._controllers: object = None
        self._failed = asyncio.Event()
        self._opened_s = clock.monotonic()
        self._refusals = LeaderRefusals()
        self.failure: str | None = None
        self.remedy: str | None = None

    @property
    def node(self) -> RaftNode:
        """The replica, once it is open."""
        assert self._node is not None, "the observer is not open"
        return self._node

    async def open(self, log_directory: str, cluster_id: str, key: ReplicaKey) -> None:
        """Load the log of a log directory and begin to fetch.

        `key` is this node and the id of the directory. A process that only reads has node id -1.

        Raises:
            StartError: The log cannot be read.
            ConfigError: The connections to the controllers cannot be used.
            OSError: The disk failed.
        """
        transport = self._transport = self._connect(
            self._config,
            self._clock,
            node_id=key.replica_id,
            listener_name=self._listener,
            on_refused=self._refused,
        )
        identity = Identity(
            key,
            cluster_id,
            endpoints=(),
            listener_name=self._listener,
            bootstrap=self._servers,
            is_voter_capable=False,
        )
        node = self._node = await open_replica(
            log_directory,
            identity,
            self._surroundings(transport),
            settings=quorum_settings(self._config),
            static_voters=static_voters(self._config, self._listener),
        )
        self._use_image()
        node.start()

    def _surroundings(self, transport: RaftTransport) -> RaftSurroundings:
        return RaftSurroundings(
            files=self._files,
            clock=self._clock,
            random=random.Random(),  # noqa: S311 - timeouts, no secrets
            transport=transport,
            follower=self._follower,
            config=self._config,
            on_leadership=_ignore,
            on_applied=self._records_were_applied,
            on_unusable=self._fail,
            on_disk_failure=self._disk_failed,
            on_voters=_ignore_voters,
        )

    def watch(self) -> None:
        """Log when no controller leads for long."""
        self._watch = LeaderWatch(self.node, self.describe_servers, self._clock)
        self._watch.start()

    async def until_caught_up(self, timeout_s: float) -> bool:
        """Wait until it has applied all records that the leader reported as committed.

        Return whether it has; if not, `failure` is set or the time has passed.
        """
        catching_up = asyncio.create_task(self.node.until_caught_up())
        failing = asyncio.create_task(self._failed.wait())
        await asyncio.wait(
            {catching_up, failing}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
        )
        # Meanwhile the leader may have committed more.
        is_complete = catching_up.done() and catching_up.result()
        for task in (catching_up, failing):
            task.cancel()
        return is_complete and self.failure is None

    async def abandon(self) -> None:
        """Close the connections and the files; may be repeated."""
        if self._watch is not None:
            await self._watch.stop()
        if self._node is not None:
            await self._node.abandon()

    def silence(self, queried: Sequence[PeerAddress]) -> str | None:
        """Return a message if no controller has responded recently.

        `queried` are the addresses of controllers for the message.
        """
        heard_s = self.node.leader_heard_s
        silent_s = self._clock.monotonic() - (self._opened_s if heard_s is None else heard_s)
        if silent_s < _SILENT_S:
            return None
        since = datetime.fromtimestamp(self._clock.now_ms() / 1000 - silent_s, UTC)
        return (
            f"no controller has responded for {silent_s:.0f} s, since"
            f" {since.isoformat(timespec='seconds')}; tried"
            f" {', '.join(dict.fromkeys(map(str, queried)))}"
        )

    def describe_servers(self) -> str:
        """Return the known controllers with the outcomes of the last requests to them."""
        assert self._transport is not None, "the observer is not open"
        return server_states(self.node.bootstrap_servers, self._transport)

    # The replica's reports

    def _records_were_applied(self) -> None:
        self._use_image()
        self.node.look_for_snapshot(self._follower.image)

    def _use_image(self) -> None:
        image = self._follower.image
        self._follower.kraft_version = self.node.kraft_version
        if image.controllers is not self._controllers:
            self._controllers = image.controllers
            registered = registered_controllers(image, self._listener)
            self.node.use_controllers(
                [Destination(node_id, *address) for node_id, address in registered.items()]
            )

    def _disk_failed(self, error: OSError) -> None:
        self._fail(self.node.failure or str(error))

    def _refused(self, address: PeerAddress, error: ErrorCode) -> None:
        """Fail if the followed leader keeps refusing this node, or all controllers before that."""
        leader = self.node.known_leader
        followed = destination_of(leader.leader_id, leader.endpoints, self._listener)
        if error not in _FATAL:
            if followed is None:
                self._refusals.restart()
            return
        if followed is not None and followed[1:] == tuple(address):
            self._followed_leader_refused(address, error)
        elif followed is None and error is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            self._denied_before_following(address)

    def _followed_leader_refused(self, address: PeerAddress, error: ErrorCode) -> None:
        heard_s, now_s = self.node.leader_heard_s, self._clock.monotonic()
        if not self._refusals.are_final(address, heard_s=heard_s, now_s=now_s):
            return
        reason = error.name
        if error is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            right = missing_right(self._config)
            self.remedy = right.remedy
            reason = f"{error.name}: {right.what}"
        self._fail(
            f"the cluster's metadata cannot be followed: the leader {address} has refused this"
            f" node for {PATIENCE_S:.0f} s: {reason}"
        )

    def _denied_before_following(self, address: PeerAddress) -> None:
        heard_s, now_s = self.node.leader_heard_s, self._clock.monotonic()
        assert self._transport is not None, "the observer is not open"
        outcomes = [self._transport.outcome(one.node_id) for one in self.node.bootstrap_servers]
        if RESPONDS in outcomes:
            self._refusals.restart()  # that controller may have newer ACLs
        elif heard_s is None and self._refusals.are_final(None, now_s=now_s):
            right = missing_right(self._config)
            self.remedy = right.remedy
            self._fail(
                f"the controllers have refused this node for {FIRST_PATIENCE_S:.0f} s ({address}:"
                f" {ErrorCode.CLUSTER_AUTHORIZATION_FAILED.name}): {right.what}"
            )

    def _fail(self, reason: str) -> None:
        if self.failure is None:
            self.failure = reason
            self._failed.set()
            self._on_failure(reason)


def _ignore_voters() -> None:
    """Ignore other voters."""


def _ignore(leadership: QuorumLeadership) -> None:
    """Do nothing: an observer follows any leader."""
