"""`Cluster`; a test runs its examples with `cluster` (three nodes) and `small` (one)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from wirebroker.client.errors import ClientError
from wirebroker.testing.base.arguments import checked
from wirebroker.testing.base.lifetime import Lifetime
from wirebroker.testing.broker.broker import snapshot_directory
from wirebroker.testing.broker.broker_clock import BrokerClock
from wirebroker.testing.broker.broker_faults import BrokerFaults
from wirebroker.testing.clients.client_configs import client_config
from wirebroker.testing.clients.contents import Contents
from wirebroker.testing.clients.partition_leaders import (
    PartitionState,
    move_leader,
    partition_state,
)
from wirebroker.testing.clients.sending import Sender
from wirebroker.testing.cluster.cluster_life import ClusterLifecycle
from wirebroker.testing.settings.settings import check_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Self

    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.testing.clients.client_configs import ClientName
    from wirebroker.testing.cluster.cluster_node import ClusterNode
    from wirebroker.testing.data.snapshots import Snapshot
    from wirebroker.testing.settings.settings import Setting

_PATIENCE_S: Final = 20.0


class Isolation:
    """An isolated node, until `heal` or a `with` block's end."""

    def __init__(self, heal: Callable[[], None]) -> None:
        self.heal = heal

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.heal()


