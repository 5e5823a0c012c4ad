"""The methods of `Broker` and `Cluster` for topics, records and offsets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar, cast

from wirebroker.client.groups.groups import ListedGroup, committed_of, list_groups
from wirebroker.client.topics.topics import create_topics, list_topics
from wirebroker.testing.base.arguments import check_argument, checked
from wirebroker.testing.clients.differences import as_fields, difference
from wirebroker.testing.clients.reading import consumed_until, read_all, read_until
from wirebroker.testing.clients.sending import OutgoingRecord, Sender
from wirebroker.testing.settings.settings import as_texts

if TYPE_CHECKING:
    import datetime
    from collections.abc import Callable, Coroutine, Iterable

    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.testing.clients.differences import Expected
    from wirebroker.testing.clients.topic_record import TopicRecord
    from wirebroker.testing.settings.settings import Setting

# Text is sent as UTF-8.
Content: TypeAlias = "str | bytes | None"
_Headers: TypeAlias = "Mapping[str, Content] | Iterable[tuple[str, Content]]"

_Result = TypeVar("_Result")

_PATIENCE_S: Final = 10.0


class Answering(Protocol):
    """A broker or cluster with a client."""

    def ask(self, question: Callable[[KafkaClient], Coroutine[Any, Any, _Result]]) -> _Result:
        """Run a coroutine with the client."""
        ...


class Contents:
    """A broker or cluster with topics."""

    def __init__(self, backend: Answering, now_ms: Callable[[], int]) -> None:
        self._backend = backend
        self._now_ms = now_ms
        self._sender = Sender()

    @checked
    def create_topic(
        self, name: str, partitions: int = 1, config: Mapping[str, Setting] | None = None
    ) -> None:
        """Create a topic.

        >>> broker.create_topic("prices", partitions=3, config={"cleanup.policy": "compact"})

        Raises:
            KafkaError: It cannot be created, such as TOPIC_ALREADY_EXISTS.
        """
        self.create_topics({name: partitions}, config)

    @checked
    def create_topics(
        self,
        partitions: Mapping[str, int] | Iterable[str],
        config: Mapping[str, Setting] | None = None,
    ) -> None:
        """Create several topics together, which is faster.

        >>> broker.create_topics({"orders": 3, "payments": 1})

        Args:
            partitions: Number by topic, or names of topics with one partition.
            config: Configs of all topics.

        Raises:
            KafkaError: A topic cannot be created.
        """
        configs = as_texts(config or {})
        counts = with_counts(partitions)
        self._backend.ask(lambda client: create_topics(client, counts, configs=configs))

    @checked
    def topics(self) -> dict[str, int]:
        """Return the number of partitions of each topic that is not internal.

        >>> broker.create_topic("orders", partitions=3)
        >>> broker.topics()
        {'orders': 3}
        """
        return self._backend.ask(list_topics)

    @checked
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
        """Append one record with acks=all; return it as stored.

        A missing topic is created if `auto.create.topics.enable` allows it.

        >>> record = broker.produce("orders", "one", key="customer-7", headers={"trace": "a1"})
        >>> record.partition, record.offset, record.headers
        (0, 0, (('trace', b'a1'),))

        Args:
            topic: The topic's name.
            value: Text (sent as UTF-8), bytes, or None for a tombstone.
            key: Like `value`.
            headers: A mapping or pairs: names, and values like `value`.
            partition: The partition; None to select it by key as Java's producer does, and in turn
                without a key.
            timestamp: Milliseconds since 1970, or a datetime; None for the broker's time.

        Raises:
            KafkaError: For example UNKNOWN_TOPIC_OR_PARTITION.
        """
        pairs = list(_pairs(headers))
        check_argument("produce", "headers", pairs)
        parcel = OutgoingRecord(
            topic=topic,
            partition=partition,
            key=_as_bytes(key),
            value=_as_bytes(value),
            headers=tuple((name, _as_bytes(header_value)) for name, header_value in pairs),
            timestamp_ms=self._now_ms() if timestamp is None else _as_ms(timestamp),
        )
        return self._backend.ask(lambda client: self._sender.send(client, parcel))

    @checked
    def records(self, topic: str, *, read_committed: bool = False) -> list[TopicRecord]:
        """Return a topic's records by partition and offset.

        `read_committed` skips records of open and aborted transactions.

        >>> for number in range(3):
        ...     _ = broker.produce("orders", str(number))
        >>> [record.value for record in broker.records("orders")]
        [b'0', b'1', b'2']

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION.
        """
        return self._backend.ask(
            lambda client: read_all(client, topic, read_committed=read_committed)
        )

    @checked
    def wait_for(
        self,
        topic: str,
        count: int,
        timeout: float = _PATIENCE_S,
        *,
        read_committed: bool = False,
    ) -> list[TopicRecord]:
        """Wait until a topic has at least `count` records; return all, like `records`.

        The topic may be missing at first; `timeout` is in seconds.

        >>> _ = broker.produce("orders", "one")
        >>> broker.wait_for("orders", 1)[0].value
        b'one'

        Raises:
            TimeoutError: There are fewer.
        """
        return self._backend.ask(
            lambda client: read_until(
                client, topic, timeout, count=count, read_committed=read_committed
            )
        )

    @checked
    def committed(self, group: str) -> dict[tuple[str, int], int]:
        """Return a group's committed offsets by topic and partition; {} if it is unknown.

        >>> broker.committed("billing")
        {}

        Raises:
            KafkaError: The coordinator is not available.
        """
        offsets = self._backend.ask(lambda client: committed_of(client, group))
        return {
            (partition.topic, partition.partition): offset for partition, offset in offsets.items()
        }

    @checked
    def groups(self) -> list[ListedGroup]:
        """Return the groups of every kind, by name.

        The kinds are classic, consumer, share and streams.

        >>> broker.create_topic("orders")
        >>> broker.groups()
        []

        Raises:
            KafkaError: A coordinator is not available.
        """
        return self._backend.ask(list_groups)

    # -- assertions --------------------------------------------------------------------------

    @checked
    def assert_produced(
        self,
        topic: str,
        *expected: Expected,
        any_order: bool = False,
        timeout: float = _PATIENCE_S,
        read_committed: bool = False,
    ) -> list[TopicRecord]:
        """Wait until a topic holds exactly the expected records; return them.

        >>> _ = broker.produce("orders", "a book", key="customer-7")
        >>> _ = broker.produce("orders", "a pen")
        >>> records = broker.assert_produced("orders", {"key": "customer-7"}, "a pen")

        Args:
            topic: The topic's name.
            expected: By partition and offset, a value per record, or a dict of the fields to
                compare: value, key, headers, partition, offset, timestamp.
            any_order: Whether to ignore the order.
            timeout: Seconds to wait for missing records.
            read_committed: See `records`.

        Raises:
            AssertionError: The records differ.
            ValueError: A dict has an unknown field.
        """
        expected_fields = [as_fields(record) for record in expected]
        try:
            records = self.wait_for(
                topic, len(expected_fields), timeout, read_committed=read_committed
            )
        except TimeoutError as error:
            if topic not in self.topics():
                raise AssertionError(str(error)) from None
            records = self.records(topic, read_committed=read_committed)
        differences = difference(expected_fields, records, any_order=any_order)
        if differences is not None:
            raise AssertionError(f"{topic} does not have the expected records:\n{differences}")
        return records

    @checked
    def assert_consumed(
        self,
        topic: str,
        group: str,
        timeout: float = _PATIENCE_S,
        *,
        read_committed: bool = False,
    ) -> None:
        """Wait until a group has committed all records of a topic.

        Use `read_committed` if the group does; `timeout` is in seconds.

        >>> broker.create_topic("orders")
        >>> broker.assert_consumed("orders", "billing")

        Raises:
            AssertionError: Records are left.
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION.
        """
        missing = self._backend.ask(
            lambda client: consumed_until(
                client, topic, group, timeout, read_committed=read_committed
            )
        )
        if missing:
            lines = "\n".join(missing)
            raise AssertionError(f"{group} has not consumed all of {topic}:\n{lines}")


def with_counts(topics: Mapping[str, int] | Iterable[str]) -> Mapping[str, int]:
    """Return partition counts by topic; listed names mean one each."""
    if isinstance(topics, Mapping):
        return cast("Mapping[str, int]", topics)
    return dict.fromkeys(topics, 1)


def _pairs(headers: _Headers) -> Iterable[tuple[str, Content]]:
    if isinstance(headers, Mapping):
        return cast("Mapping[str, Content]", headers).items()
    return headers


def _as_bytes(content: Content) -> bytes | None:
    if content is None:
        return None
    return content.encode() if isinstance(content, str) else bytes(content)


def _as_ms(timestamp: int | datetime.datetime) -> int:
    return timestamp if isinstance(timestamp, int) else round(timestamp.timestamp() * 1000)
