"""A cluster whose controller is a wirebroker, alone or combined with a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compat_tests.cluster.nodes import CLUSTER_ID, FIRST_CONTROLLER, Cluster, OwnNode, is_open
from tests.support.tools.ports import HOST, free_port

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class OwnController(OwnNode):
    """A wirebroker with the controller role.

    Args:
        cluster: The cluster; this node is its only voter.
        node_id: Its id.
        has_broker: Whether it is a broker as well.
        settings: Additional settings.
    """

    def __init__(
        self,
        cluster: Cluster,
        node_id: int,
        *,
        has_broker: bool = False,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(cluster, node_id, settings)
        self.controller_port = cluster.places.setdefault(node_id, free_port())
        self.has_broker = has_broker
        if not has_broker:
            self.port = self.controller_port

    def _role(self) -> dict[str, str]:
        listeners = [f"CONTROLLER://{HOST}:{self.controller_port}"]
        if self.has_broker:
            listeners.insert(0, f"PLAINTEXT://{HOST}:{self.port}")
        return {
            "process.roles": "broker,controller" if self.has_broker else "controller",
            "controller.quorum.voters": self.cluster.voters,
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "listeners": ",".join(listeners),
            "wirebroker.cluster.id": CLUSTER_ID,
        }

    def _is_ready(self) -> bool:
        return self._port_file.exists() and is_open(self.controller_port)


def own_cluster(
    folder: Path, settings: Mapping[str, str] | None = None, *, has_broker: bool = False
) -> Cluster:
    """Start a cluster whose only voter is a wirebroker, node 101.

    Args:
        folder: The cluster's folder.
        settings: Configs of every node.
        has_broker: Whether that node is a broker as well.
    """
    cluster = Cluster(folder, controllers=0, settings=settings or {})
    node = OwnController(cluster, FIRST_CONTROLLER, has_broker=has_broker)
    if has_broker:
        cluster.brokers[node.node_id] = node
    else:
        cluster.controllers[node.node_id] = node  # type: ignore[assignment]
    node.start()
    return cluster
