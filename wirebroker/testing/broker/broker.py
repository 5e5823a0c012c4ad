"""`Broker`; a test runs its examples with a running, empty `broker`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from wirebroker.testing.base.arguments import checked
from wirebroker.testing.base.lifetime import Lifetime
from wirebroker.testing.broker.life import BrokerLife
from wirebroker.testing.broker.one_broker import OneBroker
from wirebroker.testing.clients.client_configs import client_config
from wirebroker.testing.clients.contents import Contents
from wirebroker.testing.clients.sending import Sender
from wirebroker.testing.data.snapshots import Snapshot
from wirebroker.testing.delivery.broker_delivery import BrokerDelivery

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from wirebroker.testing.clients.client_configs import ClientName
    from wirebroker.testing.clients.protection import SaslName
    from wirebroker.testing.settings.settings import Setting


class Broker(OneBroker, Lifetime, Contents):
    """A Kafka broker for tests that starts in milliseconds and leaves no files behind.

    It runs in this process, on its own thread and event loop. The methods block and are
    thread-safe; in a coroutine, use `asyncio.to_thread`. They raise KafkaError for an error of the
    broker, ConnectionError if it ends or does not respond, and RuntimeError if it is not running.

    >>> with Broker(config={"auto.create.topics.enable": False}) as broker:
    ...     broker.create_topic("orders")
    ...     broker.produce("orders", "one").offset
    0

    Coroutines use `async with Broker() as broker`.

    Attributes:
        clock: Its time.
        faults: Faults for its clients.
        delivery: The delivery service, for scheduled messages and retries.
    """

    @checked
    def __init__(
        self,
        *,
        config: Mapping[str, Setting] | None = None,
        directory: str | Path | None = None,
        port: int = 0,
        own_process: bool = False,
        snapshot: Snapshot | str | Path | None = None,
        tls: bool = False,
        sasl: SaslName | None = None,
    ) -> None:
        """Prepare a broker; `start` or `with` starts it.

        Args:
            config: Broker configs.
            directory: Data directory, which is kept; None for a temporary one.
            port: Port on 127.0.0.1; 0 for a free one.
            own_process: Whether to use a separate process, as `spawn` does.
            snapshot: Data at the start and after `reset`: a snapshot, or a stopped broker's data
                directory.
            tls: Whether to use TLS for 127.0.0.1 and localhost (needs `wirebroker[tls]`).
            sasl: Mechanism for clients: "PLAIN", "SCRAM-SHA-256" or "SCRAM-SHA-512". User `test`,
                password `test-secret`. PLAIN is always enabled, for the kit.

        Raises:
            ValueError: `snapshot` is not a data directory, or `directory` is given as well.
        """
        self._live(
            BrokerLife(
                config=config or {},
                directory=None if directory is None else Path(directory),
                port=port,
                is_child=own_process,
                origin=None if snapshot is None else snapshot_directory(snapshot),
                tls=tls,
                sasl=sasl,
            )
        )

    def _live(self, life: BrokerLife) -> None:
        OneBroker.__init__(self, life)
        Contents.__init__(self, life, self.clock.now_ms)
        self.delivery = BrokerDelivery(life, self.clock)

    @classmethod
    @checked
    def spawn(
        cls,
        *,
        config: Mapping[str, Setting] | None = None,
        directory: str | Path | None = None,
        port: int = 0,
        snapshot: Snapshot | str | Path | None = None,
        tls: bool = False,
        sasl: SaslName | None = None,
    ) -> Self:
        """Return a broker in a separate process; `kill` sends SIGKILL.

        >>> with Broker.spawn() as broker:
        ...     _ = broker.produce("orders", "one")
        ...     broker.kill()
        ...     broker.start()
        ...     [record.value for record in broker.records("orders")]
        [b'one']
        """
        return cls(
            config=config,
            directory=directory,
            port=port,
            own_process=True,
            snapshot=snapshot,
            tls=tls,
            sasl=sasl,
        )

    @checked
    def crash(self) -> None:
        """Kill the broker; see `kill`.

        >>> _ = broker.produce("orders", "one")
        >>> broker.crash()
        >>> broker.start()
        >>> len(broker.records("orders"))
        1
        """
        self.kill()

    @checked
    def snapshot(self, directory: str | Path | None = None) -> Snapshot:
        """Copy topics, records, groups, transactions and configs for `restore`.

        Clients are not disturbed. Clock, faults and recorded requests are not copied.

        >>> _ = broker.produce("orders", "one")
        >>> snapshot = broker.snapshot()
        >>> with Broker(snapshot=snapshot) as other:
        ...     len(other.records("orders"))
        1

        Args:
            directory: New or empty directory, which is kept; None for a temporary one.

        Raises:
            ValueError: The directory is not empty, or the data cannot be copied.
        """
        return self._life.take_snapshot(None if directory is None else Path(directory))

    @checked
    def restore(self, snapshot: Snapshot | str | Path) -> None:
        """Replace the broker's data with a snapshot, in milliseconds.

        Clients reconnect to the same address and rejoin their groups. Clock and faults stay.

        >>> _ = broker.produce("orders", "one")
        >>> snapshot = broker.snapshot()
        >>> _ = broker.produce("orders", "two")
        >>> broker.restore(snapshot)
        >>> len(broker.records("orders"))
        1

        Args:
            snapshot: A snapshot of any broker, or a stopped one's data directory.

        Raises:
            ValueError, wirebroker.config.StartError: A broker cannot start with it.
        """
        self._sender = Sender()
        self._life.restore(snapshot_directory(snapshot))
        self.delivery.forget()

    @checked
    def reset(self, *, config: Mapping[str, Setting] | None = None) -> None:
        """Start over with an empty broker at a new address; a container keeps its address.

        Data, faults, clock changes and recorded requests are gone. After `Broker.spawn()` the same
        process continues, unless configs differ.

        >>> _ = broker.produce("orders", "one")
        >>> broker.reset()
        >>> broker.topics()
        {}

        Args:
            config: Broker configs that override the constructor's until the next reset.

        Raises:
            RuntimeError: The broker was closed, or its directory was given.
        """
        self._sender = Sender()
        self.delivery.stop()
        self._life.reset(config or {})

    @checked
    def close(self) -> None:
        """End the broker permanently; remove its data, unless its directory was given.

        >>> other = Broker()
        >>> other.start()
        >>> other.close()
        """
        try:
            self.delivery.stop()
        finally:
            self._life.close()

    def __repr__(self) -> str:
        state = f"on {self._life.address}" if self._life.host.is_running else "not running"
        return f"<wirebroker.testing.Broker {state}>"

    @checked
    def client_config(self, client: ClientName) -> dict[str, Any]:
        """Return the settings with which a client connects.

        >>> broker.client_config("confluent") == {"bootstrap.servers": broker.bootstrap_servers}
        True

        Args:
            client: "confluent" (a dict), "kafka-python" or "aiokafka" (keyword arguments), or
                "spark" (options of its Kafka source and sink).

        Raises:
            ValueError: The client is unknown.
        """
        return client_config(client, self.bootstrap_servers, self._life.protection)


class BrokerFactory:
    """A factory that starts brokers and ends them together."""

    def __init__(self) -> None:
        self.brokers: list[Broker] = []

    @checked
    def __call__(
        self,
        *,
        config: Mapping[str, Setting] | None = None,
        directory: str | Path | None = None,
        port: int = 0,
        own_process: bool = False,
        snapshot: Snapshot | str | Path | None = None,
        tls: bool = False,
        sasl: SaslName | None = None,
    ) -> Broker:
        """Start a broker; see Broker."""
        broker = Broker(
            config=config,
            directory=directory,
            port=port,
            own_process=own_process,
            snapshot=snapshot,
            tls=tls,
            sasl=sasl,
        )
        self.brokers.append(broker)
        broker.start()
        return broker

    def close(self) -> None:
        """End all brokers."""
        for broker in reversed(self.brokers):
            broker.close()


def snapshot_directory(snapshot: Snapshot | str | Path) -> Path:
    """Return a snapshot's directory."""
    return snapshot.directory if isinstance(snapshot, Snapshot) else Path(snapshot)
