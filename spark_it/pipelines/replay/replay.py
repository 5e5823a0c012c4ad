"""The job that sends records of a time range through a function into another topic, each once.

    topic A, start <= timestamp < end ──► function(record) ──► none, one or many ──► topic B
                                              └─ it raises ──► dead letters, with the reason

The function must be deterministic, because an interrupted batch is repeated.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle

from wirebroker.pipelines.job.errors import JobFileError
from wirebroker.pipelines.job.job_file import RECREATED_TOPIC, setting
from wirebroker.pipelines.replay.record_rows import RecordOptions, RecordPlacer
from wirebroker.pipelines.replay.user_function import load_function
from wirebroker.pipelines.rows.placed_batches import PlacingTask
from wirebroker.pipelines.rows.placed_rows import COLUMNS
from wirebroker.pipelines.run.pipeline import Pipeline
from wirebroker.pipelines.source.source_table import (
    SourceOptions,
    check_source,
    milliseconds_at,
    stream_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

    from wirebroker.pipelines.delivery.delivery import Target
    from wirebroker.pipelines.replay.user_function import InputRecord

_INPUT = "key, value, headers, topic, partition, offset, unix_millis(timestamp) AS timestamp"


@dataclass(frozen=True, kw_only=True)
class ReplayJob:
    """Settings of a replay."""

    name: str = setting("text", "the name of the job and of the group with its positions")
    source: str = setting("text", "the topic to read")
    topic: str = setting("text", "the topic for the function's results; created if missing")
    checkpoint: str = setting("path", "a folder for this job only, kept between runs")
    kafka: dict[str, Any] = setting("table", "librdkafka settings, at least bootstrap.servers")
    function: str = setting("path", "FILE.py:NAME of the function; default: unchanged records", "")
    start: str = setting(
        "text", "the earliest timestamp, ISO 8601; default: from the first record", ""
    )
    end: str = setting("text", "the timestamp to stop before; default: to the end", "")
    path: str = setting("paths", "log directories to read instead of the broker", "")
    partition_by: str = setting(
        "text", "a record's partition: by its key, or as in the source", "key", ("key", "source")
    )
    on_error: str = setting(
        "text",
        "if the function raises: write a dead letter, or stop",
        "dead-letter",
        ("dead-letter", "stop"),
    )
    dead_letters: str = setting("text", "the dead letters' topic; default: TOPIC.dead-letters", "")
    partitions: int = setting("count", "partitions of the topic if it is created", 1)
    records_per_batch: int = setting("count", "the maximum offsets per batch", 1_000_000)
    every: float | None = setting(
        "seconds", "how often to look for records; default: once, to the end", None
    )
    patience: float = setting("seconds", "how long to retry before giving up", 300.0)
    recreated_topic: str = setting(*RECREATED_TOPIC)
    metrics: str | None = setting("path", "a file for a line of JSON per batch", None)
    reader: dict[str, Any] = setting("table", "more options of Spark's reader", {})
    log: str | None = setting(
        "path",
        "a file for the output of Spark and librdkafka; default: spark.log in the checkpoint",
        None,
    )
    spark: dict[str, Any] = setting("table", "settings of Spark", {})


class Replay(Pipeline[ReplayJob]):
    """A replay job."""

    @staticmethod
    def check(job: ReplayJob, target: Target) -> None:
        """Check the settings.

        Raises:
            JobFileError: A time, the function or the source is invalid.
        """
        start, end = milliseconds_at("start", job.start), milliseconds_at("end", job.end)
        if start is not None and end is not None and start >= end:
            raise JobFileError(f"start = {job.start!r} is not before end = {job.end!r}")
        if job.source in (target.topic, target.dead_letters):
            raise JobFileError(f"source = {job.source!r} is also a topic that the job writes to")
        load_function(job.function)
        check_source(Replay.source_of(job, target))

    @staticmethod
    def source_of(job: ReplayJob, target: Target) -> SourceOptions:
        bootstrap = target.kafka["bootstrap.servers"]
        return SourceOptions(bootstrap, job.path, job.reader, (job.source,))

    def start(self, handle: Callable[[DataFrame, int], None]) -> StreamingQuery:
        job = self._job
        table = stream_of(
            self._spark,
            self.source_of(job, self._target),
            job.source,
            start_ms=milliseconds_at("start", job.start),
            max_offsets=job.records_per_batch,
        ).selectExpr(*_INPUT.split(", "))
        for name, sign in (("start", ">="), ("end", "<")):
            bound_ms = milliseconds_at(name, getattr(job, name))
            # Producers set timestamps, so earlier ones may follow the first match.
            table = table if bound_ms is None else table.where(f"timestamp {sign} {bound_ms}")
        return self._stream(table, handle)

    def handle(self, table: DataFrame, batch: int) -> None:
        """Send the function's results for a batch."""
        began = self._clock.monotonic()
        plan = self._delivery.plan(batch)
        settings = RecordOptions(
            self._target.topic,
            self._target.dead_letters,
            self._target.job,
            keeps_partition=self._job.partition_by == "source",
            stops=self._job.on_error == "stop",
        )
        placer = RecordPlacer(settings, plan, self._function)
        placed = table.mapInArrow(PlacingTask(placer.rows), COLUMNS)
        self._reporter.batch(batch, self._send(placed, plan), began)

    @cached_property
    def _function(self) -> Callable[[InputRecord], Any]:
        function = load_function(self._job.function)
        # By value, because workers may not have the file.
        cloudpickle.register_pickle_by_value(sys.modules[function.__module__])
        return function
