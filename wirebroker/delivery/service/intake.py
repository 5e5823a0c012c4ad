"""The consumer of one instance: input records and its partitions of the pending topic.

On an assignment, committed offsets are read first: this waits for transactions of former owners
that contain offsets (KIP-447). Then the ends of the pending partitions are read, open transactions
included. A partition is loaded when it was read up to there, read_committed: by then every
transaction of a former owner has ended, or cannot commit.
"""

from __future__ import annotations

import logging
import sqlite3
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from wirebroker.delivery.model.records import ReceivedRecord
from wirebroker.delivery.pending.partition import PendingPartition
from wirebroker.delivery.pending.store import PendingStore
from wirebroker.delivery.service.received_headers import headers_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from confluent_kafka import Message

    from wirebroker.base.clock import Clock
    from wirebroker.delivery.pending.machine import DeliveryMachine
    from wirebroker.delivery.service.settings import ServiceSettings
    from wirebroker.delivery.service.topics import ClusterTopics

logger = logging.getLogger(__name__)

_WAIT_S: Final = 60.0
# Half of delete.retention.ms of the pending topic.
_STALE_MS: Final = 12 * 3_600_000
_QUEUE_KIB: Final = 16_384
_FETCH_BYTES: Final = 8 << 20
INDEX_FILES: Final = "pending-*.sqlite*"
_SUFFIXES: Final = ("", "-wal", "-shm")
_UNREADABLE: Final = "unreadable headers: a name is not UTF-8"


class Intake:
    """The consumer; it feeds the machine."""

    def __init__(
        self,
        settings: ServiceSettings,
        instance: str,
        machine: DeliveryMachine,
        topics: ClusterTopics,
        clock: Clock,
    ) -> None:
        """Connect and join the group."""
        self._rules = settings.rules
        self._directory = settings.directory
        self._most = settings.transaction_records
        self._machine = machine
        self._topics = topics
        self._clock = clock
        self._topic_id = topics.topic_id(self._rules.pending_topic)
        # The next offset of each assigned input partition.
        self._positions: dict[tuple[str, int], int] = {}
        self._was_assigned = False
        self._is_paused = False
        self._consumer = Consumer(
            {
                "log_level": 4,
                **settings.kafka,
                "group.id": self._rules.group,
                "group.instance.id": instance,
                "session.timeout.ms": settings.session_timeout_ms,
                "partition.assignment.strategy": "roundrobin",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
                "allow.auto.create.topics": False,
                "fetch.wait.max.ms": 100,
                "fetch.max.bytes": _FETCH_BYTES,
                "queued.max.messages.kbytes": _QUEUE_KIB,
            }
        )
        self._consumer.subscribe(
            [*self._rules.input_topics, self._rules.pending_topic],
            on_assign=self._assigned,
            on_revoke=self._revoked,
            on_lost=self._revoked,
        )

    @property
    def group(self) -> Any:
        """The group's metadata, which fences former owners."""
        return self._consumer.consumer_group_metadata()

    def read(self, wait_s: float) -> None:
        """Pass records to the machine, after waiting for the first one.

        Raises:
            KafkaException: The consumer cannot go on.
        """
        self._limit()
        self._was_assigned = False
        first = self._consumer.poll(wait_s)
        if first is None:
            return
        # No wait: they have been fetched already.
        for message in [first, *self._consumer.consume(self._most, 0)]:
            self._take(message)

    def _limit(self) -> None:
        """Pause the input while its transactions fail, so that memory stays bounded."""
        must_pause = self._machine.received_count >= 2 * self._most
        if must_pause == self._is_paused:
            return
        places = [TopicPartition(*place) for place in self._positions]
        if must_pause:
            self._consumer.pause(places)
        else:
            self._consumer.resume(places)
        self._is_paused = must_pause

    def save(self) -> None:
        """Make the indexes durable."""
        now_ms = self._clock.now_ms()
        for partition in self._machine.partitions.values():
            partition.save(now_ms, self._topic_id)

    def close(self) -> None:
        """Leave the group; close the indexes."""
        try:
            self._consumer.close()
        finally:
            self._machine.release((), list(self._machine.partitions))

    def _take(self, message: Message) -> None:
        error = message.error()
        is_end = error is not None and error.code() == KafkaError._PARTITION_EOF
        if error is not None and not is_end:
            _check(error)
            return
        topic, number, offset = _place(message)
        if is_end:
            if topic == self._rules.pending_topic and number in self._machine.partitions:
                self._machine.partitions[number].reach(offset)
            return
        if topic == self._rules.pending_topic:
            partition = self._machine.partitions.get(number)
            if partition is not None:
                partition.apply(offset, message.key(), message.value())
            return
        position = self._positions.get((topic, number))
        # What was fetched before a rebalance may arrive once more after it.
        if position is not None and not (self._was_assigned and offset < position):
            self._positions[topic, number] = offset + 1
            self._machine.receive(_received(message, self._clock.now_ms()))

    # -- rebalances, called by `read`

    def _assigned(self, _consumer: Consumer, places: Sequence[TopicPartition]) -> None:
        committed = self._consumer.committed(list(places), timeout=_WAIT_S)
        for place in committed:
            if place.error is not None:
                raise KafkaException(place.error)
        pending = [place.partition for place in places if place.topic == self._rules.pending_topic]
        ends = self._topics.ends(self._rules.pending_topic, pending)
        starts: list[TopicPartition] = []
        for place in committed:
            if place.topic == self._rules.pending_topic:
                partition = self._opened(place.partition, ends[place.partition])
                self._machine.partitions[place.partition] = partition
                starts.append(TopicPartition(place.topic, place.partition, partition.next_offset))
            else:
                starts.append(place)
                self._positions[place.topic, place.partition] = max(place.offset, 0)
        self._consumer.assign(starts)
        self._was_assigned = True
        self._is_paused = False
        logger.info(
            "assigned %d input partitions and %d of %s",
            len(starts) - len(pending),
            len(pending),
            self._rules.pending_topic,
        )

    def _revoked(self, _consumer: Consumer, places: Sequence[TopicPartition]) -> None:
        self.save()
        pending = [place.partition for place in places if place.topic == self._rules.pending_topic]
        inputs = {
            (place.topic, place.partition)
            for place in places
            if place.topic != self._rules.pending_topic
        }
        self._machine.release(inputs, pending)
        for place in inputs:
            self._positions.pop(place, None)
        logger.info("revoked %d input partitions and %d pending", len(inputs), len(pending))

    def _opened(self, number: int, end: int) -> PendingPartition:
        """Return a partition with its index, which is rebuilt if it cannot be continued."""
        path = self._directory / f"pending-{number}.sqlite"
        now_ms = self._clock.now_ms()
        try:
            store = PendingStore(path)
        except sqlite3.DatabaseError as error:
            logger.warning("the index %s is rebuilt: %s", path, error)
            return PendingPartition(number, self._new_store(path), end)
        is_fresh = 0 <= now_ms - store.stamp_ms <= _STALE_MS and store.next_offset <= end
        if not (is_fresh and store.topic_id == self._topic_id):
            if store.next_offset:
                logger.info("the index %s is rebuilt: it is too old, or of another topic", path)
            store.close()
            store = self._new_store(path)
        return PendingPartition(number, store, end)

    def _new_store(self, path: Path) -> PendingStore:
        for suffix in _SUFFIXES:
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        store = PendingStore(path)
        store.commit(0, self._clock.now_ms(), self._topic_id)
        return store


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
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.FENCED_INSTANCE_ID,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
)
