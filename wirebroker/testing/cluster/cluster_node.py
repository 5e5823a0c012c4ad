"""One node of a test cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.testing.base.arguments import NodeMarker, checked
from wirebroker.testing.broker.one_broker import OneBroker

if TYPE_CHECKING:
    from wirebroker.testing.broker.life import BrokerLife


class ClusterNode(OneBroker, NodeMarker):
    """A broker of a cluster, in a separate process.

    Attributes:
        id: Its node id and index in `cluster.nodes`.
        faults: Faults for clients of this node only.
        clock: The time of this node only.
    """

    def __init__(self, node_id: int, life: BrokerLife) -> None:
        super().__init__(life)
        self.id = node_id

    def __repr__(self) -> str:
        return f"<node {self.id} on {self._life.address}>"

    @property
    def is_running(self) -> bool:
        """Whether the node was started and not ended since.

        >>> cluster.nodes[0].is_running
        True
        """
        return self._life.host.is_running

    @property
    def is_paused(self) -> bool:
        """Whether the node is paused; clock, faults and requests are then not available.

        >>> cluster.nodes[0].is_paused
        False
        """
        return self._life.is_paused

    @checked
    def pause(self) -> None:
        """Freeze the node (SIGSTOP); its connections stay open.

        >>> cluster.nodes[2].pause()
        >>> cluster.nodes[2].resume()

        Raises:
            RuntimeError: The node is not running.
        """
        self._life.pause()

    @checked
    def resume(self) -> None:
        """Continue a paused node.

        >>> cluster.nodes[2].resume()
        """
        self._life.resume()
