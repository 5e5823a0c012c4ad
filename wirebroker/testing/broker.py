"""The broker that tests start: one class, whether it runs in their process or in one of its own.

Each example of a docstring is run by a test; `broker` is one that runs and is empty.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from wirebroker.client.groups import committed_of
from wirebroker.client.topics import create_topics, list_topics
from wirebroker.clock import SystemClock
from wirebroker.testing.client_configs import client_config
from wirebroker.testing.life import BrokerLife
from wirebroker.testing.reading import read_all, read_until
from wirebroker.testing.sending import Parcel, Sender
from wirebroker.testing.settings import as_texts

if TYPE_CHECKING:
    import datetime
    from collections.abc import Iterable
    from types import TracebackType
    from typing import Self

    from wirebroker.testing.client_configs import ClientName
    from wirebroker.testing.settings import Setting
    from wirebroker.testing.topic_record import TopicRecord

# Text is sent as UTF-8.
Content: TypeAlias = "str | bytes | None"
_Headers: TypeAlias = "Mapping[str, Content] | Iterable[tuple[str, Content]]"

_PATIENCE_S: Final = 10.0


class Broker:
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
    """

    def __init__(
        self,
        *,
        config: Mapping[str, Setting] | None = None,
        directory: str | Path | None = None,
        port: int = 0,
        own_process: bool = False,
    ) -> None:
        """Prepare a broker; it runs from `start`, or `with`, on.

        Args:
            config: Broker configs over those of a broker without a configuration file.
            directory: Where its data lies and stays; None for a place of its own, which is removed.
            port: Where it listens, on 127.0.0.1; 0 for a free port.
            own_process: As `spawn` has it.
        """
        self._life = BrokerLife(
            config=config or {},
            directory=None if directory is None else Path(directory),
            port=port,
            is_child=own_process,
        )
        self._sender = Sender()

    @classmethod
    def spawn(
        cls,
        *,
        config: Mapping[str, Setting] | None = None,
        directory: str | Path | None = None,
        port: int = 0,
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
        return cls(config=config, directory=directory, port=port, own_process=True)

    # -- its life ----------------------------------------------------------------------------

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

    def stop(self) -> None:
        """Stop it cleanly, as SIGTERM does: requests in flight are answered.

        >>> _ = broker.produce("orders", "one")
        >>> broker.stop()
        >>> broker.start()
        >>> len(broker.records("orders"))
        1
        """
        self._life.stop()

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

    def reset(self, *, config: Mapping[str, Setting] | None = None) -> None:
        """Put a new, empty broker in its place.

        Nothing is left: connections, topics, groups, transactions and configs are those of the
        start. It listens on another port, so that a client that is still there from before
        cannot disturb what comes; ask for `bootstrap_servers` again.

        >>> _ = broker.produce("orders", "one")
        >>> broker.reset()
        >>> broker.topics()
        {}

        Args:
            config: Broker configs over those that it was made with, until the next reset.
        """
        self._sender = Sender()
        self._life.reset(config or {})

    def close(self) -> None:
        """End it for good, and remove its data unless its directory was given.

        The end of a `with` block does that.

        >>> other = Broker()
        >>> other.start()
        >>> other.close()
        """
        self._life.close()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.close)

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

    def client_config(self, client: ClientName) -> dict[str, str]:
        """Return how a client is told of this broker, in its own words.

        >>> broker.client_config("confluent") == {"bootstrap.servers": broker.bootstrap_servers}
        True

        Args:
            client: "confluent" (a dict for its constructors), "kafka-python" or "aiokafka" (keyword
                arguments), or "spark" (options of its Kafka source and sink).

        Raises:
            ValueError: There is no client of that name.
        """
        return client_config(client, self.bootstrap_servers)

    def log_lines(self, most: int = 50) -> list[str]:
        """Return what it has logged last, since it was started.

        Of brokers in one process each returns what all of them have logged.

        >>> _ = broker.produce("orders", "one")
        >>> broker.log_lines(most=0)
        []
        """
        return self._life.host.log_lines(most)

    # -- topics and records ------------------------------------------------------------------

    def create_topic(
        self, name: str, partitions: int = 1, config: Mapping[str, Setting] | None = None
    ) -> None:
        """Create a topic.

        >>> broker.create_topic("prices", partitions=3, config={"cleanup.policy": "compact"})

        Args:
            name: The topic's name.
            partitions: How many it has.
            config: Topic configs.

        Raises:
            KafkaError: It cannot be created, such as TOPIC_ALREADY_EXISTS.
        """
        self.create_topics({name: partitions}, config)

    def create_topics(
        self, partitions: Mapping[str, int], config: Mapping[str, Setting] | None = None
    ) -> None:
        """Create several topics at once, which is quicker than one by one.

        >>> broker.create_topics({"orders": 3, "payments": 1})

        Args:
            partitions: How many each topic has.
            config: Topic configs, for all of them.

        Raises:
            KafkaError: One cannot be created.
        """
        configs = as_texts(config or {})
        self._life.ask(lambda client: create_topics(client, partitions, configs=configs))

    def topics(self) -> dict[str, int]:
        """Return how many partitions each topic has, Kafka's own topics left out.

        >>> broker.create_topic("orders", partitions=3)
        >>> broker.topics()
        {'orders': 3}
        """
        return self._life.ask(list_topics)

    def produce(
        self,
        topic: str,
        value: Content,
        *,
        key: Content = None,
        headers: _Headers = (),
        partition: int | None = None,
        timestamp: int | datetime.datetime | None = None,
    ) -> TopicRecord:
        """Append one record, and return it when all replicas have it.

        The topic is created if there is none and `auto.create.topics.enable` allows it.

        >>> record = broker.produce("orders", "one", key="customer-7", headers={"trace": "a1"})
        >>> record.partition, record.offset, record.headers
        (0, 0, (('trace', b'a1'),))

        Args:
            topic: Where to.
            value: Text (sent as UTF-8), bytes, or None for a tombstone.
            key: Like value. Without `partition` it says the partition, as with Java's producer;
                records without a key go to the partitions in turn.
            headers: Names and values.
            partition: The partition's number.
            timestamp: Milliseconds since 1970, or a datetime; now if it is not given.

        Raises:
            KafkaError: The broker refuses it, such as UNKNOWN_TOPIC_OR_PARTITION.
        """
        parcel = Parcel(
            topic=topic,
            partition=partition,
            key=_as_bytes(key),
            value=_as_bytes(value),
            headers=tuple((name, _as_bytes(each)) for name, each in _pairs(headers)),
            timestamp_ms=_as_ms(timestamp),
        )
        return self._life.ask(lambda client: self._sender.send(client, parcel))

    def records(self, topic: str, *, read_committed: bool = False) -> list[TopicRecord]:
        """Return all records of a topic, partition by partition, in the order of their offsets.

        >>> for number in range(3):
        ...     _ = broker.produce("orders", str(number))
        >>> [record.value for record in broker.records("orders")]
        [b'0', b'1', b'2']

        Args:
            topic: The topic's name.
            read_committed: Whether records of transactions that were aborted, or are open, are
                left out; they are not by default, as with Kafka's consumers.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION.
        """
        return self._life.ask(lambda client: read_all(client, topic, read_committed=read_committed))

    def wait_for(
        self,
        topic: str,
        count: int,
        timeout: float = _PATIENCE_S,
        *,
        read_committed: bool = False,
    ) -> list[TopicRecord]:
        """Wait until a topic has so many records, and return what it then has.

        The topic may come into being meanwhile.

        >>> _ = broker.produce("orders", "one")
        >>> broker.wait_for("orders", 1)[0].value
        b'one'

        Args:
            topic: The topic's name.
            count: How many records; there may be more in the end.
            timeout: Seconds.
            read_committed: As of `records`.

        Raises:
            TimeoutError: There are fewer when the time is over; the text says how many.
        """
        return self._life.ask(
            lambda client: read_until(
                client, topic, timeout, count=count, read_committed=read_committed
            )
        )

    def committed(self, group: str) -> dict[tuple[str, int], int]:
        """Return the offsets that a consumer group has committed, by topic and partition.

        >>> broker.committed("billing")
        {}

        Args:
            group: The group's id; one that there is not has committed nothing.

        Raises:
            KafkaError: Its coordinator does not answer.
        """
        found = self._life.ask(lambda client: committed_of(client, group))
        return {(place.topic, place.partition): offset for place, offset in found.items()}


def _pairs(headers: _Headers) -> Iterable[tuple[str, Content]]:
    if isinstance(headers, Mapping):
        return cast("Mapping[str, Content]", headers).items()
    return headers


def _as_bytes(content: Content) -> bytes | None:
    return content.encode() if isinstance(content, str) else content


def _as_ms(timestamp: int | datetime.datetime | None) -> int:
    if timestamp is None:
        return SystemClock().now_ms()
    return timestamp if isinstance(timestamp, int) else round(timestamp.timestamp() * 1000)
