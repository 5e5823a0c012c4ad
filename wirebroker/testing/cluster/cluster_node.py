"""One node of a cluster for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.testing.base.arguments import checked
from wirebroker.testing.broker.broker_clock import BrokerClock
from wirebroker.testing.broker.broker_faults import BrokerFaults
from wirebroker.testing.requests.request_journal import requests_of

if TYPE_CHECKING:
    from enum import Enum
    from pathlib import Path

    from wirebroker.testing.broker.life import BrokerLife
    from wirebroker.testing.requests.recorded_request import RecordedRequest


class ClusterNode:
    """A broker among others, in a process of its own.

    Attributes:
        id: Its node id, and its place in `cluster.nodes`.
        faults: What is to go wrong for clients of this node; other nodes are not disturbed.
        clock: What time it is for this node; `cluster.clock` moves all of them.
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
        """Where clients find it, `host:port`.

        >>> cluster.nodes[0].bootstrap_servers in cluster.bootstrap_servers
        True
        """
        return str(self._life.address)

    @property
    def is_running(self) -> bool:
        """Whether it was started, and not ended since.

        >>> cluster.nodes[0].is_running
        True
        """
        return self._life.host.is_running

    @property
    def is_paused(self) -> bool:
        """Whether it does nothing, see `pause`; its clock, faults and requests can't be asked for.

        >>> cluster.nodes[0].is_paused
        False
        """
        return self._life.is_paused

    @property
    def directory(self) -> Path:
        """Where its data lies.

        >>> cluster.nodes[0].directory.is_dir()
        True
        """
        return self._life.directory

    @checked
    def stop(self) -> None:
        """Stop it cleanly: it gives its leaderships away first.

        >>> cluster.nodes[2].stop()
        >>> cluster.nodes[2].start()
        """
        self._life.stop()

    @checked
    def kill(self) -> None:
        """End it by a kill -9. It is missed when `broker.session.timeout.ms` (3 s) are over.

        >>> cluster.nodes[2].kill()
        >>> cluster.nodes[2].start()
        """
        self._life.kill()

    @checked
    def start(self) -> None:
        """Start it on what it has written, where it was, and wait until it serves.

        After a kill that is when the session of its last life has ended.

        >>> cluster.nodes[2].start()

        Raises:
            wirebroker.config.StartError: It does not start.
        """
        self._life.start()

    @checked
    def pause(self) -> None:
        """Have it do nothing at all (SIGSTOP), as if it hung; connections stay open.

        >>> cluster.nodes[2].pause()
        >>> cluster.nodes[2].resume()

        Raises:
            RuntimeError: It does not run.
        """
        self._life.pause()

    @checked
    def resume(self) -> None:
        """Let it go on after `pause`.

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
        """Return the last requests that clients have sent it, as `Broker.requests` does.

        >>> cluster.nodes[0].requests(api="TXN_OFFSET_COMMIT")
        []
        """
        return requests_of(self._life, api, client_id=client_id, most=most)

    @checked
    def log_lines(self, most: int = 50) -> list[str]:
        """Return what it has logged last, since it was started.

        >>> cluster.nodes[0].log_lines(most=0)
        []
        """
        return self._life.host.log_lines(most)
