"""What is in a broker: topics, records, committed offsets, as tests put and find them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar, cast

from wirebroker.client.groups.groups import committed_of
from wirebroker.client.topics.topics import create_topics, list_topics
from wirebroker.testing.base.arguments import check_argument, checked
from wirebroker.testing.clients.consumption import consumed_until
from wirebroker.testing.clients.differences import as_fields, difference
from wirebroker.testing.clients.reading import read_all, read_until
from wirebroker.testing.clients.sending import Parcel, Sender
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
    """Whoever has a broker, or several, answer."""

    def ask(self, question: Callable[[KafkaClient], Coroutine[Any, Any, _Result]]) -> _Result:
        """Talk with them, and return what comes of it."""
        ...


class Contents:
    """The methods of a Broker, and of a Cluster, that are about what clients read and write."""

    def __init__(self, asked: Answering, now_ms: Callable[[], int]) -> None:
        """Take who answers, and the time that records have."""
        self._asked = asked
        self._now_ms = now_ms
        self._sender = Sender()

    @checked
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

    @checked
    def create_topics(
        self,
        partitions: Mapping[str, int] | Iterable[str],
        config: Mapping[str, Setting] | None = None,
    ) -> None:
        """Create several topics at once, which is quicker than one by one.

        >>> broker.create_topics({"orders": 3, "payments": 1})

        Args:
            partitions: How many each topic has; or a list of names, of topics with one partition.
            config: Topic configs, for all of them.

        Raises:
            KafkaError: One cannot be created.
        """
        configs = as_texts(config or {})
        counts = with_counts(partitions)
        self._asked.ask(lambda client: create_topics(client, counts, configs=configs))

    @checked
    def topics(self) -> dict[str, int]:
        """Return how many partitions each topic has, Kafka's own topics left out.

        >>> broker.create_topic("orders", partitions=3)
        >>> broker.topics()
        {'orders': 3}
        """
        return self._asked.ask(list_topics)

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
            timestamp: Milliseconds since 1970, or a datetime; if it is not given, now, by the
                `clock` of a Broker.

        Raises:
            KafkaError: The broker refuses it, such as UNKNOWN_TOPIC_OR_PARTITION.
        """
        pairs = list(_pairs(headers))
        check_argument("produce", "headers", pairs)
        parcel = Parcel(
            topic=topic,
            partition=partition,
            key=_as_bytes(key),
            value=_as_bytes(value),
            headers=tuple((name, _as_bytes(each)) for name, each in pairs),
            timestamp_ms=self._now_ms() if timestamp is None else _as_ms(timestamp),
        )
        return self._asked.ask(lambda client: self._sender.send(client, parcel))

    @checked
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
        return self._asked.ask(
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
        return self._asked.ask(
            lambda client: read_until(
                client, topic, timeout, count=count, read_committed=read_committed
            )
        )

    @checked
    def committed(self, group: str) -> dict[tuple[str, int], int]:
        """Return the offsets that a consumer group has committed, by topic and partition.

        >>> broker.committed("billing")
        {}

        Args:
            group: The group's id; one that there is not has committed nothing.

        Raises:
            KafkaError: Its coordinator does not answer.
        """
        found = self._asked.ask(lambda client: committed_of(client, group))
        return {(place.topic, place.partition): offset for place, offset in found.items()}

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
        """Wait until a topic holds these records and no others, and return them.

        >>> _ = broker.produce("orders", "a book", key="customer-7")
        >>> _ = broker.produce("orders", "a pen")
        >>> records = broker.assert_produced("orders", {"key": "customer-7"}, "a pen")

        Args:
            topic: The topic's name.
            expected: For each record its value, or a dict of what of it is looked at: value, key,
                headers, partition, offset, timestamp. In the order of partitions and offsets.
            any_order: Whether they may come in any order.
            timeout: Seconds, to wait for what is missing.
            read_committed: As of `records`.

        Raises:
            AssertionError: There are others when the time is over; the text shows line by line
                what is missing and what is too much.
        """
        wanted = [as_fields(each) for each in expected]
        try:
            found = self.wait_for(topic, len(wanted), timeout, read_committed=read_committed)
        except TimeoutError as error:
            if topic not in self.topics():
                raise AssertionError(str(error)) from None
            found = self.records(topic, read_committed=read_committed)
        told = difference(wanted, found, any_order=any_order)
        if told is not None:
            raise AssertionError(f"{topic} holds other records than expected:\n{told}")
        return found

    @checked
    def assert_consumed(
        self,
        topic: str,
        group: str,
        timeout: float = _PATIENCE_S,
        *,
        read_committed: bool = False,
    ) -> None:
        """Wait until a consumer group has committed all that a topic holds.

        >>> broker.create_topic("orders")
        >>> broker.assert_consumed("orders", "billing")

        Args:
            topic: The topic's name.
            group: The group's id.
            timeout: Seconds.
            read_committed: Whether the group reads committed records alone.

        Raises:
            AssertionError: It has not when the time is over; the text says for each partition how
                far it is.
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION.
        """
        missing = self._asked.ask(
            lambda client: consumed_until(
                client, topic, group, timeout, read_committed=read_committed
            )
        )
        if missing:
            lines = "\n".join(missing)
            raise AssertionError(f"{group} has not consumed all of {topic}:\n{lines}")


def with_counts(topics: Mapping[str, int] | Iterable[str]) -> Mapping[str, int]:
    """Return topics with their numbers of partitions, which is 1 if names alone are given."""
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
