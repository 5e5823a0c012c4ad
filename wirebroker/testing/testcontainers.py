"""Brokers in containers for tests, and a Kafka for tests that needs no engine (docs/containers.md).

    with WirebrokerContainer() as broker:     in a container, with the kit's methods
        broker.create_topic("orders")
    with KafkaContainer() as kafka:           in a container, or in a process without an engine
        service(kafka.get_bootstrap_server())

Containers need `pip install 'wirebroker[testcontainers]'`, and the image of docs/containers.md.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from wirebroker.config.sources.environment import settings_from_environment
from wirebroker.testing.base.arguments import checked
from wirebroker.testing.broker.broker import Broker, snapshot_place
from wirebroker.testing.broker.life import BrokerLife
from wirebroker.testing.hosts.container_host import ContainerHost
from wirebroker.testing.hosts.engine import why_no_engine

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from wirebroker.testing.data.snapshots import Snapshot
    from wirebroker.testing.settings.settings import Setting

__all__ = ["KafkaContainer", "WirebrokerContainer"]

_IMAGE: Final = "WIREBROKER_IMAGE"
# Where testcontainers' class has it.
_PORT: Final = 9093


class WirebrokerContainer(Broker):
    """A broker in a container, with the methods of Broker.

    Clock, faults, requests and snapshots go over HTTP, behind a token of its own. Its address is
    one that this machine reaches, and stays the same over `stop`, `kill` and `start`.
    """

    @checked
    def __init__(
        self,
        image: str | None = None,
        *,
        config: Mapping[str, Setting] | None = None,
        network: Any = None,
        port: int = 0,
        snapshot: Snapshot | str | Path | None = None,
    ) -> None:
        """Prepare a broker; it runs from `start`, or `with`, on.

        Args:
            image: The image; None for that of the variable WIREBROKER_IMAGE, else `wirebroker`.
            config: As of Broker; listeners cannot be set.
            network: testcontainers' Network that it joins, for other containers.
            port: Where clients of this machine find it; 0 for a free one.
            snapshot: As of Broker.

        Raises:
            ValueError: The snapshot is no data directory.
        """
        self._container = ContainerHost(image or os.environ.get(_IMAGE) or "wirebroker", network)
        life = BrokerLife(
            config=config or {},
            directory=None,
            port=port,
            is_child=True,
            origin=None if snapshot is None else snapshot_place(snapshot),
            host=self._container,
        )
        self._live(life)

    @property
    def bootstrap_servers_inside(self) -> str:
        """What clients in containers of the same network are told to find it, `host:port`."""
        return self._container.inside_address

    @property
    def directory(self) -> Path:
        """Its data is in the container: `snapshot` copies it to this machine.

        Raises:
            RuntimeError: Always.
        """
        raise RuntimeError("its data is in the container: take a snapshot and look at that")


class KafkaContainer:
    """A Kafka for tests with the methods of testcontainers' class of that name.

    Where an engine and testcontainers are there it is a container, else a process. Programs can't
    tell, so that the same tests run where there is no engine.

    Attributes:
        is_container: Which of the two it is.
        broker: The same with the kit's methods; None until it is started.
    """

    @checked
    def __init__(
        self, image: str | None = None, port: int = _PORT, *, engine: bool | None = None
    ) -> None:
        """Prepare it.

        Args:
            image: As of WirebrokerContainer.
            port: Of the container, for `get_exposed_port`.
            engine: Whether it is to be a container; None: if there is an engine.
        """
        self.is_container = why_no_engine() is None if engine is None else engine
        self.broker: Broker | None = None
        self._image = image
        self._port = port
        self._environment: dict[str, str] = {}

    def with_env(self, key: str, value: str) -> Self:
        """Set a variable; KAFKA_ variables are configs, CLUSTER_ID is the cluster id."""
        self._environment[key] = str(value)
        return self

    def with_cluster_id(self, cluster_id: str) -> Self:
        """Set the cluster's id."""
        return self.with_env("CLUSTER_ID", cluster_id)

    def with_kraft(self) -> Self:
        """Change nothing: there is nothing but KRaft."""
        return self

    def start(self) -> Self:
        """Start it, and return when clients are served.

        Raises:
            wirebroker.config.StartError: It does not start; the text says why.
        """
        config = settings_from_environment(self._environment)
        if self.is_container:
            self.broker = WirebrokerContainer(self._image, config=config)
        else:
            self.broker = Broker.spawn(config=config)
        self.broker.__enter__()
        return self

    def stop(self) -> None:
        """End it, and remove what it has written."""
        if self.broker is not None:
            self.broker.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def get_bootstrap_server(self) -> str:
        """Return where clients find it, `host:port`."""
        return self._started.bootstrap_servers

    def get_container_host_ip(self) -> str:
        """Return the host of that address."""
        return self.get_bootstrap_server().rpartition(":")[0]

    def get_exposed_port(self, port: int) -> int:
        """Return the port of that address.

        Args:
            port: The one that it was made with: there is no other.

        Raises:
            ValueError: It is another.
        """
        if int(port) != self._port:
            raise ValueError(f"port {port} is not exposed: {self._port} is")
        return int(self.get_bootstrap_server().rpartition(":")[2])

    def get_logs(self) -> tuple[bytes, bytes]:
        """Return what it has printed last: nothing, and its log."""
        return b"", "\n".join(self._started.log_lines(1000)).encode()

    @property
    def _started(self) -> Broker:
        if self.broker is None:
            raise RuntimeError("it was not started: use it in a with block")
        return self.broker
