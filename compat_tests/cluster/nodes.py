"""Processes of one cluster: controllers and brokers of Apache Kafka and wirebroker.

    cluster = Cluster(folder)
    cluster.start_controllers()
    java = cluster.java_broker(1)
    ours = cluster.wirebroker(2)          # the same settings, by the same names
    ...
    cluster.stop()

Each keeps its port and folder across restarts. Short sessions save tests from waiting nine seconds
after a kill.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from tests.support.brokers import java_start
from tests.support.brokers.brokers import (
    Broker,
    BrokerError,
    Wirebroker,
    answers,
    java_tool,
)
from tests.support.tools.ports import HOST, free_port

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

CLUSTER_ID: Final = "MkU3OEVBNTcwNTJENDM2Qk"
# First controller id: Apache Kafka refuses a broker with the id of a voter.
FIRST_CONTROLLER: Final = 101
_SHORT_SESSIONS: Final = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.election.backoff.max.ms": "300",
    "controller.quorum.fetch.timeout.ms": "1000",
}


class Cluster:
    """Controllers and the brokers that join them.

    Args:
        folder: Contains a folder per node.
        controllers: Number of Apache Kafka's voters.
        settings: Configs of every node, in addition to the common profile and short sessions.
        features: Initial feature levels, such as `group.version=1`; Kafka's defaults if empty.
        is_secured: Whether the settings protect listeners: a node that listens counts as ready.
        has_dynamic_voters: Whether the metadata holds the voters (kraft.version 1), which may
            change;
            the first controller starts alone.

    Attributes:
        controllers: Apache Kafka's, by node id.
        brokers: Of either kind, by node id.
    """

    def __init__(
        self,
        folder: Path,
        *,
        controllers: int = 1,
        settings: Mapping[str, str] | None = None,
        features: Sequence[str] = (),
        is_secured: bool = False,
        has_dynamic_voters: bool = False,
    ) -> None:
        self.is_secured = is_secured
        self.has_dynamic_voters = has_dynamic_voters
        self.folder = folder
        self.settings = {**_SHORT_SESSIONS, **(settings or {})}
        self.features = tuple(features)
        ids = range(FIRST_CONTROLLER, FIRST_CONTROLLER + controllers)
        self.places = {node_id: free_port() for node_id in ids}
        self.controllers = {node_id: JavaController(self, node_id) for node_id in ids}
        self.brokers: dict[int, Broker] = {}

    @property
    def voters(self) -> str:
        return ",".join(f"{node_id}@{HOST}:{port}" for node_id, port in self.places.items())

    @property
    def quorum(self) -> dict[str, str]:
        if self.has_dynamic_voters:
            addresses = ",".join(f"{HOST}:{port}" for port in self.places.values())
            return {"controller.quorum.bootstrap.servers": addresses}
        return {"controller.quorum.voters": self.voters}

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.brokers.values())

    def start_controllers(self) -> None:
        """Start the controllers; format each before its first start."""
        for controller in self.controllers.values():
            controller.start()

    def java_broker(self, node_id: int, settings: Mapping[str, str] | None = None) -> JavaBroker:
        broker = JavaBroker(self, node_id, settings)
        self.brokers[node_id] = broker
        broker.start()
        return broker

    def wirebroker(self, node_id: int, settings: Mapping[str, str] | None = None) -> MemberBroker:
        broker = MemberBroker(self, node_id, settings)
        self.brokers[node_id] = broker
        broker.start()
        return broker

    def stop(self) -> None:
        """Stop all nodes, brokers first; kill those that do not stop."""
        for node in (*self.brokers.values(), *self.controllers.values()):
            try:
                node.stop()
            except BrokerError:
                node.kill9()

    def end(self) -> None:
        """Kill the brokers and stop the other nodes: the test has checked everything."""
        for broker in self.brokers.values():
            broker.kill9()
        self.stop()


def is_open(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), timeout=5).close()
    except OSError:
        return False
    return True


class _Member(Broker):
    """A node with a server.properties in its folder."""

    def __init__(
        self, cluster: Cluster, node_id: int, settings: Mapping[str, str] | None = None
    ) -> None:
        # The cluster's settings override the common profile, a node's own ones both.
        merged = {**cluster.settings, **(settings or {})}
        super().__init__(cluster.folder / f"node-{node_id}", merged)
        self.cluster = cluster
        self.node_id = node_id

    @property
    def properties(self) -> Path:
        """The file that configures the node."""
        return self.directory / "server.properties"

    def _prepare(self) -> None:
        if self.port == 0:
            self.port = free_port()
        own = self.settings
        self.settings = {**self._role(), **own}
        self.settings |= {"node.id": str(self.node_id), "log.dirs": str(self.data_dir)}
        self.settings |= {name: own[name] for name in ("log.dirs",) if name in own}
        lines = (f"{name}={value}\n" for name, value in self.settings.items())
        self.properties.write_text("".join(lines))

    def _role(self) -> dict[str, str]:
        return {
            "process.roles": "broker",
            **self.cluster.quorum,
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "listeners": f"PLAINTEXT://{HOST}:{self.port}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{self.port}",
        }

    def _is_ready(self) -> bool:
        return is_open(self.port) if self.cluster.is_secured else answers(self.port)


class _Java(_Member):
    """A node of Apache Kafka, formatted on its first start."""

    def _prepare(self) -> None:
        super()._prepare()
        if (self.data_dirs[0] / "meta.properties").exists():
            return
        done = subprocess.run(self._format_command(), capture_output=True, text=True, check=False)
        if done.returncode:
            raise BrokerError(f"the storage tool failed: {done.stdout}{done.stderr}")

    def _format_command(self) -> list[str]:
        tool = java_tool("-Xmx128m", "kafka.tools.StorageTool", java_start.options())
        tool += ["format", "-t", CLUSTER_ID, "-c", str(self.properties)]
        for feature in self.cluster.features:
            tool += ["--feature", feature]
        return tool + self._format_options()

    def _format_options(self) -> list[str]:
        return ["--no-initial-controllers"] if self.cluster.has_dynamic_voters else []

    def _command(self) -> list[str]:
        java = java_tool("-Xmx384m", "kafka.Kafka", java_start.options())
        java[java.index("-Dorg.slf4j.simpleLogger.defaultLogLevel=error")] = (
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        )
        return [*java, str(self.properties)]


def controller_role(cluster: Cluster, node_id: int, *, port: int) -> dict[str, str]:
    """Return the settings of a controller alone, which others reach at its place in the cluster."""
    return {
        "process.roles": "controller",
        **cluster.quorum,
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "listeners": f"CONTROLLER://{HOST}:{port}",
        "advertised.listeners": f"CONTROLLER://{HOST}:{cluster.places[node_id]}",
    }


class JavaController(_Java):
    """A voter of Apache Kafka."""

    def __init__(self, cluster: Cluster, node_id: int) -> None:
        super().__init__(cluster, node_id)
        self.port = cluster.places[node_id]

    def _role(self) -> dict[str, str]:
        return controller_role(self.cluster, self.node_id, port=self.port)

    def _format_options(self) -> list[str]:
        is_first = self.node_id == FIRST_CONTROLLER
        return (
            ["--standalone"]
            if is_first and self.cluster.has_dynamic_voters
            else (super()._format_options())
        )

    def _is_ready(self) -> bool:
        return is_open(self.port)


class JavaBroker(_Java):
    """A broker of Apache Kafka without a controller."""


class OwnNode(_Member):
    """A wirebroker started with a Java node's file; it prints its port once it serves."""

    @property
    def _port_file(self) -> Path:
        return self.directory / "port"

    def _prepare(self) -> None:
        super()._prepare()
        self._port_file.unlink(missing_ok=True)

    def _command(self) -> list[str]:
        serve = [sys.executable, "-m", "wirebroker", "serve", "--config", str(self.properties)]
        return [*serve, "--port-file", str(self._port_file)]


class MemberBroker(OwnNode):
    """A wirebroker with process.roles=broker."""

    def _is_ready(self) -> bool:
        return self._port_file.exists() and super()._is_ready()


class JoiningBroker(Wirebroker):
    """A wirebroker that joins by `wirebroker join`, without a file."""

    def __init__(self, directory: Path, controller: str) -> None:
        super().__init__(directory)
        self._controller = controller

    def _command(self) -> list[str]:
        join = [sys.executable, "-m", "wirebroker", "join", self._controller]
        join += ["--port", str(self.port), "--port-file", str(self._port_file)]
        join += ["--data-dir", str(self.data_dir)]
        for name, value in self.settings.items():
            join += ["--set", f"{name}={value}"]
        return join
