"""The way back into a running broker: an archive's records, produced again.

A broker counts offsets itself, from 0 and without gaps. So records keep theirs only where a
partition's archive is so; where it isn't (compaction, markers of transactions, retention before the
first run), nothing is begun, unless a mapping is asked for: a file of JSON lines, each a run of
records that follow each other in both, by which consumers' offsets can be translated.

    {"topic": "orders", "partition": 0, "from": 300, "to": 0, "records": 51}

Timestamps, keys, values and headers are kept. The topics must be empty, or are made: with
`retention.ms=-1`, since their records are old. A run that was broken off leaves topics that are not
empty: delete them, and begin again.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from confluent_kafka import TIMESTAMP_CREATE_TIME, KafkaException, Producer
from confluent_kafka.admin import NewTopic
from pyspark.sql import functions

from wirebroker.pipelines.archive.archive import archived
from wirebroker.pipelines.archive.archived_topics import of_chosen_ids
from wirebroker.pipelines.archive.restore import COLUMNS, record_of
from wirebroker.pipelines.delivery.delivery import create_topics
from wirebroker.pipelines.delivery.positions import Positions
from wirebroker.pipelines.delivery.rights import check_writes
from wirebroker.pipelines.job.errors import PipelineError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from wirebroker.codecs.records.record import Record

_PLACE: Final = ("topic", "partition")
_POLLED_EVERY: Final = 1_000
# The broker's own bound is the one that holds.
_MOST_BYTES: Final = 100_000_000


class OffsetRun(NamedTuple):
    """Records that follow each other in the archive and in the broker."""

    old_offset: int
    new_offset: int
    records: int


class ArchivedSpan(NamedTuple):
    """What an archive has of a partition.

    Attributes:
        topic: Its topic.
        partition: Its number.
        records: How many.
        first_offset: Of the first.
        last_offset: Of the last.
        first_timestamp: The earliest, ms since 1970.
    """

    topic: str
    partition: int
    records: int
    first_offset: int
    last_offset: int
    first_timestamp: int


def restore_to_broker(
    spark: SparkSession,
    target: Path,
    kafka: dict[str, str],
    mapping: Path | None = None,
    topic_ids: Collection[str] = (),
) -> Iterator[tuple[str, int]]:
    """Produce each partition of an archive; yield its name and how many records it has.

    Args:
        spark: The session.
        target: The archive.
        kafka: Settings of clients.
        mapping: A file for old and new offsets; None: they must be the same.
        topic_ids: Of topics that were recreated: which ids to restore.

    Raises:
        RecreatedTopicError: The archive has several ids of a topic, and none of them is chosen.
        PipelineError: Records would not be what they were, the broker refuses, or the mapping
            cannot be written. One that was written before stays, if nothing is begun.
    """
    table = of_chosen_ids(archived(spark, target), topic_ids)
    found = table.groupBy(*_PLACE).agg(
        functions.count("*"),
        functions.min("offset"),
        functions.max("offset"),
        functions.min(functions.unix_millis("timestamp")),
    )
    spans = [ArchivedSpan(*row) for row in found.orderBy(*_PLACE).collect()]
    check_spans(spans, may_map=mapping is not None)
    if mapping is not None:
        _check_writable(mapping)
    try:
        _prepare_topics(kafka, spans)
        yield from _send(table, kafka, spans, mapping)
    except KafkaException as error:
        raise PipelineError(f"{kafka['bootstrap.servers']}: {error.args[0].str()}") from error


def _send(
    table: DataFrame, kafka: dict[str, str], spans: Iterable[ArchivedSpan], mapping: Path | None
) -> Iterator[tuple[str, int]]:
    lines: list[str] = []
    try:
        for span in spans:
            rows = table.where((table.topic == span.topic) & (table.partition == span.partition))
            ordered = rows.orderBy("offset").selectExpr(*COLUMNS).toLocalIterator()
            sender = _Sender(kafka, span)
            sender.send(record_of(row) for row in ordered)
            lines += (_line(span, run) for run in sender.runs)
            yield f"{span.topic}-{span.partition}", span.records
    finally:
        # Also of what was done before a fault.
        if mapping is not None:
            mapping.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _line(span: ArchivedSpan, run: OffsetRun) -> str:
    offsets = {"from": run.old_offset, "to": run.new_offset, "records": run.records}
    return json.dumps({"topic": span.topic, "partition": span.partition, **offsets})


def check_spans(spans: Iterable[ArchivedSpan], *, may_map: bool) -> None:
    """See that records can be what they were.

    Raises:
        PipelineError: They cannot.
    """
    for span in spans:
        place = f"{span.topic}-{span.partition}"
        # -1 is none, and Kafka's clients take 0 for now.
        if span.first_timestamp <= 0:
            raise PipelineError(f"{place} has records without a time, which cannot be kept so")
        if not may_map and (span.first_offset or span.last_offset + 1 != span.records):
            raise PipelineError(
                f"{place} has {span.records} records at offsets {span.first_offset} to "
                f"{span.last_offset}: a broker would count them from 0, without gaps. --map FILE "
                "has it do so, and writes which is which; --into FOLDER keeps them"
            )


def _check_writable(mapping: Path) -> None:
    """Find mistakes before anything is begun; what the file has is left in it until then."""
    try:
        mapping.open("a", encoding="utf-8").close()
    except OSError as error:
        raise PipelineError(f"--map {mapping}: {error.strerror}") from error


def _prepare_topics(kafka: dict[str, str], spans: Iterable[ArchivedSpan]) -> None:
    """See that all may be written, and those that are there are empty; make the others."""
    wanted: dict[str, int] = {}
    for span in spans:
        wanted[span.topic] = max(wanted.get(span.topic, 0), span.partition + 1)
    check_writes(kafka, wanted)
    missing: list[NewTopic] = []
    for topic, count in wanted.items():
        with Positions(kafka, "none", topic, "") as positions:
            there = positions.partition_count(topic)
            if not there:
                missing.append(NewTopic(topic, count, config={"retention.ms": "-1"}))
            elif there < count:
                raise PipelineError(f"topic {topic} has {there} partitions, the archive {count}")
            elif any(positions.end_of(number) for number in range(there)):
                raise PipelineError(f"topic {topic} is not empty: its offsets would be others")
    create_topics(kafka, missing, may_be_there=False)


class _Sender:
    """Produces one partition's records.

    Attributes:
        runs: What of the mapping they are.
    """

    def __init__(self, kafka: dict[str, str], span: ArchivedSpan) -> None:
        self._span = span
        ours = {"enable.idempotence": True, "linger.ms": 20, "message.max.bytes": _MOST_BYTES}
        self._producer = Producer({**ours, **kafka})
        self._acknowledged = 0
        self._fault: Exception | None = None
        self.runs: list[OffsetRun] = []

    def send(self, records: Iterable[Record]) -> None:
        """Send them all; on return all are acknowledged, at the offsets that they should have.

        Raises:
            KafkaException: The broker refuses, or does not answer.
            PipelineError: Somebody else writes to the topic, or it gives times of its own.
        """
        for number, record in enumerate(records):
            self._note(record.offset, number)
            self._produce(record)
            if not number % _POLLED_EVERY:
                self._producer.poll(0)
        # What is not acknowledged in time has failed by then (message.timeout.ms).
        self._producer.flush()
        if self._fault is not None:
            raise self._fault

    def _note(self, offset: int, number: int) -> None:
        last = self.runs[-1] if self.runs else None
        if last is not None and offset == last.old_offset + last.records:
            self.runs[-1] = last._replace(records=last.records + 1)
        else:
            self.runs.append(OffsetRun(offset, number, 1))

    def _produce(self, record: Record) -> None:
        while self._fault is None:
            try:
                self._producer.produce(
                    self._span.topic,
                    record.value,
                    record.key,
                    self._span.partition,
                    headers=list(record.headers),
                    timestamp=record.timestamp,
                    on_delivery=self._on_delivery,
                )
            except BufferError:
                # The queue is full: wait until the broker has taken some.
                self._producer.poll(0.5)
            else:
                return
        raise self._fault

    def _on_delivery(self, error: Any, message: Any) -> None:
        if self._fault is not None:
            return
        place = f"{self._span.topic}-{self._span.partition}"
        if error is not None:
            self._fault = KafkaException(error)
        elif message.offset() != self._acknowledged:
            self._fault = PipelineError(f"somebody else writes to {place}: delete it, begin again")
        elif message.timestamp()[0] != TIMESTAMP_CREATE_TIME:
            self._fault = PipelineError(f"{place} has message.timestamp.type=LogAppendTime")
        self._acknowledged += 1
