"""Several brokers for a test: real processes, whose nodes may die and whose network may part.

Each example of a docstring is run by a test; `cluster` is one of three nodes that runs, `small`
one of one node.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from wirebroker.client.errors import ClientError
from wirebroker.testing.base.arguments import checked
from wirebroker.testing.base.lifetime import Lifetime
from wirebroker.testing.broker.broker import snapshot_place
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
from wirebroker.testing.cluster.cluster_life import ClusterLife
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


class Parting:
    """A node that is cut off, until the end of a `with` block or `heal`."""

    def __init__(self, heal: Callable[[], None]) -> None:
        self.heal = heal

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.heal()


class Cluster(Lifetime, Contents):
    """A cluster for tests: brokers in processes of their own, and a controller in this one.

    Topics and internal topics have a replica on each of three nodes, of which two have to be in
    sync: one node may die, and what was acknowledged (acks=all) stays.

    >>> cluster.create_topic("orders", partitions=3)
    >>> _ = cluster.produce("orders", "one", partition=0)
    >>> cluster.wait_for_in_sync("orders", 0, count=3)
    >>> cluster.leader("orders", 0) in cluster.nodes
    True

    Attributes:
        nodes: The nodes, by their ids.
        clock: What time it is for all nodes that run, or start later; the controller goes by the
            machine's. Replicas that time has passed over are out of sync until they have fetched.
        faults: What is to go wrong for clients, on each node that runs; `times` counts on each.
            `cluster.nodes[0].faults` are those of one node. A node that starts again has none.
    """

    @checked
    def __init__(self, nodes: int = 3, *, config: Mapping[str, Setting] | None = None) -> None:
        """Prepare a cluster; it runs from `start`, or `with`, on.

        Args:
            nodes: How many, 1 to 9.
            config: Broker configs, for all of them.

        Raises:
            ValueError: There are none, or too many.
            wirebroker.config.ConfigError: There is no such config.
        """
        check_names(config or {})
        self._life = ClusterLife(nodes, config or {})
        self.clock = BrokerClock(self._life.all_nodes)
        self.faults = BrokerFaults(self._life.all_nodes)
        super().__init__(self._life, self.clock.now_ms)

    @checked
    def start(self) -> None:
        """Start all nodes that don't run, and wait until they serve.

        >>> cluster.start()

        Raises:
            wirebroker.config.ConfigError: A config cannot be used.
            wirebroker.config.StartError: One does not start; the text says why.
        """
        self._life.start()

    @checked
    def close(self) -> None:
        """End all nodes, and remove what they have written.

        >>> other = Cluster(nodes=1)
        >>> other.close()
        """
        self._life.close()

    @checked
    def snapshot(self, directory: str | Path | None = None) -> Snapshot:
        """Keep what all nodes hold, for `restore`; they are stopped meanwhile, and start again.

        Topics, records, groups, transactions and configs are kept; not clock, faults and requests.
        Clients connect again. It takes seconds: begin a suite of tests with it.

        >>> _ = small.produce("sold", "one")
        >>> snapshot = small.snapshot()
        >>> len(small.records("sold"))
        1

        Args:
            directory: Where it is to lie and stay, for other runs of the tests: a new or empty one.
                None for a place of its own, which is removed with the cluster.

        Raises:
            RuntimeError: A node is cut off: it could not start again.
            ValueError: Something is in the directory.
        """
        return self._life.take_snapshot(None if directory is None else Path(directory))

    @checked
    def restore(self, snapshot: Snapshot | str | Path) -> None:
        """Have all nodes hold what a snapshot holds, and nothing else.

        Those that run begin with it in their processes, at the addresses that they had; members of
        groups join again. The clock is left as it is; faults end.

        >>> snapshot = small.snapshot()
        >>> _ = small.produce("orders", "one")
        >>> small.restore(snapshot)
        >>> "orders" in small.topics()
        False

        Args:
            snapshot: One of a cluster with as many nodes.

        Raises:
            RuntimeError: A node is cut off: it could not start again.
            ValueError: It is another.
        """
        self._sender = Sender()
        self._life.restore(snapshot_place(snapshot))

    # -- who and where -----------------------------------------------------------------------

    @property
    def nodes(self) -> list[ClusterNode]:
        """The nodes; `cluster.nodes[1].id` is 1.

        >>> [node.id for node in cluster.nodes]
        [0, 1, 2]
        """
        return list(self._life.nodes)

    @property
    def bootstrap_servers(self) -> str:
        """What clients are told to find it: all nodes, `host:port,host:port,…`.

        >>> cluster.bootstrap_servers.count(":")
        3
        """
        return self._life.bootstrap_servers

    @checked
    def client_config(self, client: ClientName) -> dict[str, str]:
        """Return how a client is told of it, as `Broker.client_config` does.

        >>> cluster.client_config("aiokafka") == {"bootstrap_servers": cluster.bootstrap_servers}
        True
        """
        return client_config(client, self.bootstrap_servers)

    # -- leaders -----------------------------------------------------------------------------

    @checked
    def leader(self, topic: str, partition: int = 0) -> ClusterNode:
        """Return who leads a partition; see `wait_for_leader` for one that may have none.

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
        """Return which nodes have all of a partition (its ISR), by their ids.

        >>> cluster.create_topic("orders")
        >>> len(cluster.in_sync("orders"))
        3

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION.
        """
        return [self._life.nodes[each] for each in sorted(self._state(topic, partition).in_sync)]

    @checked
    def move_leader(self, topic: str, partition: int = 0, *, to: ClusterNode | int) -> None:
        """Have another node lead a partition, and wait until it does.

        A node without a replica gets one first, in the place of the last leader's.

        >>> cluster.create_topic("orders")
        >>> cluster.move_leader("orders", 0, to=cluster.nodes[2])
        >>> cluster.leader("orders", 0).id
        2

        Args:
            topic: The topic's name.
            partition: Its number.
            to: Which node is to lead, or its id.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION, or what the controller says.
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
        """Wait until a partition has a leader, and return it; the topic may come meanwhile.

        >>> cluster.create_topic("orders")
        >>> node = cluster.leader("orders")
        >>> cluster.wait_for_leader("orders") == node
        True

        Args:
            topic: The topic's name.
            partition: Its number.
            other_than: Who led, and is not meant.
            timeout: Seconds.

        Raises:
            TimeoutError: There is none when the time is over.
        """
        unwanted = {-1} if other_than is None else {-1, other_than.id}
        state = self._until(topic, partition, timeout, lambda each: each.leader not in unwanted)
        return self._life.nodes[state.leader]

    @checked
    def wait_for_in_sync(
        self, topic: str, partition: int = 0, *, count: int, timeout: float = _PATIENCE_S
    ) -> None:
        """Wait until so many nodes have all of a partition, no more and no fewer.

        >>> cluster.create_topic("orders")
        >>> cluster.wait_for_in_sync("orders", count=3)

        Raises:
            TimeoutError: There are others when the time is over.
        """
        self._until(topic, partition, timeout, lambda each: len(each.in_sync) == count)

    # -- the network -------------------------------------------------------------------------

    @checked
    def partition_network(self, node: ClusterNode | int) -> Parting:
        """Cut a node off from all others, until `heal_network` or the end of a `with` block.

        Connections between them end and new ones are refused. Clients reach all nodes as before.

        >>> with cluster.partition_network(cluster.nodes[2]):
        ...     pass

        Args:
            node: Which one, or its id.

        Raises:
            ValueError: There is no such node.
            RuntimeError: The cluster was not started.
        """
        node_id = self._node_id(node)
        self._life.part(node_id)
        return Parting(lambda: self._life.heal(node_id))

    @checked
    def heal_network(self) -> None:
        """Let all nodes reach each other again.

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
            found: PartitionState | ClientError | None = None
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    async for _ in client.within(timeout).tries():
                        try:
                            found = await partition_state(client, topic, partition)
                        except ClientError as error:
                            found = error  # the topic may come, and the node that was asked may go
                        else:
                            if is_right(found):
                                return found
            raise TimeoutError(f"{topic}-{partition} is not so within {timeout:g} s: {found}")

        return self._life.ask(wait)