class Cluster(Lifetime, Contents):
    """A cluster for tests: brokers in separate processes, and a controller in this one.

    Topics have up to three replicas, of which two have to be in sync: records acknowledged with
    acks=all survive the loss of a node.

    >>> cluster.create_topic("orders", partitions=3)
    >>> _ = cluster.produce("orders", "one", partition=0)
    >>> cluster.wait_for_in_sync("orders", 0, count=3)
    >>> cluster.leader("orders", 0) in cluster.nodes
    True

    Attributes:
        clock: The time of all nodes, also of later ones, but not of the controller. Advancing it
            may move replicas out of sync until they have fetched.
        faults: Faults on each running node; `times` counts on each. A restarted node has none.
    """

    @checked
    def __init__(self, nodes: int = 3, *, config: Mapping[str, Setting] | None = None) -> None:
        """Prepare a cluster; `start` or `with` starts it.

        Args:
            nodes: 1 to 9.
            config: Broker configs.

        Raises:
            ValueError: The number is out of range.
            wirebroker.config.ConfigError: A config is unknown.
        """
        check_names(config or {})
        self._life = ClusterLifecycle(nodes, config or {})
        self.clock = BrokerClock(self._life.all_nodes)
        self.faults = BrokerFaults(self._life.all_nodes)
        super().__init__(self._life, self.clock.now_ms)

    @checked
    def start(self) -> None:
        """Start the nodes that are not running, and wait until they serve clients.

        >>> cluster.start()

        Raises:
            wirebroker.config.ConfigError: A config is invalid.
            wirebroker.config.StartError: A node does not start.
            RuntimeError: The cluster was closed.
        """
        self._life.start()

    @checked
    def close(self) -> None:
        """End the cluster and remove its data.

        >>> other = Cluster(nodes=1)
        >>> other.close()
        """
        self._life.close()

    @checked
    def snapshot(self, directory: str | Path | None = None) -> Snapshot:
        """Copy the cluster's data for `restore`; see `Broker.snapshot`.

        The nodes are restarted, which takes seconds.

        >>> _ = small.produce("sold", "one")
        >>> snapshot = small.snapshot()
        >>> len(small.records("sold"))
        1

        Args:
            directory: New or empty directory, which is kept; None for a temporary one.

        Raises:
            RuntimeError: The cluster was not started, or a node is isolated.
            ValueError: The directory is not empty.
        """
        return self._life.take_snapshot(None if directory is None else Path(directory))

    @checked
    def restore(self, snapshot: Snapshot | str | Path) -> None:
        """Replace the data with a snapshot, and restart the running nodes.

        Addresses and clock stay. Faults are removed.

        >>> snapshot = small.snapshot()
        >>> _ = small.produce("orders", "one")
        >>> small.restore(snapshot)
        >>> "orders" in small.topics()
        False

        Args:
            snapshot: A snapshot of a cluster with as many nodes.

        Raises:
            RuntimeError: The cluster was not started, or a node is isolated.
            ValueError: It is not such a snapshot.
        """
        self._sender = Sender()
        self._life.restore(snapshot_directory(snapshot))

    # -- nodes -------------------------------------------------------------------------------

    @property
    def nodes(self) -> list[ClusterNode]:
        """The nodes by id.

        >>> [node.id for node in cluster.nodes]
        [0, 1, 2]
        """
        return list(self._life.nodes)

    @property
    def bootstrap_servers(self) -> str:
        """The nodes' addresses, `host:port,host:port,…`.

        >>> cluster.bootstrap_servers.count(":")
        3
        """
        return self._life.bootstrap_servers

    @checked
    def client_config(self, client: ClientName) -> dict[str, str]:
        """Return a client's settings; see `Broker.client_config`.

        >>> cluster.client_config("aiokafka") == {"bootstrap_servers": cluster.bootstrap_servers}
        True
        """
        return client_config(client, self.bootstrap_servers)

    # -- leaders -----------------------------------------------------------------------------

    @checked
    def leader(self, topic: str, partition: int = 0) -> ClusterNode:
        """Return a partition's leader.

        >>> cluster.create_topic("orders")
        >>> cluster.leader("orders").is_running
        True

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION, LEADER_NOT_AVAILABLE.
        """
        state = self._state(topic, partition)
        state.check_leader()
        return self._life.nodes[state.leader]

    @checked
    def in_sync(self, topic: str, partition: int = 0) -> list[ClusterNode]:
        """Return a partition's in-sync nodes (the ISR), by id.

        >>> cluster.create_topic("orders")
        >>> len(cluster.in_sync("orders"))
        3

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION.
        """
        return [
            self._life.nodes[node_id] for node_id in sorted(self._state(topic, partition).in_sync)
        ]

    @checked
    def move_leader(self, topic: str, partition: int = 0, *, to: ClusterNode | int) -> None:
        """Make a node, or the one with an id, lead a partition; wait until it does.

        A node without a replica gets the current leader's.

        >>> cluster.create_topic("orders")
        >>> cluster.move_leader("orders", 0, to=cluster.nodes[2])
        >>> cluster.leader("orders", 0).id
        2

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION, or an error of the controller.
            TimeoutError: The node does not lead in time; it may not be in sync.
        """
        node_id = to if isinstance(to, int) else to.id
        self._life.ask(lambda client: move_leader(client, topic, partition, to=node_id))

    @checked
    def wait_for_leader(
        self,
        topic: str,
        partition: int = 0,
        *,
        other_than: ClusterNode | None = None,
        timeout: float = _PATIENCE_S,
    ) -> ClusterNode:
        """Wait until a partition has a leader, and return it; the topic need not exist yet.

        The leader `other_than` does not count; `timeout` is in seconds.

        >>> cluster.create_topic("orders")
        >>> node = cluster.leader("orders")
        >>> cluster.wait_for_leader("orders") == node
        True

        Raises:
            TimeoutError: There is none.
        """
        unwanted = {-1} if other_than is None else {-1, other_than.id}
        state = self._until(
            topic, partition, timeout, lambda current: current.leader not in unwanted
        )
        return self._life.nodes[state.leader]

    @checked
    def wait_for_in_sync(
        self, topic: str, partition: int = 0, *, count: int, timeout: float = _PATIENCE_S
    ) -> None:
        """Wait until a partition has exactly `count` in-sync replicas.

        >>> cluster.create_topic("orders")
        >>> cluster.wait_for_in_sync("orders", count=3)

        Raises:
            TimeoutError: The number differs.
        """
        self._until(topic, partition, timeout, lambda state: len(state.in_sync) == count)

    # -- the network -------------------------------------------------------------------------

    @checked
    def partition_network(self, node: ClusterNode | int) -> Isolation:
        """Isolate a node, or the one with an id, until `heal_network` or a `with` block's end.

        Its connections with other nodes are closed; clients reach all nodes.

        >>> with cluster.partition_network(cluster.nodes[2]):
        ...     pass

        Raises:
            ValueError: The node is unknown.
            RuntimeError: The cluster was not started.
        """
        node_id = self._node_id(node)
        self._life.isolate(node_id)
        return Isolation(lambda: self._life.heal(node_id))

    @checked
    def heal_network(self) -> None:
        """Reconnect all nodes.

        >>> cluster.heal_network()
        """
        for node in self._life.nodes:
            self._life.heal(node.id)

    # -- inside ------------------------------------------------------------------------------

    def _node_id(self, node: ClusterNode | int) -> int:
        node_id = node if isinstance(node, int) else node.id
        count = len(self._life.nodes)
        if not count:
            raise RuntimeError("the cluster was not started: use it in a with block")
        if not 0 <= node_id < count:
            raise ValueError(f"node: there is no node {node_id}, only 0 to {count - 1}")
        return node_id

    def _state(self, topic: str, partition: int) -> PartitionState:
        return self._life.ask(lambda client: partition_state(client, topic, partition))

    def _until(
        self,
        topic: str,
        partition: int,
        timeout: float,
        is_right: Callable[[PartitionState], bool],
    ) -> PartitionState:
        async def wait(client: KafkaClient) -> PartitionState:
            state: PartitionState | ClientError | None = None
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    async for _ in client.within(timeout).tries():
                        try:
                            state = await partition_state(client, topic, partition)
                        except ClientError as error:
                            state = error  # such as a missing topic
                        else:
                            if is_right(state):
                                return state
            raise TimeoutError(
                f"{topic}-{partition} is not in the expected state after {timeout:g} s: {state}"
            )

        return self._life.ask(wait)
