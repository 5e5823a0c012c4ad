"""Exactly-once delivery for queries other than the jobs' (guide: spark_it/README.md)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from confluent_kafka import KafkaException
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import functions

from wirebroker.pipelines.delivery.delivery import Delivery, Target, folder_of, make_topics
from wirebroker.pipelines.delivery.rights import refusal_of
from wirebroker.pipelines.job.errors import JobFileError, PipelineError
from wirebroker.pipelines.job.job_file import kafka_settings, like
from wirebroker.pipelines.job.job_folder import JobFolder
from wirebroker.pipelines.rows.placed_batches import PlacingTask
from wirebroker.pipelines.rows.placed_rows import COLUMNS, PlacedRow, partition_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from wirebroker.pipelines.job.job_folder import BatchPlan


class BatchSent(NamedTuple):
    """The result of sending a batch.

    `sent_bytes` are those of keys and values. `slices_sent_before` is the number of slices (one for
    each partition) that an earlier attempt sent.
    """

    records: int
    sent_bytes: int
    slices_sent_before: int


class ExactlyOnce:
    """Sender of a query's batches; created by `exactly_once`.

    `checkpoint` is for the query's option `checkpointLocation`.
    """

    def __init__(self, target: Target, folder: JobFolder) -> None:
        self.checkpoint = folder.spark
        self._target = target
        self._delivery = Delivery(target, folder)

    def __call__(self, table: DataFrame, batch: int) -> BatchSent:
        """Send the part of a batch that was not sent before.

        Args:
            table: The column `value`, and optionally `key`, `headers`, `partition` and
                `timestamp`. A repeated batch must have the same rows.
            batch: The number from `foreachBatch`.

        Raises:
            JobFileError: The columns are wrong.
            PositionError: The topic's positions and the checkpoint do not match.
            RightError: The login lacks a right.
            KafkaException, PySparkException: The broker or a task failed; start the query again.
        """
        check_columns(table.schema)
        try:
            plan = self._delivery.plan(batch)
            sent = self._delivery.send(placed_rows(table, self._target.topic, plan), plan)
        except (KafkaException, PySparkException) as error:
            explained = refusal_of(error, self._target, {})
            if explained is None:
                raise
            raise explained from error
        return BatchSent(
            sum(result.records for result in sent),
            sum(result.sent_bytes for result in sent),
            sum(result.was_sent for result in sent),
        )

    def close(self) -> None:
        """Disconnect until the next batch."""
        self._delivery.close()


def exactly_once(
    topic: str,
    name: str,
    *,
    kafka: Mapping[str, Any],
    checkpoint: str | Path,
    partitions: int = 1,
) -> ExactlyOnce:
    """Return a function that sends each batch of a query to a topic exactly once.

    Args:
        topic: The topic; created if missing.
        name: The query's unique name, also of the group for its positions.
        kafka: librdkafka's settings, at least `bootstrap.servers`.
        checkpoint: A folder for this query only, kept between runs.
        partitions: Used if the topic is created.

    Raises:
        JobFileError: A setting is wrong.
        PositionError: The folder belongs to another query.
        RightError: The login lacks a right.
        PipelineError: The broker refuses or cannot be reached.
    """
    for parameter, text in (("topic", topic), ("name", name)):
        if not isinstance(text, str) or not text:
            raise JobFileError(f"exactly_once: {parameter} = {text!r} is not a name")
    settings = kafka_settings(Path("exactly_once"), dict(kafka))
    target = Target(settings, name, topic, "", partitions)
    folder = folder_of(str(checkpoint))
    make_topics(target)
    return ExactlyOnce(target, JobFolder(folder, name, topic))


# Columns and rows of a batch

_BYTES: Final = ("binary", "string")
# Column -> its Spark types, and the type that it is cast to.
_TYPES: Final = {
    "key": (_BYTES, "binary"),
    "value": (_BYTES, "binary"),
    "partition": (("int",), "int"),
    "headers": (("array<struct<key:string,value:binary>>",), ""),
    "timestamp": (("timestamp", "timestamp_ntz", "bigint"), "bigint"),
}


def check_columns(schema: StructType) -> None:
    """Raise JobFileError unless a table has a value, and only these columns and types."""
    types = {field.name: field.dataType.simpleString() for field in schema}
    for name, type_name in types.items():
        if name not in _TYPES:
            raise JobFileError(
                f"column {name} is not one of {', '.join(_TYPES)}{like(name, _TYPES)}; a row's "
                "columns go into one value, such as to_json(struct(*)) AS value"
            )
        if type_name not in _TYPES[name][0]:
            raise JobFileError(f"column {name} is {type_name}, not {' or '.join(_TYPES[name][0])}")
    if "value" not in types:
        raise JobFileError("column value is missing")


def placed_rows(table: DataFrame, topic: str, plan: BatchPlan) -> DataFrame:
    """Return the placed rows of a table with checked columns."""
    types = {field.name: field.dataType.simpleString() for field in table.schema}
    columns = [_column(name, types.get(name)).alias(name) for name in _TYPES]
    return table.select(*columns).mapInArrow(PlacingTask(_SinkPlacer(topic, plan).rows), COLUMNS)


def _column(name: str, type_name: str | None) -> functions.Column:
    cast_type = _TYPES[name][1]
    if type_name is None:
        return functions.lit(None).cast(cast_type or _TYPES[name][0][0])
    if name == "timestamp" and type_name != cast_type:
        return functions.unix_millis(functions.col(name).cast("timestamp"))
    return functions.col(name).cast(cast_type) if cast_type else functions.col(name)


class _SinkPlacer:
    def __init__(self, topic: str, plan: BatchPlan) -> None:
        self._topic = topic
        self._count = plan.partitions
        self._line = 0

    def rows(self, batch: pyarrow.RecordBatch) -> Iterator[PlacedRow]:
        """Return placed rows; raise PipelineError if the topic lacks a row's partition."""
        context = TaskContext.get()
        assert context is not None
        source = f"{context.partitionId():08d}"
        columns = [batch.column(name).to_pylist() for name in _TYPES]
        for key, value, requested_partition, headers, timestamp in zip(*columns, strict=True):
            partition = (
                partition_of(key, value, "", self._count)
                if requested_partition is None
                else requested_partition
            )
            if not 0 <= partition < self._count:
                raise PipelineError(
                    f"there is no partition {partition}: {self._topic} has {self._count}"
                )
            self._line += 1
            yield PlacedRow(
                *(partition, source, 0, self._line, self._topic, partition),
                *(key, value, timestamp, headers or []),
            )
