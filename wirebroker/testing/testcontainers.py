"""Brokers in containers (docs/containers.md), which need `wirebroker[testcontainers]`.

with WirebrokerContainer() as broker:     in a container, with the kit's methods
    broker.create_topic("orders")
with KafkaContainer() as kafka:           in a container, or in a process without an engine
    service(kafka.get_bootstrap_server())
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from wirebroker.config.sources.environment import settings_from_environment
from wirebroker.testing.base.arguments import checked
from wirebroker.testing.broker.broker import Broker, snapshot_directory
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
# As in testcontainers' KafkaContainer.
_PORT: Final = 9093


class WirebrokerContainer(Broker):
    """A broker in a container, with the methods of Broker.

    Clock, faults, requests and snapshots use HTTP with a token. The address is reachable from this
    machine and survives `stop`, `kill` and `start`.
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
        """Prepare a broker; `start` or `with` starts it.

        Args:
            image: The image; None for the variable WIREBROKER_IMAGE, else `wirebroker`.
            config: Broker configs, without listeners.
            network: A testcontainers Network.
            port: Port on this machine; 0 for a free one.
            snapshot: See Broker.

        Raises:
            ValueError: `snapshot` is not a data directory.
        """
        self._container = ContainerHost(image or os.environ.get(_IMAGE) or "wirebroker", network)
        life = BrokerLife(
            config=config or {},
            directory=None,
            port=port,
            is_child=True,
            origin=None if snapshot is None else snapshot_directory(snapshot),
            host=self._container,
        )
        self._live(life)

    @property
    def bootstrap_servers_inside(self) -> str:
        """The address for clients in the same network, `host:port`."""
        return self._container.inside_address

    @property
    def directory(self) -> Path:
        """Raise RuntimeError: the data is in the container; use `snapshot`."""
        raise RuntimeError("its data is in the container: take a snapshot and look at that")


class KafkaContainer:
    """A Kafka for tests with the methods of testcontainers' KafkaContainer.

    Without engine or testcontainers it is a process, so that the same tests run.

    Attributes:
        is_container: False for a process.
        broker: The broker with the kit's methods; None before `start`.
    """

    @checked
    def __init__(
        self, image: str | None = None, port: int = _PORT, *, engine: bool | None = None
    ) -> None:
        """Prepare a Kafka; `start` or `with` starts it.

        Args:
            image: See WirebrokerContainer.
            port: Container port that `get_exposed_port` accepts.
            engine: Whether to use a container; None if one is available.
        """
        self.is_container = why_no_engine() is None if engine is None else engine
        self.broker: Broker | None = None
        self._image = image
        self._port = port
        self._environment: dict[str, str] = {}

    def with_env(self, key: str, value: str) -> Self:
        """Set a variable: a config (`KAFKA_…`) or `CLUSTER_ID`."""
        self._environment[key] = str(value)
        return self

    def with_cluster_id(self, cluster_id: str) -> Self:
        """Set the cluster id."""
        return self.with_env("CLUSTER_ID", cluster_id)

    def with_kraft(self) -> Self:
        """Do nothing; wirebroker uses KRaft."""
        return self

    def start(self) -> Self:
        """Start the broker and wait until it serves clients.

        Raises:
            wirebroker.config.StartError: The broker does not start.
        """
        config = settings_from_environment(self._environment)
        if self.is_container:
            self.broker = WirebrokerContainer(self._image, config=config)
        else:
            self.broker = Broker.spawn(config=config)
        self.broker.__enter__()
        return self

    def stop(self) -> None:
        """End the broker and remove its data."""
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
        """Return the address for clients, `host:port`."""
        return self._started.bootstrap_servers

    def get_container_host_ip(self) -> str:
        """Return the host of the address."""
        return self.get_bootstrap_server().rpartition(":")[0]

    def get_exposed_port(self, port: int) -> int:
        """Return the port of the address.

        Raises:
            ValueError: `port` is not the constructor's.
        """
        if int(port) != self._port:
            raise ValueError(f"port {port} is not exposed: {self._port} is")
        return int(self.get_bootstrap_server().rpartition(":")[2])

    def get_logs(self) -> tuple[bytes, bytes]:
        """Return an empty stdout, and the last 1,000 log lines as stderr."""
        return b"", "\n".join(self._started.log_lines(1000)).encode()

    @property
    def _started(self) -> Broker:
        if self.broker is None:
            raise RuntimeError("it was not started: use it in a with block")
        return self.broker
