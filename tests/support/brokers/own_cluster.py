"""Processes of a cluster of wirebrokers: node 1 has the controller, the others join it.

    first = FirstBroker(folder / "1")
    first.start()
    second = JoinedBroker(folder / "2", first, node_id=2)
    second.start()

Each keeps its port and its folder over restarts. Session timeouts are short, so that tests need
not wait nine seconds after a kill.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from tests.support.brokers.brokers import Wirebroker
from tests.support.tools.ports import HOST, free_port

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SETTINGS: Final = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "300",
    "min.insync.replicas": "2",
    "offsets.topic.num.partitions": "6",
    "offsets.topic.replication.factor": "3",
    "replica.lag.time.max.ms": "4000",
}


class FirstBroker(Wirebroker):
    """Node 1: a broker and the cluster's controller."""

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None) -> None:
        super().__init__(directory, {**SETTINGS, **(settings or {})})
        self.port, self._controller_port = free_port(), free_port()

    @property
    def controller(self) -> str:
        return f"{HOST}:{self._controller_port}"

    def _prepare(self) -> None:
        super()._prepare()
        listeners = f"PLAINTEXT://{HOST}:{self.port},CONTROLLER://{self.controller}"
        self.settings |= {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@{self.controller}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "listeners": listeners,
        }

    def _command(self) -> list[str]:
        serve = [sys.executable, "-m", "wirebroker", "serve", "--port-file", str(self._port_file)]
        for name, value in {"log.dirs": str(self.data_dir), **self.settings}.items():
            serve += ["--set", f"{name}={value}"]
        return serve


class JoinedBroker(Wirebroker):
    """A broker that is started by `wirebroker join`.

    Args:
        directory: Its folder.
        first: The broker whose cluster it joins.
        node_id: Its node id; None lets it choose.
        settings: Configs beyond those of every node.
    """

    def __init__(
        self,
        directory: Path,
        first: FirstBroker,
        *,
        node_id: int | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(directory, {**SETTINGS, **(settings or {})})
        self._first = first
        self._node_id = node_id

    def _command(self) -> list[str]:
        join = [sys.executable, "-m", "wirebroker", "join", self._first.controller]
        join += ["--port", str(self.port), "--port-file", str(self._port_file)]
        join += ["--data-dir", str(self.data_dir)]
        if self._node_id is not None:
            join += ["--node-id", str(self._node_id)]
        for name, value in self.settings.items():
            join += ["--set", f"{name}={value}"]
        return join


class DynamicFirst(FirstBroker):
    """Node 1, whose voters are in the metadata log."""

    def _prepare(self) -> None:
        super()._prepare()
        del self.settings["controller.quorum.voters"]
        self.settings["controller.quorum.bootstrap.servers"] = self.controller


class JoinedVoter(JoinedBroker):
    """A broker that `wirebroker join --voter` starts: it votes as well."""

    def __init__(
        self,
        directory: Path,
        first: FirstBroker,
        *,
        node_id: int | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(directory, first, node_id=node_id, settings=settings)
        self._address = f"{HOST}:{free_port()}"

    def _command(self) -> list[str]:
        command = super()._command()
        place = command.index("join") + 2
        return [*command[:place], "--voter", self._address, *command[place:]]
