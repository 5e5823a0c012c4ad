"""What a worker does: the rows of one range as Arrow batches, for batches and streams alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import to_arrow_schema

from wirebroker.segments.arrow_rows import record_batch
from wirebroker.segments.row_scan import ScanWish, scan_rows
from wirebroker.segments.row_schema import check_types

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from wirebroker.segments.offset_ranges import RowRange
    from wirebroker.segments.options import SegmentOptions


class RangePartition(InputPartition):
    """One range, as Spark sends it to a worker."""

    def __init__(self, piece: RowRange) -> None:
        super().__init__(piece)
        self.piece = piece


def scan_wish(
    options: SegmentOptions, schema: StructType, *, earliest: int | None = None
) -> ScanWish:
    """Return what of the rows a read wants.

    Raises:
        OptionError: The schema isn't the source's.
    """
    check_types({field.name: field.dataType.simpleString() for field in schema})
    names = schema.fieldNames()
    return ScanWish(
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
    partition: InputPartition, wish: ScanWish, schema: StructType
) -> Iterator[pa.RecordBatch]:
    """Read a partition's rows; raises as row_scan.scan_rows.

    Args:
        partition: A RangePartition; Spark makes an empty one where there is nothing to read.
        wish: What of the rows is wanted.
        schema: The columns.

    Raises:
        RecreatedTopicError: The folder belongs to another topic of the same name meanwhile.
    """
    if not isinstance(partition, RangePartition):
        return
    arrow_schema = to_arrow_schema(schema, timezone="UTC")
    piece = partition.piece
    piece.place.check_topic_id(piece.topic)
    for rows in scan_rows(piece, wish):
        yield record_batch(rows, piece, arrow_schema)
    piece.place.check_topic_id(piece.topic)
