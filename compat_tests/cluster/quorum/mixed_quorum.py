"""A cluster with three voters, each of Apache Kafka or a wirebroker, and brokers of both kinds.

    quorum = MixedQuorum(folder, ("apache", "wirebroker", "apache"))
    quorum.start()

The voters 101 to 103 reach each other, and the brokers reach them, through proxies (NodeProxies).
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final, Literal

from compat_tests.cluster.nodes import (
    CLUSTER_ID,
    FIRST_CONTROLLER,
    Cluster,
    JavaController,
    OwnNode,
    controller_role,
    is_open,
)
from compat_tests.cluster.quorum.node_proxies import NodeProxies
from tests.support.protocol.raw_client import BlockingClient
from tests.support.tools.ports import HOST, free_port
from tests.support.tools.waiting import eventually
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tests.support.brokers.brokers import Broker

Kind = Literal["apache", "wirebroker"]

_METADATA: Final = {
    "topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]
}


class ProxiedJava(JavaController):
    """A voter of Apache Kafka that advertises its proxy."""

    def __init__(self, quorum: MixedQuorum, node_id: int) -> None:
        super().__init__(quorum, node_id)
        self.port = quorum.listening[node_id]


class ProxiedOwn(OwnNode):
    """A wirebroker that votes, and advertises its proxy."""

    def __init__(self, quorum: MixedQuorum, node_id: int) -> None:
        super().__init__(quorum, node_id)
        self.port = quorum.listening[node_id]

    def _role(self) -> dict[str, str]:
        role = controller_role(self.cluster, self.node_id, port=self.port)
        return {**role, "wirebroker.cluster.id": CLUSTER_ID}

    def _is_ready(self) -> bool:
        return self._port_file.exists() and is_open(self.port)


class MixedQuorum(Cluster):
    """The cluster.

    Args:
        folder: Contains a folder per node.
        kinds: The kind of each voter, from node 101 on.
        settings: Configs of every node.
        has_proxies: Whether links can be cut.

    Attributes:
        listening: The ports at which the voters listen; `places` are their proxies.
        proxies: Cut links between nodes.
    """

    def __init__(
        self,
        folder: Path,
        kinds: Sequence[Kind],
        settings: Mapping[str, str] | None = None,
        *,
        has_proxies: bool = True,
    ) -> None:
        super().__init__(folder, controllers=0, settings=settings)
        self.proxies = NodeProxies()
        self.kinds = dict(enumerate(kinds, FIRST_CONTROLLER))
        self.places = {node_id: free_port() for node_id in self.kinds}
        self.listening = self.places
        if has_proxies:
            self.listening = {node_id: free_port() for node_id in self.kinds}
        self.voter_nodes: dict[int, Broker] = {
            node_id: (ProxiedJava if kind == "apache" else ProxiedOwn)(self, node_id)
            for node_id, kind in self.kinds.items()
        }

    def start(self) -> None:
        """Start the voters."""
        for node_id, port in self.places.items():
            if self.listening[node_id] != port:
                self.proxies.open(node_id, self.listening[node_id], listen_port=port)
        for voter in self.voter_nodes.values():
            voter.start()
        eventually(lambda: self.leader() is not None, timeout_s=60)

    def leader(self) -> int | None:
        """Return the voter that leads, as it says itself."""
        for node_id in self.voter_nodes:
            if self.status(node_id) is not None:
                return node_id
        return None

    def status(self, node_id: int) -> tuple[int, dict[int, int]] | None:
        """Return a leader's high watermark and its voters' log ends; None if it does not lead."""
        try:
            address = (HOST, self.listening[node_id])
            with contextlib.closing(BlockingClient(address, timeout_s=2)) as client:
                answer = client.ask(ApiKey.DESCRIBE_QUORUM, 1, _METADATA)
        except (OSError, AssertionError):  # it is down, frozen or ends
            return None
        if answer.error_code or not answer.topics:
            return None
        partition = answer.topics[0].partitions[0]
        if partition.error_code or partition.leader_id != node_id:
            return None
        ends = {voter.replica_id: voter.log_end_offset for voter in partition.current_voters}
        return partition.high_watermark, ends

    def cut_off(self, node_id: int, direction: Literal["both", "in", "out"]) -> None:
        """Cut the links of a node with all others."""
        others = [*self.voter_nodes, *self.brokers]
        links = {(other, node_id) for other in others if other != node_id}
        if direction == "out":
            links = {(node_id, other) for other, _ in links}
        elif direction == "both":
            links |= {(node_id, other) for other, _ in links}
        self.proxies.cut(links)

    def stop(self) -> None:
        """Stop all nodes and the proxies."""
        self.proxies.heal()
        super().stop()
        for voter in self.voter_nodes.values():
            voter.kill9()
        self.proxies.close()
