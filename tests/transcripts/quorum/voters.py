"""A voter of the metadata quorum, of either kind, for one transcript.

Node 1 is the voter; nodes 2 and 3 do not exist, and the driver speaks for them. With timeouts of
ten minutes, the voter does nothing but respond. The first line of a transcript selects its quorum:

    settings quorum=static voters=1,2,3       controller.quorum.voters, kraft.version 0
    settings quorum=dynamic voters=1          voters in the log, kraft.version 1

Further words are configs. A node n has the directory id of sixteen bytes n. The only voter leads
from the start.
"""

from __future__ import annotations

import socket
import sys
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from tests.support.brokers import java_start
from tests.support.brokers.brokers import Broker, java_tool
from tests.support.tools.ports import HOST, free_port
from wirebroker.codecs.primitives import uuid_text
from wirebroker.codecs.records.control import KRaftVersion, Voter, VoterEndpoint
from wirebroker.coordinator.raft.model.voter_set import VoterSet
from wirebroker.quorum.log.metadata_snapshot import FORMATTED, encode_first_snapshot
from wirebroker.quorum.log.metadata_store import DIRECTORY_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from wirebroker.codecs.records.control import ControlRecord

CLUSTER_ID: Final = "MkU3OEVBNTcwNTJENDM2Qk"
LISTENER: Final = "CONTROLLER"
_OWN_ID: Final = 1
_PATIENT: Final = dict.fromkeys(
    (
        "controller.quorum.election.timeout.ms",
        "controller.quorum.fetch.timeout.ms",
        "controller.quorum.election.backoff.max.ms",
    ),
    "600000",
)


def is_listening(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), timeout=5).close()
    except OSError:
        return False
    return True


def directory_id(node_id: int) -> bytes:
    return bytes([node_id]) * 16


class QuorumVoter(Broker):
    """A controller process without brokers.

    Args:
        directory: Its folder.
        voters: The ids of the voters.
        is_dynamic: Whether they are in the log.
        configs: Additional configs.
    """

    def __init__(
        self,
        directory: Path,
        voters: Sequence[int],
        *,
        is_dynamic: bool,
        configs: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        super().__init__(directory)
        self.port = free_port()
        self.ports = {node_id: free_port() for node_id in voters} | {_OWN_ID: self.port}
        self._voters = VoterSet(
            Voter(
                node_id,
                directory_id(node_id),
                (VoterEndpoint(LISTENER, HOST, self.ports[node_id]),),
                0,
                1,
            )
            for node_id in voters
        )
        self._is_dynamic = is_dynamic
        self._more_configs = configs

    @property
    def properties(self) -> Path:
        """The file that configures the node."""
        return self.directory / "server.properties"

    def _prepare(self) -> None:
        if not self.data_dir.exists():
            self._format()
        lines = (f"{name}={value}\n" for name, value in self._configs().items())
        self.properties.write_text("".join(lines))

    def _configs(self) -> dict[str, str]:
        addresses = {node_id: f"{HOST}:{port}" for node_id, port in self.ports.items()}
        quorum = {"controller.quorum.bootstrap.servers": ",".join(addresses.values())}
        if not self._is_dynamic:
            voters = ",".join(f"{node_id}@{address}" for node_id, address in addresses.items())
            quorum = {"controller.quorum.voters": voters}
        return {
            "process.roles": "controller",
            "node.id": str(_OWN_ID),
            "log.dirs": str(self.data_dir),
            "controller.listener.names": LISTENER,
            "listener.security.protocol.map": f"{LISTENER}:PLAINTEXT",
            "listeners": f"{LISTENER}://{addresses[_OWN_ID]}",
            "advertised.listeners": f"{LISTENER}://{addresses[_OWN_ID]}",
            "metadata.max.idle.interval.ms": "0",
            **_PATIENT,
            **quorum,
            **self._more_configs,
        }

    def _format(self) -> None:
        """Write what a storage tool writes."""
        log = self.data_dir / DIRECTORY_NAME
        log.mkdir(parents=True)
        (self.data_dir / "meta.properties").write_text(
            f"version=1\ncluster.id={CLUSTER_ID}\nnode.id={_OWN_ID}\n"
            f"directory.id={uuid_text(directory_id(_OWN_ID))}\n"
        )
        if self._is_dynamic:
            controls: list[ControlRecord] = [KRaftVersion(1), self._voters.to_record()]
            content = encode_first_snapshot(1, [], voters=controls)
            (log / FORMATTED.file_name).write_bytes(content)

    def _is_ready(self) -> bool:
        raise NotImplementedError

    def _command(self) -> list[str]:
        raise NotImplementedError


class JavaVoter(QuorumVoter):
    """Apache Kafka's; it is ready when it listens."""

    def _command(self) -> list[str]:
        java = java_tool("-Xmx384m", "kafka.Kafka", java_start.options())
        return [*java, str(self.properties)]

    def _is_ready(self) -> bool:
        return is_listening(self.port)


class OwnVoter(QuorumVoter):
    """A wirebroker's."""

    def _command(self) -> list[str]:
        return [sys.executable, "-m", "wirebroker", "serve", "--config", str(self.properties)]

    def _is_ready(self) -> bool:
        return is_listening(self.port)
