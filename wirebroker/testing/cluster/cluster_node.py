"""One node of a test cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.testing.base.arguments import NodeMarker, checked
from wirebroker.testing.broker.broker_clock import BrokerClock
from wirebroker.testing.broker.broker_faults import BrokerFaults
from wirebroker.testing.requests.request_journal import requests_of

if TYPE_CHECKING:
    from enum import Enum
    from pathlib import Path

    from wirebroker.testing.broker.life import BrokerLife
    from wirebroker.testing.requests.recorded_request import RecordedRequest


class ClusterNode(NodeMarker):
    """A broker of a cluster, in a separate process.

    Attributes:
        id: Its node id and index in `cluster.nodes`.
        faults: Faults for clients of this node only.
        clock: The time of this node only; `cluster.clock` moves all.
    """

    def __init__(self, node_id: int, life: BrokerLife) -> None:
        self.id = node_id
        self.faults = BrokerFaults(life)
        self.clock = BrokerClock(life)
        self._life = life

    def __repr__(self) -> str:
        return f"<node {self.id} on {self._life.address}>"

    @property
    def bootstrap_servers(self) -> str:
        """The node's address for clients, `host:port`.

        >>> cluster.nodes[0].bootstrap_servers in cluster.bootstrap_servers
        True
        """
        return str(self._life.address)

    @property
    def is_running(self) -> bool:
        """Whether the node was started and not ended since.

        >>> cluster.nodes[0].is_running
        True
        """
        return self._life.host.is_running

    @property
    def is_paused(self) -> bool:
        """Whether the node is paused; its clock, faults and requests are then not available.

        >>> cluster.nodes[0].is_paused
        False
        """
        return self._life.is_paused

    @property
    def directory(self) -> Path:
        """The data directory.

        >>> cluster.nodes[0].directory.is_dir()
        True
        """
        return self._life.directory

    @checked
    def stop(self) -> None:
        """Stop the node cleanly; it hands over its leaderships first.

        >>> cluster.nodes[2].stop()
        >>> cluster.nodes[2].start()
        """
        self._life.stop()

    @checked
    def kill(self) -> None:
        """Kill the node (SIGKILL); it is fenced after `broker.session.timeout.ms` (3 s).

        >>> cluster.nodes[2].kill()
        >>> cluster.nodes[2].start()
        """
        self._life.kill()

    @checked
    def start(self) -> None:
        """Start the node with its data at its address, and wait until it serves clients.

        After a kill, that is after its old session's timeout.

        >>> cluster.nodes[2].start()

        Raises:
            wirebroker.config.StartError: The node does not start.
        """
        self._life.start()

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

    @checked
    def requests(
        self,
        api: str | Enum | None = None,
        *,
        client_id: str | None = None,
        most: int | None = None,
    ) -> list[RecordedRequest]:
        """Return the last requests of clients to this node; see `Broker.requests`.

        >>> cluster.nodes[0].requests(api="TXN_OFFSET_COMMIT")
        []
        """
        return requests_of(self._life, api, client_id=client_id, most=most)

    @checked
    def log_lines(self, most: int = 50) -> list[str]:
        """Return the last log lines since the start, at most `most`.

        >>> cluster.nodes[0].log_lines(most=0)
        []
        """
        return self._life.host.log_lines(most)
