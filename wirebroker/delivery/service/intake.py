"""The consumers of one instance: input records and its partitions of the pending topic.

A member of the group reads the input. What it is assigned of the pending topic is read by another
consumer, without a group, so that due records do not wait behind the input.

On an assignment, committed offsets are read first: this waits for transactions of former owners
that contain offsets (KIP-447). Then the ends of the pending partitions are read, open transactions
included. A partition is loaded when it was read up to there, read_committed: by then every
transaction of a former owner has ended, or cannot commit.
"""

from __future__ import annotations

import hashlib
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from wirebroker.delivery.model.records import ReceivedRecord
from wirebroker.delivery.service.batch_reader import BatchReader
from wirebroker.delivery.service.inbox import InboxClosedError
from wirebroker.delivery.service.index_directory import IndexDirectory
from wirebroker.delivery.service.received_headers import headers_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from confluent_kafka import Message

    from wirebroker.base.clock import Clock
    from wirebroker.delivery.pending.machine import DeliveryMachine
    from wirebroker.delivery.service.inbox import Inbox
    from wirebroker.delivery.service.settings import ServiceSettings
    from wirebroker.delivery.service.topics import ClusterTopics

logger = logging.getLogger(__name__)

_WAIT_S: Final = 60.0
# Between looks at the request to stop, while committed offsets are read.
_SLICE_S: Final = 5.0
# Errors of a request that took too long.
_SLOW: Final = frozenset({KafkaError._TIMED_OUT, KafkaError._WAIT_COORD})
# librdkafka's default, which a short session would not survive.
_HEARTBEAT_MS: Final = 3_000
_QUEUE_KIB: Final = 4_096
_FETCH_BYTES: Final = 4 << 20
# The broker responds earlier if there are records.
_PENDING_WAIT_MS: Final = 500
# Due records wait while a batch of this size is processed: about 5 ms.
_MOST_IN_BATCH: Final = 250
_UNREADABLE: Final = "unreadable headers: a name is not UTF-8"


