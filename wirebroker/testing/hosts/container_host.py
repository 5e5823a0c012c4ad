"""A broker in a container, controlled over HTTP with a token.

Its ports are chosen here, so that they survive stops. If the engine's address is known only after
the start, the command waits for a file that names it. The broker
starts without the image's scripts: this is faster, and its settings are those of a child process.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import itertools
import secrets
from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.clock import pause
from wirebroker.base.threads import Work, begin_in_thread, in_thread
from wirebroker.config import StartError
from wirebroker.net.client.settings import PeerAddress
from wirebroker.testing.hosts.control_client import send_command
from wirebroker.testing.hosts.engine import Container
from wirebroker.testing.settings.node_settings import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

_CLIENTS: Final = 9092
_INSIDE: Final = 19092
_HTTP: Final = 9404
# Not on a volume: snapshots need hard links within one file system.
_DATA: Final = "/home/appuser/broker/data"
_FOLDER: Final = "/home/appuser"
_ADVERTISED: Final = "advertised"
_SERVE: Final = ("wirebroker", "serve", "--test-mode", "--data-dir", _DATA)
_WHEN_TOLD: Final = (
    f"until [ -s {_FOLDER}/{_ADVERTISED} ]; do sleep 0.02; done; "
    f'KAFKA_ADVERTISED_LISTENERS=$(< {_FOLDER}/{_ADVERTISED}) exec "$@"'
)
# Without pulling the image.
_READY_S: Final = 60.0
_PAUSE_S: Final = 0.02
# Pauses per check whether the container has ended.
_PAUSES: Final = 25
# See child_process.py.
_RESET_S: Final = 5.0
_TRIES: Final = 5


class ContainerHost:
    """A host with one container at a time; `name` is its host name in its network."""

    def __init__(self, image: str, network: Any = None) -> None:
        self.name = f"wirebroker-{secrets.token_hex(4)}"
        self._image = image
        self._network = network
        self._token = secrets.token_urlsafe()
        self._container: Container | None = None
        self._is_running = False
        self._settings: dict[str, str] = {}
        # Ports for clients and for HTTP.
        self._bound = 0, 0
        self._clients: PeerAddress | None = None
        self._http: PeerAddress | None = None
        # Data to start with.
        self._directory: Path | None = None

    @property
    def inside_address(self) -> str:
        """The address within the network."""
        return f"{self.name}:{_INSIDE}"

    @property
    def is_running(self) -> bool:
        """See Host."""
        return self._is_running

    @property
    def test_url(self) -> str | None:
        """See Host; requests need the container's token."""
        return None if self._http is None else f"http://{self._http}"

    async def start(
        self, directory: Path, settings: Mapping[str, str], port: int | None
    ) -> PeerAddress:
        """Start a broker with its earlier data, or a copy of an existing directory.

        Raises:
            ValueError: The configs set listeners.
        """
        if port is None:
            raise ValueError("a broker in a container sets its listeners itself: remove them")
        is_new = self._container is None
        self._settings = dict(settings)
        address = await in_thread(Work.UPKEEP, self._start, settings, port)
        await self._until_ready()
        self._is_running = True
        if is_new:
            self._directory = directory
            if await in_thread(Work.UPKEEP, directory.exists):
                await self._begin_on_the_directory()
        return address

    async def stop(self) -> None:
        """Send SIGTERM."""
        self._is_running = False
        await in_thread(Work.UPKEEP, self._running_container.stop)

    async def kill(self) -> None:
        """Send SIGKILL."""
        self._is_running = False
        await in_thread(Work.UPKEEP, self._running_container.kill)

    async def pause(self) -> None:
        """See Host."""
        await in_thread(Work.UPKEEP, self._running_container.pause)

    async def resume(self) -> None:
        """See Host."""
        await in_thread(Work.UPKEEP, self._running_container.resume)

    async def take_snapshot(self, target: Path) -> None:
        """Let the broker copy its data, and download the copy."""
        result = await self.carry_out("take-snapshot", {"name": f"for-{target.name}"})
        await in_thread(
            Work.UPKEEP, self._running_container.take_folder, result["directory"], target
        )

    async def swap(self, replace: Callable[[], None]) -> None:
        """Replace the directory here, and start the broker with a copy of it."""
        await in_thread(Work.UPKEEP, replace)
        await self._begin_on_the_directory()

    async def _begin_on_the_directory(self) -> None:
        assert self._directory is not None, "it was started"
        await self.carry_out("crash", {})
        try:
            await in_thread(Work.UPKEEP, self._running_container.put_folder, self._directory, _DATA)
            await self.carry_out("start", {})
        except BaseException:
            await self.kill()
            raise

    async def renew(self, settings: Mapping[str, str]) -> PeerAddress | None:
        """Reset the broker unless settings differ; see ChildProcess."""
        if settings == self._settings:
            with contextlib.suppress(ValueError, ConnectionError, TimeoutError):
                async with asyncio.timeout(_RESET_S):
                    await self.carry_out("reset", {})
                return self._clients
        await self.kill()
        return None

    def reset(self) -> None:
        """Remove the old container."""
        container, self._container = self._container, None
        if container is not None:
            begin_in_thread(Work.UPKEEP, container.remove)

    def leave_nothing(self) -> None:
        """Remove the container."""
        container, self._container = self._container, None
        self._is_running = False
        if container is not None:
            container.remove()

    async def carry_out(self, command: str, arguments: Mapping[str, Any]) -> Any:
        """See Host; uses HTTP."""
        if self._http is None or not self._is_running:
            raise ConnectionError("the broker is not running")
        return await in_thread(
            Work.UPKEEP, send_command, self._http, command, arguments, self._token
        )

    def log_lines(self, most: int) -> list[str]:
        """See Host."""
        return [] if self._container is None else self._container.log_lines(most)

    @property
    def _running_container(self) -> Container:
        assert self._container is not None, "it was started"
        return self._container

    async def _until_ready(self) -> None:
        container, address = self._running_container, self._http
        assert address is not None, "its port is known"
        try:
            async with asyncio.timeout(_READY_S):
                for number in itertools.count(1):
                    if await in_thread(Work.UPKEEP, _is_ready, address):
                        return
                    if number % _PAUSES == 0 and await in_thread(Work.UPKEEP, container.has_ended):
                        break
                    await pause(_PAUSE_S)
        except TimeoutError:
            await in_thread(Work.UPKEEP, container.kill)
        output = "; ".join(container.log_lines(3)).removeprefix("wirebroker: ")
        raise StartError("the broker in the container does not start", output)

    # -- in a thread -------------------------------------------------------------------------

    def _start(self, settings: Mapping[str, str], port: int) -> PeerAddress:
        if self._container is None:
            self._container = self._made(settings, port)
        else:
            self._container.start_again()
        container = self._container
        host = container.known_host()
        if host is None:
            address = PeerAddress(*container.address(_CLIENTS))
            container.put_file(_FOLDER, _ADVERTISED, self._advertised_listeners(*address).encode())
            self._http = PeerAddress(*container.address(_HTTP))
        else:
            address, self._http = (PeerAddress(host, port) for port in self._bound)
        self._clients = address
        return address

    def _advertised_listeners(self, host: str, port: int) -> str:
        return f"CLIENTS://{host}:{port},INSIDE://{self.inside_address}"

    def _made(self, settings: Mapping[str, str], port: int) -> Container:
        command = [*_SERVE]
        for name, value in settings.items():
            command += ["--set", f"{name}={value}"]
        environment = {
            "KAFKA_LISTENERS": f"CLIENTS://:{_CLIENTS},INSIDE://:{_INSIDE}",
            "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CLIENTS:PLAINTEXT,INSIDE:PLAINTEXT",
            "KAFKA_INTER_BROKER_LISTENER_NAME": "INSIDE",
            "KAFKA_WIREBROKER_HTTP_LISTENERS": f"0.0.0.0:{_HTTP}",
            "KAFKA_WIREBROKER_HTTP_TOKEN": self._token,
        }
        for tries_left in reversed(range(_TRIES)):
            container = Container(self._image)
            self._bound = clients, http = port or free_port(), free_port()
            host = container.known_host()
            if host is not None:
                environment["KAFKA_ADVERTISED_LISTENERS"] = self._advertised_listeners(
                    host, clients
                )
            try:
                container.start(
                    command=[
                        *(("bash", "-c", _WHEN_TOLD, "run") if host is None else ()),
                        *command,
                    ],
                    environment=environment,
                    bound_ports={_CLIENTS: clients, _HTTP: http},
                    network=self._network,
                    alias=self.name,
                )
            except StartError as error:
                is_given = f":{port} failed" in str(error)
                if not tries_left or is_given or "port is already allocated" not in str(error):
                    raise
            else:
                return container
        raise AssertionError("the last try returns or raises")


def _is_ready(address: PeerAddress) -> bool:
    connection = http.client.HTTPConnection(address.host, address.port, timeout=5)
    try:
        connection.request("GET", "/ready")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
