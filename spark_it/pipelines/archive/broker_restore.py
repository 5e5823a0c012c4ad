"""Restore of an archive into a running broker, by producing its records.

The mapping file translates consumers' offsets. It has a JSON line for each run of consecutive
records:

    {"topic": "orders", "partition": 0, "from": 300, "to": 0, "records": 51}
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
# High, so that only the broker's limit applies.
_MOST_BYTES: Final = 100_000_000


class OffsetRun(NamedTuple):
    """Records with consecutive offsets in both archive and broker."""

    old_offset: int
    new_offset: int
    records: int


class ArchivedSpan(NamedTuple):
    """A partition's records in an archive; `first_timestamp` is the earliest (ms since 1970)."""

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
    """Produce each partition of an archive; yield its name and number of records.

    Raises:
        RecreatedTopicError: As `of_chosen_ids`.
        PipelineError: Records would change, the broker refuses, or the mapping cannot be written.
            Before the first record, an existing mapping stays.
    """
    table = of_chosen_ids(archived(spark, target), topic_ids)
    aggregated = table.groupBy(*_PLACE).agg(
        functions.count("*"),
        functions.min("offset"),
        functions.max("offset"),
        functions.min(functions.unix_millis("timestamp")),
    )
    spans = [ArchivedSpan(*row) for row in aggregated.orderBy(*_PLACE).collect()]
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
        # Also after a fault, for the restored partitions.
        if mapping is not None:
            mapping.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _line(span: ArchivedSpan, run: OffsetRun) -> str:
    offsets = {"from": run.old_offset, "to": run.new_offset, "records": run.records}
    return json.dumps({"topic": span.topic, "partition": span.partition, **offsets})


def check_spans(spans: Iterable[ArchivedSpan], *, may_map: bool) -> None:
    """Raise PipelineError if records cannot be restored unchanged."""
    for span in spans:
        partition = f"{span.topic}-{span.partition}"
        # -1 means no timestamp, and librdkafka replaces 0 with the current time.
        if span.first_timestamp <= 0:
            raise PipelineError(
                f"{partition} has records without a timestamp: they would get the current time"
            )
        if not may_map and (span.first_offset or span.last_offset + 1 != span.records):
            raise PipelineError(
                f"{partition} has {span.records} records at offsets {span.first_offset} to "
                f"{span.last_offset}: a broker would number them from 0, without gaps. --map FILE "
                "allows this and writes the new offsets; --into FOLDER keeps the old ones"
            )


def _check_writable(mapping: Path) -> None:
    """Check that the mapping can be written, without changing it."""
    try:
        mapping.open("a", encoding="utf-8").close()
    except OSError as error:
        raise PipelineError(f"--map {mapping}: {error.strerror}") from error


def _prepare_topics(kafka: dict[str, str], spans: Iterable[ArchivedSpan]) -> None:
    partition_counts: dict[str, int] = {}
    for span in spans:
        partition_counts[span.topic] = max(partition_counts.get(span.topic, 0), span.partition + 1)
    check_writes(kafka, partition_counts)
    missing: list[NewTopic] = []
    for topic, count in partition_counts.items():
        with Positions(kafka, "none", topic, "") as positions:
            existing_count = positions.partition_count(topic)
            if not existing_count:
                missing.append(NewTopic(topic, count, config={"retention.ms": "-1"}))
            elif existing_count < count:
                raise PipelineError(
                    f"topic {topic} has {existing_count} partitions, the archive {count}"
                )
            elif any(positions.end_of(number) for number in range(existing_count)):
                raise PipelineError(f"topic {topic} is not empty: records would get other offsets")
    create_topics(kafka, missing, may_be_there=False)


class _Sender:
    """Producer of one partition's records; `runs` is its part of the mapping."""

    def __init__(self, kafka: dict[str, str], span: ArchivedSpan) -> None:
        self._span = span
        defaults = {"enable.idempotence": True, "linger.ms": 20, "message.max.bytes": _MOST_BYTES}
        self._producer = Producer({**defaults, **kafka})
        self._acknowledged = 0
        self._fault: Exception | None = None
        self.runs: list[OffsetRun] = []

    def send(self, records: Iterable[Record]) -> None:
        """Send records; return when all are acknowledged at the expected offsets.

        Raises:
            KafkaException: The broker refuses or does not respond.
            PipelineError: Another producer writes to the topic, or the topic sets timestamps.
        """
        for number, record in enumerate(records):
            self._note(record.offset, number)
            self._produce(record)
            if not number % _POLLED_EVERY:
                self._producer.poll(0)
        # Unacknowledged records fail after message.timeout.ms.
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
                # The queue is full.
                self._producer.poll(0.5)
            else:
                return
        raise self._fault

    def _on_delivery(self, error: Any, message: Any) -> None:
        if self._fault is not None:
            return
        partition = f"{self._span.topic}-{self._span.partition}"
        if error is not None:
            self._fault = KafkaException(error)
        elif message.offset() != self._acknowledged:
            self._fault = PipelineError(
                f"another producer writes to {partition}: delete it, restart"
            )
        elif message.timestamp()[0] != TIMESTAMP_CREATE_TIME:
            self._fault = PipelineError(f"{partition} has message.timestamp.type=LogAppendTime")
        self._acknowledged += 1
