"""The broker that tests start: one class, whether it runs in their process or in one of its own.

Each example of a docstring is run by a test; `broker` is one that runs and is empty.
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
    """A Kafka broker for tests: ready in a moment, gone without a trace.

    It runs on a thread and an event loop of its own, in this process. Nothing is shared with other
    brokers, so there may be several. Its methods wait for the broker and may be called from any
    thread; in a coroutine call them with `asyncio.to_thread`. What it refuses is a KafkaError; that
    it was ended meanwhile, or does not answer, is a ConnectionError.

    >>> with Broker(config={"auto.create.topics.enable": False}) as broker:
    ...     broker.create_topic("orders")
    ...     broker.produce("orders", "one").offset
    0

    In a coroutine it is `async with Broker() as broker`.

    Attributes:
        clock: What time it is for the broker; by it time passes at once.
        faults: What is to go wrong for clients; a reset removes all.
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
        """Prepare a broker; it runs from `start`, or `with`, on.

        Args:
            config: Broker configs over those of a broker without a configuration file.
            directory: Where its data lies and stays; None for a place of its own, which is removed.
            port: Where it listens, on 127.0.0.1; 0 for a free port.
            own_process: As `spawn` has it.
            snapshot: What it holds at the start, and after each `reset`: one that was taken, or a
                data directory of a broker that does not run.
            tls: Whether it is spoken to by TLS, with a certificate of its own authority for
                127.0.0.1 and localhost (`wirebroker[tls]`).
            sasl: How clients log in, "PLAIN", "SCRAM-SHA-256" or "SCRAM-SHA-512", as user `test`
                with the password `test-secret`; `client_config` has all of that. PLAIN is there
                besides: it is what the kit itself uses.

        Raises:
            ValueError: The snapshot is no data directory, or a directory is given besides.
        """
        self._live(
            BrokerLife(
                config=config or {},
                directory=None if directory is None else Path(directory),
                port=port,
                is_child=own_process,
                origin=None if snapshot is None else snapshot_place(snapshot),
                tls=tls,
                sasl=sasl,
            )
        )

    def _live(self, life: BrokerLife) -> None:
        """Have all methods ask the broker that leads this life."""
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
        """Return a broker that runs in a process of its own; the arguments are the same.

        Its start takes some tenths of a second. `kill` is a kill -9, and it waits for its disk.

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

    # -- its life ----------------------------------------------------------------------------

    @checked
    def start(self) -> None:
        """Start it; one that runs is left as it is.

        After `stop` or `kill` it starts on what it has written, and on the port that it had.

        >>> broker.stop()
        >>> broker.start()

        Raises:
            wirebroker.config.ConfigError: A config cannot be used.
            wirebroker.config.StartError: It does not start; the text says why.
        """
        self._life.start()

    @checked
    def stop(self) -> None:
        """Stop it cleanly, as SIGTERM does: requests in flight are answered.

        >>> _ = broker.produce("orders", "one")
        >>> broker.stop()
        >>> broker.start()
        >>> len(broker.records("orders"))
        1
        """
        self._life.stop()

    @checked
    def kill(self) -> None:
        """End it at once, as kill -9 does: connections break, nothing is finished.

        What it has acknowledged is there when it starts again.

        >>> _ = broker.produce("orders", "one")
        >>> broker.kill()
        >>> broker.start()
        >>> len(broker.records("orders"))
        1
        """
        self._life.kill()

    @checked
    def crash(self) -> None:
        """End it at once; `kill` by another name.

        >>> _ = broker.produce("orders", "one")
        >>> broker.crash()
        >>> broker.start()
        >>> len(broker.records("orders"))
        1
        """
        self.kill()

    @checked
    def snapshot(self, directory: str | Path | None = None) -> Snapshot:
        """Keep what it holds, for `restore`; its clients notice nothing.

        Topics, records, groups, transactions and configs are kept; not clock, faults and requests.

        >>> _ = broker.produce("orders", "one")
        >>> snapshot = broker.snapshot()
        >>> with Broker(snapshot=snapshot) as other:
        ...     len(other.records("orders"))
        1

        Args:
            directory: Where it is to lie and stay, for other runs of the tests: a new or empty one.
                None for a place of its own, which is removed with the broker.

        Raises:
            ValueError: Something is in the directory, or there is nothing that could be kept.
        """
        return self._life.take_snapshot(None if directory is None else Path(directory))

    @checked
    def restore(self, snapshot: Snapshot | str | Path) -> None:
        """Have it hold what a snapshot holds, and nothing else, in some milliseconds.

        Connections are closed, the address stays: clients connect again, and members of groups join
        again. Clock and faults are left as they are.

        >>> _ = broker.produce("orders", "one")
        >>> snapshot = broker.snapshot()
        >>> _ = broker.produce("orders", "two")
        >>> broker.restore(snapshot)
        >>> len(broker.records("orders"))
        1

        Args:
            snapshot: One of any broker's, or a data directory of one that does not run.

        Raises:
            ValueError: It is no data directory, or nothing that can be started on.
            wirebroker.config.StartError: Likewise.
        """
        self._sender = Sender()
        self._life.restore(snapshot_place(snapshot))

    @checked
    def reset(self, *, config: Mapping[str, Setting] | None = None) -> None:
        """Put a new, empty broker in its place.

        Nothing is left: connections, topics, groups, transactions and configs are those of the
        start. It listens on another port, so that a client that is still there from before
        cannot disturb what comes; ask for `bootstrap_servers` again. A process of its own goes on,
        unless configs differ.

        >>> _ = broker.produce("orders", "one")
        >>> broker.reset()
        >>> broker.topics()
        {}

        Args:
            config: Broker configs over those that it was made with, until the next reset.
        """
        self._sender = Sender()
        self._life.reset(config or {})

    @checked
    def close(self) -> None:
        """End it for good, and remove its data unless its directory was given.

        The end of a `with` block does that.

        >>> other = Broker()
        >>> other.start()
        >>> other.close()
        """
        self._life.close()

    def __repr__(self) -> str:
        where = f"on {self._life.address}" if self._life.host.is_running else "not running"
        return f"<wirebroker.testing.Broker {where}>"

    # -- where it is -------------------------------------------------------------------------

    @property
    def bootstrap_servers(self) -> str:
        """What clients are told to find it, `host:port`.

        >>> broker.bootstrap_servers.startswith("127.0.0.1:")
        True

        Raises:
            RuntimeError: It was never started.
        """
        if self._life.address is None:
            raise RuntimeError("the broker was not started: use it in a with block")
        return str(self._life.address)

    @property
    def directory(self) -> Path:
        """Where its data lies; it may be looked at by `wirebroker dump` and `verify`.

        >>> _ = broker.produce("orders", "one")
        >>> (broker.directory / "orders-0").is_dir()
        True
        """
        return self._life.directory

    @checked
    def client_config(self, client: ClientName) -> dict[str, Any]:
        """Return how a client is told of this broker, in its own words.

        >>> broker.client_config("confluent") == {"bootstrap.servers": broker.bootstrap_servers}
        True

        Args:
            client: "confluent" (a dict for its constructors), "kafka-python" or "aiokafka" (keyword
                arguments), or "spark" (options of its Kafka source and sink).

        Raises:
            ValueError: There is no client of that name.
        """
        return client_config(client, self.bootstrap_servers, self._life.protection)

    @checked
    def log_lines(self, most: int = 50) -> list[str]:
        """Return what it has logged last, since it was started.

        Of brokers in one process each returns what all of them have logged.

        >>> _ = broker.produce("orders", "one")
        >>> broker.log_lines(most=0)
        []
        """
        return self._life.host.log_lines(most)

    # -- what clients have sent --------------------------------------------------------------

    @checked
    def requests(
        self,
        api: str | Enum | None = None,
        *,
        client_id: str | None = None,
        most: int | None = None,
    ) -> list[RecordedRequest]:
        """Return the last requests that clients have sent, oldest first.

        Those of the broker's own methods are not among them. 16 MiB of requests are kept, 10,000 at
        most; one of more than 4 MiB without its body.

        >>> broker.requests(api="PRODUCE")
        []

        Args:
            api: Of this kind alone, by Kafka's name: "FETCH"; None: all.
            client_id: Of clients that call themselves so alone.
            most: No more than so many, the last ones.

        Raises:
            ValueError: There is no such kind of request.
            ConnectionError: It is a process that does not run; with it its requests are gone.
        """
        return requests_of(self._life, api, client_id=client_id, most=most)

    @checked
    def forget_requests(self) -> None:
        """Forget the requests so far.

        >>> broker.forget_requests()
        >>> broker.requests()
        []
        """
        self._life.instruct("forget-requests", {})


def snapshot_place(snapshot: Snapshot | str | Path) -> Path:
    """Return the directory that is meant."""
    return snapshot.directory if isinstance(snapshot, Snapshot) else Path(snapshot)