class Intake:
    """The consumers; they feed the machine, in the thread of the inbox."""

    def __init__(
        self,
        settings: ServiceSettings,
        machine: DeliveryMachine,
        topics: ClusterTopics,
        inbox: Inbox,
        clock: Clock,
        *,
        instance: str,
        finish: Callable[[], None],
    ) -> None:
        """Connect and join the group; `finish` waits for the open transactions."""
        self._rules = settings.rules
        self._most = settings.transaction_records
        self._most_in_batch = min(self._most, _MOST_IN_BATCH)
        self._machine = machine
        self._topics = topics
        self._inbox = inbox
        self._clock = clock
        self._finish = finish
        topic_id = topics.topic_id(self._rules.pending_topic)
        self._indexes = IndexDirectory(settings.directory, topic_id, clock)
        self._is_closing = False
        # Batches of input that are not yet allowed: the machine has enough.
        self._withheld = 0
        self._pending_reader: BatchReader | None = None
        self._common: dict[str, Any] = {
            "log_level": 4,
            **settings.kafka,
            "group.id": self._rules.group,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "allow.auto.create.topics": False,
            "fetch.max.bytes": _FETCH_BYTES,
            "queued.max.messages.kbytes": _QUEUE_KIB,
        }
        names = [*self._rules.input_topics, self._rules.pending_topic]
        subscribed = {name: topics.partition_count(name) for name in names}
        self._consumer = Consumer(
            {
                **self._common,
                "group.instance.id": _member_id(instance, subscribed),
                "session.timeout.ms": settings.session_timeout_ms,
                "heartbeat.interval.ms": min(_HEARTBEAT_MS, settings.session_timeout_ms // 3),
                "partition.assignment.strategy": "roundrobin",
            }
        )
        self.group: Any = self._consumer.consumer_group_metadata()
        self._consumer.subscribe(
            names,
            on_assign=self._assigned,
            on_revoke=self._revoked,
            on_lost=self._revoked,
        )
        self._input_reader = BatchReader(
            self._consumer, inbox, self._take_input, most=self._most_in_batch
        )

    def allow(self) -> None:
        """Allow more input if the machine has room, so that memory stays bounded."""
        while self._withheld and self._machine.received_count < self._most:
            self._withheld -= 1
            self._input_reader.allow()

    def save(self) -> None:
        """Make the indexes durable."""
        self._indexes.save(self._machine.partitions.values())

    def close(self) -> None:
        """Leave the group; close the indexes. The inbox is closed."""
        self._is_closing = True
        try:
            try:
                # Its callback of a rebalance looks at what the other reader reads.
                self._input_reader.close()
            finally:
                self._stop_reading()
        finally:
            self._machine.release((), list(self._machine.partitions))

    # -- in the thread of the inbox

    def _take_input(self, messages: list[Message]) -> None:
        now_ms = self._clock.now_ms()
        for message in messages:
            error = message.error()
            if error is None:
                self._machine.receive(_received(message, now_ms))
            else:
                _check(error)
        self._withheld += 1
        self.allow()

    def _take_pending(self, reader: object, messages: list[Message]) -> None:
        if self._pending_reader is None or reader is not self._pending_reader.consumer:
            return  # of an assignment that has ended
        for message in messages:
            error = message.error()
            is_end = error is not None and error.code() == KafkaError._PARTITION_EOF
            if error is not None and not is_end:
                _check(error)
                continue
            _, number, offset = _place(message)
            if is_end:
                self._machine.partitions[number].reach(offset)
            else:
                self._machine.partitions[number].apply(offset, message.key(), message.value())
        self._pending_reader.allow()

    def _open(self, starts: dict[int, int]) -> None:
        """Open the indexes of assigned partitions, whose ends are given, and begin to read them."""
        topic = self._rules.pending_topic
        places: list[TopicPartition] = []
        for number, end in starts.items():
            partition = self._indexes.open(number, end, open_count=len(starts))
            self._machine.partitions[number] = partition
            places.append(TopicPartition(topic, number, partition.next_offset))
        if not places:
            return
        consumer = Consumer(
            {**self._common, "enable.partition.eof": True, "fetch.wait.max.ms": _PENDING_WAIT_MS}
        )
        consumer.assign(places)
        take = partial(self._take_pending, consumer)
        self._pending_reader = BatchReader(consumer, self._inbox, take, most=self._most_in_batch)

    def _release(self, inputs: set[tuple[str, int]]) -> None:
        """Forget all partitions of the pending topic, and these of the input."""
        self._finish()
        self.save()
        self._stop_reading()
        self._machine.release(inputs, list(self._machine.partitions))
        self.allow()

    def _stop_reading(self) -> None:
        reader, self._pending_reader = self._pending_reader, None
        if reader is not None:
            reader.close()

    # -- rebalances, in the thread of the group's reader

    def _assigned(self, _consumer: Consumer, places: Sequence[TopicPartition]) -> None:
        committed = self._committed(places)
        for place in committed:
            if place.error is not None:
                raise KafkaException(place.error)
        topic = self._rules.pending_topic
        numbers = [place.partition for place in places if place.topic == topic]
        if self._is_closing:
            raise InboxClosedError
        ends = self._topics.ends(topic, numbers)
        # Before the end of the rebalance, it has this generation already.
        self.group = self._consumer.consumer_group_metadata()
        self._inbox.call(partial(self._open, ends))
        self._consumer.assign([place for place in committed if place.topic != topic])
        logger.info(
            "assigned %d input partitions and %d of %s",
            len(places) - len(numbers),
            len(numbers),
            topic,
        )

    def _committed(self, places: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Return committed offsets; this waits for open transactions that contain offsets."""
        ends_by = self._clock.monotonic() + _WAIT_S
        while not self._is_closing:
            try:
                return self._consumer.committed(list(places), timeout=_SLICE_S)
            except KafkaException as error:
                if error.args[0].code() not in _SLOW or self._clock.monotonic() > ends_by:
                    raise
        raise InboxClosedError

    def _revoked(self, _consumer: Consumer, places: Sequence[TopicPartition]) -> None:
        topic = self._rules.pending_topic
        inputs = {(place.topic, place.partition) for place in places if place.topic != topic}
        if not self._is_closing:
            self._input_reader.drop()
            self._inbox.call(partial(self._release, inputs))
        logger.info(
            "revoked %d input partitions and %d pending", len(inputs), len(places) - len(inputs)
        )


def _member_id(instance: str, partition_counts: Mapping[str, int]) -> str:
    """Return the id of a static member of the group that subscribes to topics.

    A static member that returns gets its former assignment, even if it subscribes to other topics
    or to more partitions (KIP-345). No instance would read these, so both are part of the id.
    """
    text = repr(sorted(partition_counts.items()))
    return f"{instance}-{hashlib.blake2b(text.encode(), digest_size=4).hexdigest()}"


def _place(message: Message) -> tuple[str, int, int]:
    topic, number, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None
    assert number is not None
    assert offset is not None
    return topic, number, offset


def _received(message: Message, now_ms: int) -> ReceivedRecord:
    _, timestamp_ms = message.timestamp()
    topic, number, offset = _place(message)
    headers = headers_of(message)
    return ReceivedRecord(
        topic=topic,
        partition=number,
        offset=offset,
        timestamp_ms=timestamp_ms if timestamp_ms >= 0 else now_ms,
        key=message.key(),
        value=message.value(),
        headers=headers or (),
        problem=_UNREADABLE if headers is None else "",
    )


def _check(error: KafkaError) -> None:
    """Raise KafkaException if the consumer cannot go on; it retries other errors itself."""
    if error.fatal() or error.code() in _REFUSALS:
        raise KafkaException(error)
    logger.warning("the consumer reports: %s", error.str())


_REFUSALS: Final = frozenset(
    {
        # How librdkafka reports a static member that was fenced, among others.
        KafkaError._FATAL,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.FENCED_INSTANCE_ID,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
)
