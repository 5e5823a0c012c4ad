"""Processes of one cluster: Apache Kafka's controllers and brokers, and wirebroker's.

    cluster = Cluster(folder)
    cluster.start_controllers()
    java = cluster.java_broker(1)
    ours = cluster.wirebroker(2)          # the same settings, by the same names
    ...
    cluster.stop()

Each keeps its port and its folder over restarts. Sessions are short, so that a test needn't wait
nine seconds for what it kills.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from tests.support.brokers import java_start
from tests.support.brokers.brokers import (
    PROFILE,
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
# Ids of controllers begin here: Apache Kafka refuses a broker whose id is a voter's.
FIRST_CONTROLLER: Final = 101
_SHORT_SESSIONS: Final = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.election.backoff.max.ms": "300",
    "controller.quorum.fetch.timeout.ms": "1000",
}


class Cluster:
    """Some controllers, and the brokers that join them.

    Args:
        folder: Of the cluster's own; each node has one within.
        controllers: How many of Apache Kafka's vote.
        settings: Configs of every node, beyond the common profile and short sessions.
        features: Levels that the cluster begins with, `group.version=1`; Kafka's defaults if empty.
        is_secured: Whether the settings protect listeners: whoever listens is taken for ready.
        has_dynamic_voters: Whether the voters are in the metadata (kraft.version 1) and may change;
            the first controller begins alone.

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
        """The value of controller.quorum.voters."""
        return ",".join(f"{each}@{HOST}:{port}" for each, port in self.places.items())

    @property
    def quorum(self) -> dict[str, str]:
        """The settings that name the controllers."""
        if self.has_dynamic_voters:
            places = ",".join(f"{HOST}:{port}" for port in self.places.values())
            return {"controller.quorum.bootstrap.servers": places}
        return {"controller.quorum.voters": self.voters}

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers that were made."""
        return ",".join(each.bootstrap for each in self.brokers.values())

    def start_controllers(self) -> None:
        """Start them; each is formatted before its first start."""
        for each in self.controllers.values():
            each.start()

    def java_broker(self, node_id: int, settings: Mapping[str, str] | None = None) -> JavaBroker:
        """Make and start a broker of Apache Kafka's."""
        broker = JavaBroker(self, node_id, settings)
        self.brokers[node_id] = broker
        broker.start()
        return broker

    def wirebroker(self, node_id: int, settings: Mapping[str, str] | None = None) -> MemberBroker:
        """Make and start a wirebroker that joins by a server.properties."""
        broker = MemberBroker(self, node_id, settings)
        self.brokers[node_id] = broker
        broker.start()
        return broker

    def stop(self) -> None:
        """Stop all, brokers first; one that doesn't stop by itself is killed."""
        for each in (*self.brokers.values(), *self.controllers.values()):
            try:
                each.stop()
            except BrokerError:
                each.kill9()


def is_open(port: int) -> bool:
    """Tell whether somebody listens, who may answer no client."""
    try:
        socket.create_connection((HOST, port), timeout=5).close()
    except OSError:
        return False
    return True


class _Member(Broker):
    """A node of a cluster; it keeps a server.properties in its folder."""

    def __init__(
        self, cluster: Cluster, node_id: int, settings: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(cluster.folder / f"node-{node_id}", settings)
        self.cluster = cluster
        self.node_id = node_id

    @property
    def properties(self) -> Path:
        """The file that the node is started with."""
        return self.directory / "server.properties"

    def _prepare(self) -> None:
        if self.port == 0:
            self.port = free_port()
        own = self.settings
        self.settings = {**self._role(), **PROFILE, **self.cluster.settings, **own}
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
    """A node of Apache Kafka's, formatted on its first start."""

    def _prepare(self) -> None:
        super()._prepare()
        if (self.data_dirs[0] / "meta.properties").exists():
            return
        tool = java_tool("-Xmx128m", "kafka.tools.StorageTool", java_start.options())
        tool += ["format", "-t", CLUSTER_ID, "-c", str(self.properties)]
        for each in self.cluster.features:
            tool += ["--feature", each]
        tool += self._format_options()
        done = subprocess.run(tool, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BrokerError(f"Apache Kafka's storage tool failed: {done.stdout}{done.stderr}")

    def _format_options(self) -> list[str]:
        return ["--no-initial-controllers"] if self.cluster.has_dynamic_voters else []

    def _command(self) -> list[str]:
        java = java_tool("-Xmx384m", "kafka.Kafka", java_start.options())
        java[java.index("-Dorg.slf4j.simpleLogger.defaultLogLevel=error")] = (
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        )
        return [*java, str(self.properties)]


class JavaController(_Java):
    """A voter; it serves no client."""

    def __init__(self, cluster: Cluster, node_id: int) -> None:
        super().__init__(cluster, node_id)
        self.port = cluster.places[node_id]

    def _role(self) -> dict[str, str]:
        return {
            "process.roles": "controller",
            **self.cluster.quorum,
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "listeners": f"CONTROLLER://{HOST}:{self.port}",
            "advertised.listeners": f"CONTROLLER://{HOST}:{self.port}",
        }

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
    """A broker of Apache Kafka's, without a controller of its own."""


class OwnNode(_Member):
    """A wirebroker, started by the file that a Java node takes; it says its port when it serves."""

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
