"""Controllers in one process, each with its directory, listener and connections."""

from __future__ import annotations

import asyncio
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from tests.support.brokers.own_quorum import CLUSTER_ID
from tests.support.tools.ports import HOST, free_ports
from tests.support.tools.waiting import PATIENCE_S
from wirebroker.base.clock import pause
from wirebroker.broker.controller_server import ControllerServer
from wirebroker.broker.server import Server
from wirebroker.codecs.api_keys import SPOKEN_VERSIONS, ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.messages import request_message
from wirebroker.config import Config
from wirebroker.coordinator.controller.requests.request import ControllerRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from wirebroker.quorum.controller.quorum_controller import QuorumController

FAST = {
    "controller.quorum.election.timeout.ms": "300",
    "controller.quorum.fetch.timeout.ms": "1000",
}


def _dotted(settings: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "."): value for name, value in settings.items()}


class ControllerGroup:
    """Controllers 1 to `count`, of which the first one is the only voter at the beginning.

    With `is_combined` each process is a broker, too. With `is_static` all are voters from the
    beginning (kraft.version 0), and all are started. `common_settings` are those of all, like
    `settings`, `first_settings` those of controller 1.

    Attributes:
        servers: Those that run, by node id.
    """

    def __init__(
        self,
        folder: Path,
        count: int,
        *,
        is_combined: bool = False,
        is_static: bool = False,
        common_settings: Mapping[str, str] = MappingProxyType({}),
        first_settings: Mapping[str, str] = MappingProxyType({}),
        **settings: str,
    ) -> None:
        self._is_static = is_static
        self._first_settings = first_settings
        self._folder = folder
        self._is_combined = is_combined
        self._ports = dict(enumerate(free_ports(count), 1))
        self._settings = {**common_settings, **_dotted(settings)}
        self.servers: dict[int, ControllerServer | Server] = {}

    async def __aenter__(self) -> Self:
        """Start the first one, or all."""
        for node_id in self._ports if self._is_static else (1,):
            await self.start(node_id, **(self._first_settings if node_id == 1 else {}))
        return self

    async def __aexit__(self, *failure: object) -> None:
        """Stop all at the same time, so that none waits for a successor."""
        await asyncio.gather(*(self.stop(node_id) for node_id in list(self.servers)))

    def folder(self, node_id: int) -> Path:
        return self._folder / str(node_id)

    async def start(self, node_id: int, **own_settings: str) -> QuorumController:
        """Start a controller, which knows the first one; the first one knows itself.

        `own_settings` are its own, besides those of all.
        """
        settings = {
            "process.roles": "controller",
            "node.id": str(node_id),
            "log.dirs": str(self.folder(node_id)),
            "wirebroker.cluster.id": CLUSTER_ID,
            "listeners": f"CONTROLLER://{HOST}:{self._ports[node_id]}",
            "advertised.listeners": f"CONTROLLER://{HOST}:{self._ports[node_id]}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": f"{HOST}:{self._ports[1]}",
            **FAST,
            **self._settings,
            **_dotted(own_settings),
        }
        self.folder(node_id).mkdir(exist_ok=True)
        if self._is_static:
            del settings["controller.quorum.bootstrap.servers"]
            settings["controller.quorum.voters"] = ",".join(
                f"{voter_id}@{HOST}:{port}" for voter_id, port in self._ports.items()
            )
        if self._is_combined:
            settings["process.roles"] = "broker,controller"
            settings["listeners"] += f",PLAINTEXT://{HOST}:0"
            del settings["advertised.listeners"]
        server = Server if self._is_combined else ControllerServer
        self.servers[node_id] = server(Config(settings))
        await self.servers[node_id].start()
        return self.controller(node_id)

    async def stop(self, node_id: int) -> None:
        await self.servers.pop(node_id).stop()

    async def kill(self, node_id: int) -> None:
        """End a controller without resigning."""
        server = self.servers.pop(node_id)
        assert isinstance(server, ControllerServer)
        await server.node.abandon()
        await server.stop()

    def controller(self, node_id: int) -> QuorumController:
        server = self.servers[node_id]
        controller = server.controller if isinstance(server, Server) else server.node.controller
        assert controller is not None
        return controller

    async def leader(self) -> QuorumController:
        """Wait for the active controller."""
        await self.until(lambda: bool(self._active()))
        return self._active()[0]

    def _active(self) -> list[QuorumController]:
        controllers = [self.controller(node_id) for node_id in self.servers]
        return [controller for controller in controllers if controller.is_active]

    async def ask(self, key: ApiKey, **fields: Any) -> ErrorCode:
        """Send a request to the active controller; return its error."""
        version = SPOKEN_VERSIONS[key].max_version
        body = request_message(key).struct_class(**fields)
        answer = await (await self.leader()).handle(ControllerRequest(key, version, body))
        return ErrorCode(answer["error_code"])

    async def add(self, node_id: int) -> ErrorCode:
        """Add a running controller to the voters once it is caught up."""
        controller = self.controller(node_id)
        key = controller.node.key
        listeners = [
            {"name": endpoint.name, "host": endpoint.host, "port": endpoint.port}
            for endpoint in controller.endpoints
        ]
        async with asyncio.timeout(PATIENCE_S):
            while True:
                error = await self.ask(
                    ApiKey.ADD_RAFT_VOTER,
                    cluster_id=None,
                    timeout_ms=10_000,
                    voter_id=node_id,
                    voter_directory_id=key.directory_id,
                    listeners=listeners,
                )
                if error is not ErrorCode.REQUEST_TIMED_OUT:
                    return error
                await pause(0.05)

    async def remove(self, node_id: int, directory_id: bytes) -> ErrorCode:
        """Remove a voter."""
        return await self.ask(
            ApiKey.REMOVE_RAFT_VOTER,
            cluster_id=None,
            voter_id=node_id,
            voter_directory_id=directory_id,
        )

    async def upgrade(self) -> ErrorCode:
        """Raise kraft.version to 1."""
        update = {"feature": "kraft.version", "max_version_level": 1, "upgrade_type": 1}
        return await self.ask(ApiKey.UPDATE_FEATURES, timeout_ms=10_000, feature_updates=[update])

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not is_so():
                await pause(0.02)
