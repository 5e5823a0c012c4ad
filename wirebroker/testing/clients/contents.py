"""The methods of `Broker` and `Cluster` for topics, records and committed offsets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar, cast

from wirebroker.client.groups.groups import committed_of
from wirebroker.client.topics.topics import create_topics, list_topics
from wirebroker.testing.base.arguments import check_argument, checked
from wirebroker.testing.clients.consumption import consumed_until
from wirebroker.testing.clients.differences import as_fields, difference
from wirebroker.testing.clients.reading import read_all, read_until
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
        """Run a coroutine with the client and return its result."""
        ...


class Contents:
    """The methods that read and write a broker's or a cluster's topics."""

    def __init__(self, backend: Answering, now_ms: Callable[[], int]) -> None:
        """Use a broker or cluster, and the clock that stamps records."""
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
            KafkaError: The topic cannot be created, such as TOPIC_ALREADY_EXISTS.
        """
        self.create_topics({name: partitions}, config)

    @checked
    def create_topics(
        self,
        partitions: Mapping[str, int] | Iterable[str],
        config: Mapping[str, Setting] | None = None,
    ) -> None:
        """Create several topics together, which is faster than one by one.

        >>> broker.create_topics({"orders": 3, "payments": 1})

        Args:
            partitions: Number by topic, or names of topics with one partition.
            config: Topic configs for all.

        Raises:
            KafkaError: A topic cannot be created.
        """
        configs = as_texts(config or {})
        counts = with_counts(partitions)
        self._backend.ask(lambda client: create_topics(client, counts, configs=configs))

    @checked
    def topics(self) -> dict[str, int]:
        """Return the number of partitions of each topic, without internal topics.

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
        """Append one record with acks=all, and return it as stored.

        A missing topic is created if `auto.create.topics.enable` allows it.

        >>> record = broker.produce("orders", "one", key="customer-7", headers={"trace": "a1"})
        >>> record.partition, record.offset, record.headers
        (0, 0, (('trace', b'a1'),))

        Args:
            topic: The topic's name.
            value: Text (sent as UTF-8), bytes, or None for a tombstone.
            key: Like value. Without `partition`, it selects the partition as Java's producer does;
                records without a key go to the partitions in turn.
            headers: A mapping or pairs: names, and values like `value`.
            partition: The partition's number, from 0.
            timestamp: Milliseconds since 1970, or a datetime; None for the broker's time.

        Raises:
            KafkaError: The broker returns an error, such as UNKNOWN_TOPIC_OR_PARTITION.
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
        """Return all records of a topic, by partition and offset.

        >>> for number in range(3):
        ...     _ = broker.produce("orders", str(number))
        >>> [record.value for record in broker.records("orders")]
        [b'0', b'1', b'2']

        Args:
            topic: The topic's name.
            read_committed: Whether to skip records of open and aborted transactions.

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
        """Wait until a topic, which may be missing yet, has at least `count` records; return all.

        >>> _ = broker.produce("orders", "one")
        >>> broker.wait_for("orders", 1)[0].value
        b'one'

        Args:
            topic: The topic's name.
            count: Number of records.
            timeout: Seconds.
            read_committed: See `records`.

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
        """Return a consumer group's committed offsets by topic and partition; {} if unknown.

        >>> broker.committed("billing")
        {}

        Raises:
            KafkaError: The group's coordinator is not available.
        """
        offsets = self._backend.ask(lambda client: committed_of(client, group))
        return {
            (partition.topic, partition.partition): offset for partition, offset in offsets.items()
        }

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
        """Wait until a topic holds exactly the expected records, and return them.

        >>> _ = broker.produce("orders", "a book", key="customer-7")
        >>> _ = broker.produce("orders", "a pen")
        >>> records = broker.assert_produced("orders", {"key": "customer-7"}, "a pen")

        Args:
            topic: The topic's name.
            expected: A value per record, or a dict of the fields to compare: value, key, headers,
                partition, offset, timestamp. Ordered by partition and offset.
            any_order: Whether to ignore the order.
            timeout: Seconds to wait for missing records.
            read_committed: See `records`.

        Raises:
            AssertionError: The records differ; the text lists missing and surplus ones.
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
        """Wait until a consumer group has committed all records of a topic.

        >>> broker.create_topic("orders")
        >>> broker.assert_consumed("orders", "billing")

        Args:
            topic: The topic's name.
            group: The group's id.
            timeout: Seconds.
            read_committed: Whether the group reads only committed records.

        Raises:
            AssertionError: Records are left; the text counts them by partition.
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
    """Return partition counts by topic; a list of names means one partition each."""
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
