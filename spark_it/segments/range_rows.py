"""A worker's task: the rows of one range as Arrow batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import to_arrow_schema

from wirebroker.segments.arrow_rows import record_batch
from wirebroker.segments.row_scan import ScanOptions, scan_rows
from wirebroker.segments.row_schema import check_types

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from wirebroker.segments.offset_ranges import RowRange
    from wirebroker.segments.options import SegmentOptions


class RangePartition(InputPartition):
    """A range that Spark sends to a worker."""

    def __init__(self, piece: RowRange) -> None:
        super().__init__(piece)
        self.piece = piece


def scan_settings(
    options: SegmentOptions, schema: StructType, *, earliest: int | None = None
) -> ScanOptions:
    """Return what a read needs of rows; raise OptionError for another source's schema."""
    check_types({field.name: field.dataType.simpleString() for field in schema})
    names = schema.fieldNames()
    return ScanOptions(
        keys="key" in names,
        values="value" in names,
        headers="headers" in names,
        includes_control=options.includes_control,
        is_committed=options.is_committed,
        fail_on_data_loss=options.fail_on_data_loss,
        loss_report=options.loss_report,
        earliest=earliest,
    )


def arrow_batches(
    partition: InputPartition, settings: ScanOptions, schema: StructType
) -> Iterator[pa.RecordBatch]:
    """Read a partition's rows; if there are none, Spark passes another kind of partition.

    Raises:
        RecreatedTopicError: The folder belongs to another topic by now.
        DataLossError, KafkaError, OSError: As `scan_rows`.
    """
    if not isinstance(partition, RangePartition):
        return
    arrow_schema = to_arrow_schema(schema, timezone="UTC")
    piece = partition.piece
    piece.place.check_topic_id(piece.topic)
    for rows in scan_rows(piece, settings):
        yield record_batch(rows, piece, arrow_schema)
    piece.place.check_topic_id(piece.topic)
