"""Measured clusters: three nodes of a checkout, or three of Apache Kafka.

Node 1 is broker and only controller. Measured partitions are on 2 and 3, so that kills spare the
controller.
"""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.measurement.brokers import KAFKA_HEARTBEATS, KAFKA_JVM, SETTINGS, of_checkout
from compat_tests.cluster.nodes import Cluster, JavaBroker, MemberBroker
from compat_tests.cluster.own_controller import OwnController
from tests.support.brokers.brokers import BrokerError, java_tool
from tests.support.tools.ports import HOST, free_port

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.support.brokers.brokers import Broker

OURS: Final = "ours"
THEIRS: Final = "theirs"
FIRST: Final = 1
MEMBERS: Final = (2, 3)
# Measurements choose the leaders.
_UNMOVED: Final = {"auto.leader.rebalance.enable": "false"}
SHORT_SESSIONS: Final = {
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "500",
}


class OurFirst(OwnController):
    checkout: Path | None = None

    def _command(self) -> list[str]:
        return of_checkout(super()._command(), self.checkout)


class OurMember(MemberBroker):
    checkout: Path | None = None

    def _command(self) -> list[str]:
        return of_checkout(super()._command(), self.checkout)


class TheirMember(JavaBroker):
    """Apache Kafka as its scripts start it."""

    def _command(self) -> list[str]:
        return [*java_tool("-Xmx1G", "kafka.Kafka", KAFKA_JVM), str(self.properties)]


class TheirFirst(TheirMember):
    def _role(self) -> dict[str, str]:
        controller = f"CONTROLLER://{HOST}:{self.cluster.places[self.node_id]}"
        return {
            **super()._role(),
            "process.roles": "broker,controller",
            "listeners": f"PLAINTEXT://{HOST}:{self.port},{controller}",
        }


class Trio:
    """Three nodes of one kind (OURS, of a checkout, or THEIRS), by node id."""

    def __init__(
        self,
        folder: Path,
        kind: str,
        *,
        checkout: Path | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        named = {**KAFKA_HEARTBEATS, **SETTINGS, **_UNMOVED, **(settings or {})}
        self._cluster = Cluster(folder, controllers=0, settings=named)
        self._cluster.places[FIRST] = free_port()
        self._checkout = checkout.absolute() if checkout else None
        self._is_ours = kind == OURS
        self.nodes = self._cluster.brokers
        for node_id in (FIRST, *MEMBERS):
            self.nodes[node_id] = self._make(node_id)

    @property
    def process_ids(self) -> list[int]:
        return [process_id for node in self.nodes.values() for process_id in node.process_ids]

    def start(self) -> None:
        for node in self.nodes.values():
            node.start()

    def stop(self) -> None:
        """Stop all; kill those that do not stop."""
        for node_id in (*MEMBERS, FIRST):
            try:
                self.nodes[node_id].stop()
            except BrokerError:
                self.nodes[node_id].kill9()

    def _make(self, node_id: int) -> Broker:
        if not self._is_ours:
            return (TheirFirst if node_id == FIRST else TheirMember)(self._cluster, node_id)
        node: OurFirst | OurMember
        if node_id == FIRST:
            node = OurFirst(self._cluster, node_id, has_broker=True)
        else:
            node = OurMember(self._cluster, node_id)
        node.checkout = self._checkout
        return node


@contextlib.contextmanager
def trio(
    kind: str, checkout: Path | None, settings: Mapping[str, str] | None = None
) -> Iterator[Trio]:
    with tempfile.TemporaryDirectory(prefix=f"wirebroker-trio-{kind}-") as name:
        nodes = Trio(Path(name), kind, checkout=checkout, settings=settings)
        try:
            nodes.start()
            yield nodes
        finally:
            nodes.stop()
