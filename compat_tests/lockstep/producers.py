"""Steps about idempotent producers: valid, repeated and invalid sequences and epochs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from compat_tests.lockstep.record_sets import recent
from compat_tests.lockstep.topics import Topics
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from compat_tests.lockstep.kind import Moves
    from compat_tests.lockstep.steps import Expression

_LAST_SEQUENCE = 2**31 - 1
_LAST_EPOCH = 2**15 - 1
_MOST_PRODUCERS = 5
# Distance to ids that no broker will generate: each start takes a new block of 1,000.
_FAR_OFF = 10**7


@dataclass(slots=True)
class Producer:
    producer_id: Expression | int
    epoch: int = 0
    # (topic name, partition): the next sequence; and sent batches with their sequences.
    next: dict[tuple[str, int], int] = field(default_factory=dict)
    sent: dict[tuple[str, int], list[Any]] = field(default_factory=dict)


class Producers(Topics):
    """Steps about idempotent producers.

    Attributes:
        has_small_segments: Whether a topic's segments hold only a few batches.
    """

    name = "producers"
    keys = frozenset({ApiKey.INIT_PRODUCER_ID, ApiKey.PRODUCE, ApiKey.DESCRIBE_PRODUCERS})

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.producers: list[Producer] = []
        self.has_small_segments = True

    def beginning(self) -> Moves:
        yield from self.create(2)
        small = {"internal.segment.bytes": "400"} if self.has_small_segments else {}
        yield from self.create(1, {"compression.type": "gzip", **small})
        yield from self.init()

    def moves(self) -> list[tuple[int, Callable[[], Moves]]]:
        return [
            (40, self.next_batch),
            (15, self.repeat),
            (20, self.wrong_sequence),
            (6, self.next_epoch),
            (4, self.init),
            (3, self.init_oddly),
            (8, self.describe),
            (2 if self.deletes_records else 0, self.delete_records),
            (1, lambda: self.recreate(self.any_topic())),
        ]

    def ending(self) -> Moves:
        """Read everything, including producer states."""
        yield from self.survey()

    # -- moves -------------------------------------------------------------------------------

    def init(self) -> Moves:
        request = {"transactional_id": None, "transaction_timeout_ms": 60_000}
        answer = yield from self.ask(ApiKey.INIT_PRODUCER_ID, request)
        producer_id = answer.name("producer_id", "P")
        if producer_id is not None:
            self.producers.append(Producer(producer_id))
            del self.producers[:-_MOST_PRODUCERS]

    def init_oddly(self) -> Moves:
        """Send an id and an epoch, or an invalid timeout, without a transactional id."""
        producer = self.random.choice(self.producers)
        request = {
            "transactional_id": None,
            "transaction_timeout_ms": self.random.choice((-1, 0, 60_000, 2**31 - 1)),
            "producer_id": self.random.choice((-1, producer.producer_id, 10**9)),
            "producer_epoch": self.random.choice((-1, 0, producer.epoch)),
        }
        yield from self.ask(ApiKey.INIT_PRODUCER_ID, request)

    def next_batch(self) -> Moves:
        producer = self.random.choice(self.producers)
        partition = self._place()
        sequence = producer.next.get(partition, 0)
        if sequence == 0 and self.maybe(0.1):
            sequence = _LAST_SEQUENCE - self.random.randrange(4)
        yield from self._send(producer, partition, sequence)

    def repeat(self) -> Moves:
        """Repeat an earlier batch, perhaps older than the last five."""
        producer = self.random.choice(self.producers)
        if not producer.sent:
            return
        partition = self.random.choice(sorted(producer.sent))
        batch = self.random.choice(producer.sent[partition][-7:])
        yield from self._produce(partition, batch)

    def wrong_sequence(self) -> Moves:
        """Send an unexpected sequence, another epoch or an unknown id."""
        producer = self.random.choice(self.producers)
        partition = self._place()
        expected = producer.next.get(partition, 0)
        wrong_producer = Producer(
            producer.producer_id
            if self.maybe(0.8)
            else self.random.choice((producer.producer_id + _FAR_OFF, 0)),
            min(
                _LAST_EPOCH,
                self.random.choice(
                    (0, producer.epoch, producer.epoch, producer.epoch + 1, _LAST_EPOCH)
                ),
            ),
        )
        near_sequences = (
            expected,
            _after(expected, 1),
            _after(expected, 5),
            max(0, expected - 1),
            max(0, expected - 9),
        )
        sequence = self.random.choice((0, *near_sequences, _LAST_SEQUENCE))
        record_set = recent(
            self.random,
            producer_id=wrong_producer.producer_id,
            producer_epoch=wrong_producer.epoch,
            base_sequence=sequence,
        )
        answer_is_good = yield from self._produce(partition, record_set.records)
        if answer_is_good and wrong_producer.producer_id == producer.producer_id:
            producer.epoch = max(producer.epoch, wrong_producer.epoch)
            producer.next[partition] = _after(sequence, record_set.record_count)

    def next_epoch(self) -> Moves:
        producer = self.random.choice(self.producers)
        if producer.epoch >= _LAST_EPOCH:
            return
        producer.epoch += 1
        producer.next.clear()
        yield from self._send(producer, self._place(), 0)

    def describe(self) -> Moves:
        """Describe the producers of some partitions, known or not."""
        topics = [
            {"name": topic.name, "partition_indexes": self.some([*topic.partitions, 9])}
            for topic in self.some([*self.topics, self.strange_topic()], maximum=2)
        ]
        yield from self.ask(ApiKey.DESCRIBE_PRODUCERS, {"topics": topics})

    def delete_records(self) -> Moves:
        """Delete all records of a partition: its producers remain known."""
        topic = self.any_topic()
        partition = {"partition_index": self.random.choice(topic.partitions), "offset": -1}
        request = {
            "topics": [{"name": topic.name, "partitions": [partition]}],
            "timeout_ms": 30_000,
        }
        yield from self.ask(ApiKey.DELETE_RECORDS, request)

    # -- parts -------------------------------------------------------------------------------

    def _place(self) -> tuple[str, int]:
        topic = self.any_topic()
        return topic.name, self.random.choice(topic.partitions)

    def _send(self, producer: Producer, partition: tuple[str, int], sequence: int) -> Moves:
        record_set = recent(
            self.random,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=sequence,
        )
        is_good = yield from self._produce(partition, record_set.records)
        if is_good:
            producer.next[partition] = _after(sequence, record_set.record_count)
            producer.sent.setdefault(partition, []).append(record_set.records)

    def _produce(self, partition: tuple[str, int], records: Any) -> Any:
        name, index = partition
        topic = next(candidate for candidate in self.topics if candidate.name == name)
        data = [{"index": index, "records": records}]
        request = {
            "acks": self.random.choice((-1, -1, -1, 1, 0)),
            "timeout_ms": 30_000,
            "topic_data": [{**topic.both, "partition_data": data}],
        }
        version = self.version(ApiKey.PRODUCE, 3)
        answer = yield from self.ask(ApiKey.PRODUCE, request, version=version)
        self.learn_ends(answer, [topic])
        return answer.is_good


def _after(sequence: int, count: int) -> int:
    """Return the sequence after `count` more records; it wraps around to 0."""
    return (sequence + count) % (_LAST_SEQUENCE + 1)
