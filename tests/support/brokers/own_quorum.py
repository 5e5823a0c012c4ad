"""Processes of a cluster with several controllers, each a voter: all wirebroker, without a JVM.

    quorum = OwnQuorum(folder, voters=3, brokers=2)
    quorum.start()
    quorum.controllers[quorum.leader_id()].kill9()

Controllers have the ids 1 to `voters`, brokers those from 101; with `is_combined`, controllers are
brokers, too. Each keeps its ports and its folder over restarts.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from tests.support.brokers.brokers import BrokerError, Wirebroker
from tests.support.brokers.own_cluster import SETTINGS
from tests.support.tools.ports import HOST, free_ports
from tests.support.tools.waiting import PATIENCE_S
from wirebroker.base.clock import SystemClock, pause
from wirebroker.config.quorum import parse_address
from wirebroker.net.client.active_controller import ActiveController
from wirebroker.net.client.errors import PeerError
from wirebroker.net.client.settings import ClientSettings, PeerAddress
from wirebroker.net.client.tcp_dialer import TcpDialer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Self

CLUSTER_ID: Final = "MkU3OEVBNTcwNTJENDM2Qk"
FIRST_BROKER_ID: Final = 101


class QuorumNode(Wirebroker):
    """A controller or a broker, with its settings and nothing else."""

    def _prepare(self) -> None:
        super()._prepare()
        self.settings |= {"log.dirs": str(self.data_dir)}

    def _command(self) -> list[str]:
        serve = [sys.executable, "-m", "wirebroker", "serve", "--port-file", str(self._port_file)]
        for name, value in self.settings.items():
            serve += ["--set", f"{name}={value}"]
        return serve

    def _is_ready(self) -> bool:
        if self.settings["process.roles"] == "controller":
            return self._port_file.exists()  # it is written when the listener is open
        return super()._is_ready()


class OwnQuorum:
    """A cluster; `controllers` and `brokers` are its processes by node id."""

    def __init__(
        self,
        folder: Path,
        *,
        voters: int = 3,
        brokers: int = 2,
        is_combined: bool = False,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        ports = free_ports(voters + brokers + (voters if is_combined else 0))
        self.addresses = {1 + index: f"{HOST}:{ports[index]}" for index in range(voters)}
        common = {
            **SETTINGS,
            "wirebroker.cluster.id": CLUSTER_ID,
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": ",".join(
                f"{node_id}@{address}" for node_id, address in self.addresses.items()
            ),
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            **(settings or {}),
        }
        self.controllers: dict[int, QuorumNode] = {}
        self.brokers: dict[int, QuorumNode] = {}
        for node_id, address in self.addresses.items():
            own = {"process.roles": "controller", "listeners": f"CONTROLLER://{address}"}
            port = int(address.rpartition(":")[2])
            if is_combined:
                port = ports.pop()
                listeners = f"PLAINTEXT://{HOST}:{port},CONTROLLER://{address}"
                own = {"process.roles": "broker,controller", "listeners": listeners}
            node = QuorumNode(folder / str(node_id), {**common, "node.id": str(node_id), **own})
            node.port = port
            self.controllers[node_id] = node
            if is_combined:
                self.brokers[node_id] = node
        for node_id, port in enumerate(ports[voters:], FIRST_BROKER_ID):
            own = {"process.roles": "broker", "listeners": f"PLAINTEXT://{HOST}:{port}"}
            node = QuorumNode(folder / str(node_id), {**common, "node.id": str(node_id), **own})
            node.port = port
            self.brokers[node_id] = node

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers."""
        return ",".join(broker.bootstrap for broker in self.brokers.values())

    def __enter__(self) -> Self:
        """Start all; kill those that started if one fails."""
        try:
            self.start()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, *failure: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start all at the same time: no node is ready before a majority votes."""
        nodes = self._nodes()
        with ThreadPoolExecutor(len(nodes)) as pool:
            for started in [pool.submit(node.start) for node in nodes]:
                started.result()

    def stop(self) -> None:
        """Stop all at the same time; kill those that do not stop."""
        nodes = self._nodes()
        with ThreadPoolExecutor(len(nodes)) as pool:
            list(pool.map(_stop, nodes))

    def _nodes(self) -> list[QuorumNode]:
        """Return each process once."""
        nodes = {id(node): node for node in (*self.controllers.values(), *self.brokers.values())}
        return list(nodes.values())

    def kill(self) -> None:
        """Kill all that run."""
        for node in (*self.brokers.values(), *self.controllers.values()):
            node.kill9()

    def leader_id(self, timeout_s: float = PATIENCE_S) -> int:
        """Return the active controller; wait for one."""
        return asyncio.run(_leader_id(list(self.addresses.values()), timeout_s))


def _stop(node: QuorumNode) -> None:
    try:
        node.stop()
    except BrokerError:
        node.kill9()


async def _leader_id(addresses: list[str], timeout_s: float) -> int:
    controllers = ActiveController(
        [PeerAddress(*parse_address(address, "a controller")) for address in addresses],
        dialer=TcpDialer(),
        settings=ClientSettings(client_id="the test"),
        clock=SystemClock(),
        random=random.Random(1),
    )
    try:
        async with asyncio.timeout(timeout_s):
            while True:
                with contextlib.suppress(PeerError):
                    await controllers.find(timeout_s)
                    assert controllers.controller_id is not None
                    return controllers.controller_id
                await pause(0.05)
    finally:
        await controllers.close()
