"""Clusters of three wirebrokers with a broker's interface: `bootstrap`, `start`, `stop`.

In an OwnTrio node 1 has the controller, so tests kill only nodes 2 and 3. In a VotingTrio each
node votes, so tests may kill any one. Internal topics have a replica on each node.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from tests.support.brokers.brokers import BrokerError
from tests.support.brokers.own_cluster import FirstBroker, JoinedBroker
from tests.support.brokers.own_quorum import OwnQuorum

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.support.brokers.brokers import Wirebroker

_REPLICATED: Final = {
    "default.replication.factor": "3",
    "transaction.state.log.num.partitions": "6",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
}


class OwnTrio:
    """Three brokers.

    Args:
        directory: The cluster's folder.
        settings: Configs of every node.
    """

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None) -> None:
        every = {**_REPLICATED, **(settings or {})}
        first = FirstBroker(directory / "1", every)
        self.brokers: dict[int, Wirebroker] = {1: first}
        for node_id in (2, 3):
            self.brokers[node_id] = JoinedBroker(
                directory / str(node_id), first, node_id=node_id, settings=every
            )

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.brokers.values())

    def start(self) -> None:
        for broker in self.brokers.values():
            broker.start()

    def stop(self) -> None:
        """Stop all, the controller's last; kill those that do not stop."""
        for broker in reversed(self.brokers.values()):
            try:
                broker.stop()
            except BrokerError:
                broker.kill9()

    def kill(self, node_id: int) -> None:
        self.brokers[node_id].kill9()
        self.brokers[node_id].start()


@contextlib.contextmanager
def own_trio(directory: Path, settings: Mapping[str, str] | None = None) -> Iterator[OwnTrio]:
    trio = OwnTrio(directory, settings)
    try:
        trio.start()
        yield trio
    finally:
        trio.stop()


class VotingTrio(OwnQuorum):
    """Three brokers that are controllers as well.

    Args:
        directory: The cluster's folder.
        settings: Configs of every node.
    """

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None) -> None:
        every = {**_REPLICATED, **(settings or {})}
        super().__init__(directory, voters=3, brokers=0, is_combined=True, settings=every)
