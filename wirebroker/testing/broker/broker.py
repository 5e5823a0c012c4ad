"""`Broker`, which runs in the tests' process or in a separate one.

A test runs each docstring example with a running, empty `broker`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from wirebroker.testing.base.arguments import checked
from wirebroker.testing.base.lifetime import Lifetime
from wirebroker.testing.broker.broker_clock import BrokerClock
from wirebroker.testing.broker.broker_faults import BrokerFaults
from wirebroker.testing.broker.life import BrokerLife
from wirebroker.testing.clients.client_configs import client_config
from wirebroker.testing.clients.contents import Contents
from wirebroker.testing.clients.sending import Sender
from wirebroker.testing.data.snapshots import Snapshot
from wirebroker.testing.requests.request_journal import requests_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from enum import Enum
    from typing import Self

    from wirebroker.testing.clients.client_configs import ClientName
    from wirebroker.testing.clients.protection import SaslName
    from wirebroker.testing.requests.recorded_request import RecordedRequest
    from wirebroker.testing.settings.settings import Setting


class Broker(Lifetime, Contents):
    """A Kafka broker for tests that starts in milliseconds and leaves no files behind.

    It runs in this process, on its own thread and event loop; brokers share nothing. The methods
    block and are thread-safe; in a coroutine, use `asyncio.to_thread`. They raise KafkaError for an
    error of the broker, ConnectionError if the broker ends during the call or does not respond, and
    RuntimeError if it is not running.

    >>> with Broker(config={"auto.create.topics.enable": False}) as broker:
    ...     broker.create_topic("orders")
    ...     broker.produce("orders", "one").offset
    0

    Coroutines use `async with Broker() as broker`.

    Attributes:
        clock: The broker's time, which tests can move.
        faults: Faults for clients' requests; `reset` removes them.
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
            snapshot: Data at the start and after `reset`: a snapshot, or the data directory of a
                stopped broker.
            tls: Whether to use TLS, with a certificate for 127.0.0.1 and localhost (needs
                `wirebroker[tls]`).
            sasl: Mechanism for clients: "PLAIN", "SCRAM-SHA-256" or "SCRAM-SHA-512". User `test`,
                password `test-secret`. The kit uses PLAIN, which is always enabled.

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
        """Use `life` in all methods."""
        self._life = life
        self.clock = BrokerClock(life)
        self.faults = BrokerFaults(life)
        super().__init__(life, self.clock.now_ms)

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
        """Return a broker in a separate process, with `Broker`'s arguments; `kill` sends SIGKILL.

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

    # -- life cycle --------------------------------------------------------------------------

    @checked
    def start(self) -> None:
        """Start the broker; do nothing if it is running.

        After `stop` or `kill`, it has the same data and port.

        >>> broker.stop()
        >>> broker.start()

        Raises:
            wirebroker.config.ConfigError: A config is invalid.
            wirebroker.config.StartError: The broker does not start.
            RuntimeError: The broker was closed.
        """
        self._life.start()

    @checked
    def stop(self) -> None:
        """Stop the broker cleanly, as SIGTERM does; it responds to pending requests.

        >>> _ = broker.produce("orders", "one")
        >>> broker.stop()
        >>> broker.start()
        >>> len(broker.records("orders"))
        1
        """
        self._life.stop()

    @checked
    def kill(self) -> None:
        """Stop the broker immediately, as kill -9 does; acknowledged records survive.

        >>> _ = broker.produce("orders", "one")
        >>> broker.kill()
        >>> broker.start()
        >>> len(broker.records("orders"))
        1
        """
        self._life.kill()

    @checked
    def crash(self) -> None:
        """Stop the broker immediately, as `kill` does.

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
            directory: New or empty directory, which is kept; None for one that is removed with the
                broker.

        Raises:
            ValueError: The directory is not empty, or the data cannot be copied.
        """
        return self._life.take_snapshot(None if directory is None else Path(directory))

    @checked
    def restore(self, snapshot: Snapshot | str | Path) -> None:
        """Replace the broker's data with a snapshot, in milliseconds.

        Clients reconnect to the same address and rejoin their groups. Clock and faults do not
        change.

        >>> _ = broker.produce("orders", "one")
        >>> snapshot = broker.snapshot()
        >>> _ = broker.produce("orders", "two")
        >>> broker.restore(snapshot)
        >>> len(broker.records("orders"))
        1

        Args:
            snapshot: A snapshot of any broker, or the data directory of a stopped one.

        Raises:
            ValueError, wirebroker.config.StartError: A broker cannot start with it.
        """
        self._sender = Sender()
        self._life.restore(snapshot_directory(snapshot))

    @checked
    def reset(self, *, config: Mapping[str, Setting] | None = None) -> None:
        """Replace the broker with a new, empty one at another address.

        Data, faults, clock changes and recorded requests are gone. A separate process is kept
        unless configs differ.

        >>> _ = broker.produce("orders", "one")
        >>> broker.reset()
        >>> broker.topics()
        {}

        Args:
            config: Broker configs that override the constructor's until the next reset.

        Raises:
            RuntimeError: The constructor was given a directory, which is never emptied.
        """
        self._sender = Sender()
        self._life.reset(config or {})

    @checked
    def close(self) -> None:
        """End the broker permanently and remove its data, unless its directory was given.

        >>> other = Broker()
        >>> other.start()
        >>> other.close()
        """
        self._life.close()

    def __repr__(self) -> str:
        state = f"on {self._life.address}" if self._life.host.is_running else "not running"
        return f"<wirebroker.testing.Broker {state}>"

    # -- address, directory, log -------------------------------------------------------------

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients, `host:port`.

        >>> broker.bootstrap_servers.startswith("127.0.0.1:")
        True

        Raises:
            RuntimeError: The broker was never started.
        """
        if self._life.address is None:
            raise RuntimeError("the broker was not started: use it in a with block")
        return str(self._life.address)

    @property
    def directory(self) -> Path:
        """The data directory, for `wirebroker dump` and `verify`.

        >>> _ = broker.produce("orders", "one")
        >>> (broker.directory / "orders-0").is_dir()
        True
        """
        return self._life.directory

    @checked
    def client_config(self, client: ClientName) -> dict[str, Any]:
        """Return the settings with which a client connects.

        >>> broker.client_config("confluent") == {"bootstrap.servers": broker.bootstrap_servers}
        True

        Args:
            client: "confluent" (a dict for its constructors), "kafka-python" or "aiokafka" (keyword
                arguments), or "spark" (options of its Kafka source and sink).

        Raises:
            ValueError: The client is unknown.
        """
        return client_config(client, self.bootstrap_servers, self._life.protection)

    @checked
    def log_lines(self, most: int = 50) -> list[str]:
        """Return the last log lines since the start; in this process, of all brokers.

        >>> _ = broker.produce("orders", "one")
        >>> broker.log_lines(most=0)
        []
        """
        return self._life.host.log_lines(most)

    # -- recorded requests -------------------------------------------------------------------

    @checked
    def requests(
        self,
        api: str | Enum | None = None,
        *,
        client_id: str | None = None,
        most: int | None = None,
    ) -> list[RecordedRequest]:
        """Return the last requests of clients, oldest first.

        At most 10,000 requests and 16 MiB are kept; a body over 4 MiB is omitted.

        >>> broker.requests(api="PRODUCE")
        []

        Args:
            api: Kafka's name of an API, such as "FETCH"; None for all.
            client_id: Only requests with this client id.
            most: Maximum number.

        Raises:
            ValueError: The API is unknown.
            ConnectionError: The broker's separate process is not running.
        """
        return requests_of(self._life, api, client_id=client_id, most=most)

    @checked
    def forget_requests(self) -> None:
        """Forget the recorded requests.

        >>> broker.forget_requests()
        >>> broker.requests()
        []
        """
        self._life.instruct("forget-requests", {})


def snapshot_directory(snapshot: Snapshot | str | Path) -> Path:
    """Return the directory of a snapshot."""
    return snapshot.directory if isinstance(snapshot, Snapshot) else Path(snapshot)
