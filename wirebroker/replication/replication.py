"""Replication of this node: it fetches what it follows, and checks the followers of what it leads.

A node that follows nothing creates no fetchers and no connections.

Source: Kafka's ReplicaManager (startup, maybeShrinkIsr, applyLocalFollowersDelta).
"""

from __future__ import annotations

import asyncio
import logging
import random
from typing import TYPE_CHECKING

from wirebroker.base.clock import pause
from wirebroker.config.listeners.listeners import between_brokers, has_peers, inter_broker_listener
from wirebroker.quotas.replication_quotas import ReplicationQuotas
from wirebroker.replication.directory_assignments import DirectoryAssignments
from wirebroker.replication.isr_changes import IsrChanges
from wirebroker.replication.replica_moves import ReplicaMoves

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from wirebroker.base.clock import Clock
    from wirebroker.config import Config
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.net.client.node import Node
    from wirebroker.net.client.transport import Dialer
    from wirebroker.quorum.channel.broker_lifecycle import BrokerLifecycle
    from wirebroker.quorum.channel.controller_channel import ControllerChannel
    from wirebroker.replica.partition import Partition
    from wirebroker.replica.replica_manager import ReplicaManager
    from wirebroker.replication.peers import Peers
    from wirebroker.replication.replica_fetchers import ReplicaFetchers
    from wirebroker.security.login.outgoing import ConnectionMethod

logger = logging.getLogger(__name__)


class Replication:
    """The replication of one node."""

    __slots__ = (
        "_clock",
        "_config",
        "_dialer",
        "_fetchers",
        "_image",
        "_is_stopped",
        "_lifecycle",
        "_looking",
        "_peers",
        "_random",
        "_way",
        "directories",
        "isr_changes",
        "moves",
        "quotas",
        "replicas",
    )

    def __init__(
        self,
        config: Config,
        *,
        replicas: ReplicaManager,
        lifecycle: BrokerLifecycle,
        channel: ControllerChannel,
        image: Callable[[], ClusterImage],
        clock: Clock,
        dialer: Dialer | None = None,
        rng: random.Random | None = None,
    ) -> None:
        """Without `dialer` other brokers are connected by TCP or TLS."""
        self.isr_changes = IsrChanges(channel, lifecycle, clock=clock)
        self.directories = DirectoryAssignments(channel, lifecycle, replicas=replicas)
        self._config = config
        self.quotas = ReplicationQuotas(config, node_id=lifecycle.node_id, clock=clock)
        self.moves = ReplicaMoves(
            replicas, self.directories, files=replicas.files, clock=clock, quota=self.quotas.moves
        )
        self.replicas = replicas
        self._lifecycle = lifecycle
        self._image = image
        self._clock = clock
        self._dialer = dialer
        self._random = rng or random.Random()  # noqa: S311 - for pauses
        # Created now, so that errors in keys fail the start.
        self._way = self._protected_way() if has_peers(config) else None
        self._peers: Peers | None = None
        self._fetchers: ReplicaFetchers | None = None
        self._looking: asyncio.Task[None] | None = None
        self._is_stopped = False

    def start(self) -> None:
        """Start fetching, moves and the check for lagging followers."""
        self.replicas.leaderships.watch_roles(self._follow)
        self._follow(tuple(self.replicas))
        self.replicas.leaderships.watch_roles(self.directories.note)
        self.directories.note(self.replicas)
        self.moves.start()
        self._looking = asyncio.create_task(
            self._find_lagging_followers(), name="lagging followers"
        )

    async def stop(self) -> None:
        """Stop fetching and sending requests to the controller."""
        self._is_stopped = True
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        if self._fetchers is not None:
            await self._fetchers.stop()
        await self.isr_changes.stop()
        await self.moves.stop()
        await self.directories.stop()
        if self._peers is not None:
            self._peers.close()

    def use_config(self, config: Config) -> None:
        """Apply dynamic configs."""
        self._config = config
        self.quotas.use_config(config)
        if self._fetchers is not None:
            self._fetchers.use_config(config, tuple(self.replicas))

    def find_node(self, node_id: int) -> Node | None:
        """Return another broker's shared node, or None if its address is unknown."""
        return None if self._is_stopped else self._all_peers().find(node_id)

    def _protected_way(self) -> ConnectionMethod | None:
        security = between_brokers(self._config)
        if security.tls is None and security.login is None:
            return None
        from wirebroker.security.login.outgoing import connection_method  # noqa: PLC0415 - where it is used

        return connection_method(security)

    def _follow(self, moved: Collection[Partition]) -> None:
        if self._is_stopped:
            return
        if self._fetchers is None:
            node_id = self._lifecycle.node_id
            if all(partition.leader in {-1, node_id} for partition in moved):
                return
            self._fetchers = self._new_fetchers()
        self._fetchers.follow(moved)

    def _new_fetchers(self) -> ReplicaFetchers:
        # A node without peers starts without these imports.
        from wirebroker.replication.fetch_body import Follower  # noqa: PLC0415
        from wirebroker.replication.replica_fetchers import ReplicaFetchers  # noqa: PLC0415

        follower = Follower(
            node_id=self._lifecycle.node_id,
            broker_epoch=lambda: self._lifecycle.broker_epoch,
            peers=self._all_peers(),
            clock=self._clock,
            disk_failed=self.replicas.disk_failed,
            quota=self.quotas.follower,
        )
        return ReplicaFetchers(follower, self._config)

    def _all_peers(self) -> Peers:
        if self._peers is None:
            from wirebroker.net.client.settings import ClientSettings  # noqa: PLC0415
            from wirebroker.replication.peers import Peers  # noqa: PLC0415
            from wirebroker.security.login.outgoing import connection_method  # noqa: PLC0415

            way = self._way or connection_method(between_brokers(self._config))
            self._peers = Peers(
                self._image,
                listener=inter_broker_listener(self._config),
                dialer=self._dialer or way.dialer,
                handshake=way.handshake,
                settings=ClientSettings(client_id=f"broker-{self._lifecycle.node_id}"),
                clock=self._clock,
                random=self._random,
            )
        return self._peers

    async def _find_lagging_followers(self) -> None:
        """Check twice per replica.lag.time.max.ms; the root of a task."""
        while True:
            await pause(max(1, self._config.int("replica.lag.time.max.ms")) / 2000)
            try:
                await self.isr_changes.remove_lagging(tuple(self.replicas.leaderships.led))
            except Exception:  # the next check follows
                logger.exception("the check for lagging followers failed; retrying")
