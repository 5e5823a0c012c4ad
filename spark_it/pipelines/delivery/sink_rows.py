"""Conversion of rows with the columns of Spark's Kafka sink to placed rows.

    value                   binary or text
    key                     likewise; chooses the partition as in Java's producer
    partition               int, instead of the key
    headers                 array of (key string, value binary)
    timestamp               timestamp, or milliseconds since 1970; null: now

Without key and partition the value chooses the partition, so that a repeated batch uses the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark import TaskContext
from pyspark.sql import functions

from wirebroker.pipelines.job.errors import JobFileError, PipelineError
from wirebroker.pipelines.job.job_file import like
from wirebroker.pipelines.rows.placed_batches import PlacingTask
from wirebroker.pipelines.rows.placed_rows import COLUMNS, PlacedRow, partition_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from wirebroker.pipelines.job.job_folder import BatchPlan

_BYTES: Final = ("binary", "string")
# Column -> its accepted Spark types, and the type that it is cast to.
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
    """Placer for the rows of one task, in order."""

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
