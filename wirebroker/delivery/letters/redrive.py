"""Dead letters sent again, each once, in transactions with the progress.

The progress is a committed offset of the group `wirebroker-redrive.TOPIC` (progress.py). One
transactional id for each dead-letter topic fences a redrive that was interrupted or runs elsewhere.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from wirebroker.base.text import counted
from wirebroker.delivery.letters.letter import LetterRecord, redriven_headers
from wirebroker.delivery.letters.progress import MOST_METADATA_BYTES, RedriveProgress
from wirebroker.delivery.letters.redrive_group import redrive_group
from wirebroker.delivery.letters.targets import redrive_problem
from wirebroker.delivery.service.errors import ServiceError
from wirebroker.delivery.service.received_headers import headers_of
from wirebroker.delivery.service.write_rights import WriteRights

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from confluent_kafka import Message

    from wirebroker.base.clock import Clock
    from wirebroker.delivery.letters.letter import LetterFilter

_WAIT_S: Final = 30.0
_BATCH_RECORDS: Final = 500
_READ_RECORDS: Final = 500


@dataclass(frozen=True, slots=True)
class RedriveRequest:
    """What to redrive.

    Attributes:
        topic: The dead-letter topic.
        target: The topic to send to; None for the topic that the dead letter names.
        wanted: Which dead letters.
        most: The most records; None for all.
        per_second: The most records in a second; None for no limit.
    """

    topic: str
    target: str | None
    wanted: LetterFilter
    most: int | None
    per_second: int | None


@dataclass(slots=True)
class RedriveResult:
    """The result of a redrive.

    Attributes:
        sent: Records by target topic.
        empty: Dead letters without the record: it was not copied.
        without_target: Dead letters that do not name a topic to send to. Internal topics do not
            count: a redrive has the rights of an operator.
        unreadable: Dead letters with a header name that is not UTF-8.
    """

    sent: dict[str, int] = field(default_factory=dict[str, int])
    empty: int = 0
    without_target: int = 0
    unreadable: int = 0

    def sentences(self) -> list[str]:
        """Return what was sent, and what was not and why."""
        skipped = (
            (self.empty, "without the record, which was not copied"),
            (
                self.without_target,
                "without the name of a topic, or with an internal one: name a target (--to)",
            ),
            (self.unreadable, "with a header name that is not UTF-8"),
        )
        sent = [f"{name}: {counted(count, 'record')} sent" for name, count in self.sent.items()]
        return [
            *sent,
            *(f"{counted(count, 'dead letter')} {why}" for count, why in skipped if count),
        ]


class Redrive:
    """One redrive of a topic.

    Attributes:
        result: The progress so far.
    """

    def __init__(
        self,
        request: RedriveRequest,
        kafka: Mapping[str, str],
        clock: Clock,
        wait: Callable[[float], object],
    ) -> None:
        """Store the arguments.

        `wait` pauses for seconds, for the rate limit. It is called after each batch and before
        each round of reading, and may raise to stop.
        """
        self.result = RedriveResult()
        self._request = request
        self._kafka: dict[str, Any] = {"log_level": 4, **kafka}
        self._clock = clock
        self._wait = wait
        self._group = redrive_group(request.topic)
        self._failures: list[KafkaError] = []
        self._progress: dict[int, RedriveProgress] = {}
        # Targets that are known to exist.
        self._targets: set[str] = set()
        # The ends of the partitions when it began.
        self._ends: dict[int, int] = {}

    def run(self) -> RedriveResult:
        """Redrive; an interrupted one is continued by the next.

        Raises:
            ServiceError: It cannot go on, or the cluster refuses it.
        """
        try:
            return self._run()
        except KafkaException as error:
            raise ServiceError(str(error)) from error

    def _run(self) -> RedriveResult:
        result = self.result
        rights = WriteRights(AdminClient(self._kafka), self._clock)
        producer = Producer(
            {**self._kafka, "transactional.id": self._group, "partitioner": "murmur2_random"}
        )
        # Before the progress is read: no other redrive changes it from here on.
        producer.init_transactions(_WAIT_S)
        consumer = Consumer(
            {
                **self._kafka,
                "group.id": self._group,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
            }
        )
        try:
            if self._request.target is not None:
                _check_rights(rights, {self._request.target})
                self._check_targets(consumer, {self._request.target})
            for batch in self._batches(consumer, result):
                began = self._clock.monotonic()
                targets = {target for _, target in batch}
                _check_rights(rights, targets)
                self._check_targets(consumer, targets)
                self._send(producer, consumer, batch)
                for _, target in batch:
                    result.sent[target] = result.sent.get(target, 0) + 1
                passed = self._clock.monotonic() - began
                rate = self._request.per_second
                self._wait(0 if rate is None else max(len(batch) / rate - passed, 0))
        finally:
            consumer.close()
        return result

    def _check_targets(self, consumer: Consumer, targets: set[str]) -> None:
        if not targets <= self._targets:
            # List all topics: a request for one topic might create it.
            existing = consumer.list_topics(timeout=_WAIT_S).topics
            problem = redrive_problem(self._request.topic, targets, existing)
            if problem is not None:
                raise ServiceError(problem)
            self._targets |= targets

    def _batches(
        self, consumer: Consumer, result: RedriveResult
    ) -> Iterator[list[tuple[LetterRecord, str]]]:
        size = min(_BATCH_RECORDS, self._request.per_second or _BATCH_RECORDS)
        batch: list[tuple[LetterRecord, str]] = []
        for count, selected in enumerate(self._selected(consumer, result), 1):
            batch.append(selected)
            is_last = count == self._request.most
            if len(batch) == size or is_last:
                yield batch
                batch = []
            if is_last:
                return
        if batch:
            yield batch

    def _selected(
        self, consumer: Consumer, result: RedriveResult
    ) -> Iterator[tuple[LetterRecord, str]]:
        """Yield the letters to redrive, and their targets."""
        for letter in self._letters(consumer, result):
            if self._progress[letter.partition].contains(letter.offset):
                continue
            if not self._request.wanted.matches(letter):
                continue
            target = self._request.target or letter.named_target
            if not letter.has_content:
                result.empty += 1
            elif not target:
                result.without_target += 1
            else:
                yield letter, target

    def _letters(self, consumer: Consumer, result: RedriveResult) -> Iterator[LetterRecord]:
        """Yield the committed records up to the end that each partition has at the start."""
        unfinished = self._begin(consumer)
        while unfinished:
            self._wait(0)
            for message in consumer.consume(_READ_RECORDS, 1.0):
                error = message.error()
                if error is None:
                    number, offset = _place(message)
                    if offset + 1 >= self._ends[number]:
                        unfinished.discard(number)
                    if offset >= self._ends[number]:
                        continue
                    letter = _letter(message)
                    if letter is None:
                        result.unreadable += 1
                    else:
                        yield letter
                elif error.code() == KafkaError._PARTITION_EOF:
                    unfinished.discard(message.partition())
                elif error.fatal() or not error.retriable():
                    raise KafkaException(error)

    def _begin(self, consumer: Consumer) -> set[int]:
        topic = self._request.topic
        metadata = consumer.list_topics(topic, timeout=_WAIT_S).topics[topic]
        if not metadata.partitions:
            raise ServiceError(f"there is no topic {topic}")
        places = [TopicPartition(topic, number) for number in metadata.partitions]
        for place in consumer.committed(places, timeout=_WAIT_S):
            if place.error is not None:
                raise KafkaException(place.error)
            start, end = consumer.get_watermark_offsets(place, timeout=_WAIT_S)
            try:
                progress = RedriveProgress.within(place.offset, place.metadata or "", start, end)
            except ValueError as error:
                raise ServiceError(f"the offset of group {self._group}: {error}") from None
            self._progress[place.partition] = progress
            self._ends[place.partition] = end
        consumer.assign(
            [
                TopicPartition(topic, number, progress.offset)
                for number, progress in self._progress.items()
            ]
        )
        return set(self._progress)

    def _send(
        self, producer: Producer, consumer: Consumer, batch: list[tuple[LetterRecord, str]]
    ) -> None:
        """Send a batch and the progress in a transaction."""
        self._failures.clear()
        producer.begin_transaction()
        for letter, target in batch:
            self._produce(producer, letter, target)
            self._progress[letter.partition].add(letter.offset)
        producer.flush()
        if self._failures:
            with contextlib.suppress(KafkaException):  # the next redrive aborts it
                producer.abort_transaction(_WAIT_S)
            raise ServiceError(f"a record was refused: {self._failures[0].str()}")
        producer.send_offsets_to_transaction(
            self._offsets({letter.partition for letter, _ in batch}),
            consumer.consumer_group_metadata(),
            _WAIT_S,
        )
        producer.commit_transaction(_WAIT_S)

    def _produce(self, producer: Producer, letter: LetterRecord, target: str) -> None:
        headers: Any = list(redriven_headers(letter.headers, letter.value))
        while True:
            try:
                producer.produce(
                    target, letter.value, letter.key, headers=headers, on_delivery=self._note
                )
            except BufferError:
                producer.poll(0.1)
            else:
                return

    def _note(self, error: KafkaError | None, _message: Any) -> None:
        if error is not None:
            self._failures.append(error)

    def _offsets(self, numbers: set[int]) -> list[TopicPartition]:
        offsets: list[TopicPartition] = []
        for number in sorted(numbers):
            progress = self._progress[number]
            metadata = progress.metadata
            # confluent-kafka appends a zero byte.
            if len(metadata) >= MOST_METADATA_BYTES:
                raise ServiceError(
                    "the redriven records are in too many separate ranges to be noted: redrive "
                    f"the others before offset {progress.offset} of partition {number}, or delete "
                    "them (dlq purge)"
                )
            offsets.append(TopicPartition(self._request.topic, number, progress.offset, metadata))
        return offsets


def _check_rights(rights: WriteRights, targets: set[str]) -> None:
    denied = rights.denied(targets)
    if denied:
        raise ServiceError(
            f"the login has no right to write to {', '.join(denied)}: grant it, or choose another"
            " target (--to)"
        )


def _place(message: Message) -> tuple[int, int]:
    number, offset = message.partition(), message.offset()
    assert number is not None
    assert offset is not None
    return number, offset


def _letter(message: Message) -> LetterRecord | None:
    """Return a dead letter; None if its headers cannot be read."""
    number, offset = _place(message)
    headers = headers_of(message)
    if headers is None:
        return None
    return LetterRecord(
        number,
        offset,
        message.timestamp()[1],
        message.key(),
        message.value(),
        headers,
    )
