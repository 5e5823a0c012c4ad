"""A worker's task: the rows of one range as Arrow batches."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import to_arrow_schema

from wirebroker.segments.row_scan import ScanOptions, scan_rows
from wirebroker.segments.row_schema import check_types

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql.types import StructType

    from wirebroker.codecs.records.batch import BatchHeader
    from wirebroker.codecs.records.columns import BytesColumn, Column, HeadersColumn
    from wirebroker.segments.offset_ranges import RowRange
    from wirebroker.segments.options import SegmentOptions
    from wirebroker.segments.row_scan import ScannedRows


class RangePartition(InputPartition):
    """A range that Spark sends to a worker."""

    def __init__(self, piece: RowRange) -> None:
        super().__init__(piece)
        self.piece = piece


def scan_settings(
    options: SegmentOptions, schema: StructType, *, earliest: int | None = None
) -> ScanOptions:
    """Return what a read needs; raise OptionError for another source's schema."""
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


# Conversion of rows to Arrow, without copies of keys, values and headers

_INT64: Final = Struct("=q")
_INT32: Final = Struct("=i")
_INT8: Final = Struct("=b")

_MILLISECONDS: Final = pa.timestamp("ms", "UTC")

# timestampType is 0 for CreateTime, 1 for LogAppendTime, as in the connector.
_BATCH_COLUMNS: Final[dict[str, tuple[Struct, pa.DataType, Callable[[BatchHeader], int]]]] = {
    "timestampType": (_INT32, pa.int32(), lambda header: header.uses_log_append_time),
    "producerId": (_INT64, pa.int64(), lambda header: header.producer_id),
    "producerEpoch": (_INT32, pa.int32(), lambda header: header.producer_epoch),
    "leaderEpoch": (_INT32, pa.int32(), lambda header: header.leader_epoch),
    "transactional": (_INT8, pa.int8(), lambda header: header.is_transactional),
    "control": (_INT8, pa.int8(), lambda header: header.is_control),
}


def record_batch(rows: ScannedRows, piece: RowRange, schema: pa.Schema) -> pa.RecordBatch:
    """Return scanned rows as an Arrow batch with the columns of a schema.

    Raises:
        pa.ArrowInvalid: A timestamp in microseconds exceeds 64 bits.
    """
    arrays = [_column(field, rows, piece) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _column(field: pa.Field, rows: ScannedRows, piece: RowRange) -> pa.Array:
    columns = rows.columns
    count = columns.row_count
    makers: dict[str, Callable[[], pa.Array]] = {
        "key": lambda: _bytes_array(columns.keys),
        "value": lambda: _bytes_array(columns.values),
        "headers": lambda: _headers_array(columns.headers, field.type),
        "topic": lambda: pa.repeat(pa.scalar(piece.topic, field.type), count),
        "topicId": lambda: pa.repeat(pa.scalar(piece.place.topic_id or None, field.type), count),
        "partition": lambda: pa.repeat(pa.scalar(piece.partition, field.type), count),
        "offset": lambda: _numbers(columns.offsets, pa.int64(), count),
        "timestamp": lambda: _numbers(columns.timestamps, _MILLISECONDS, count).cast(field.type),
        "sequence": lambda: _numbers(columns.sequences, pa.int32(), count),
    }
    if field.name in makers:
        return makers[field.name]()
    return _of_batches(field.name, rows).cast(field.type)


def _numbers(data: Column, kind: pa.DataType, count: int) -> pa.Array:
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(data)])


def _of_batches(name: str, rows: ScannedRows) -> pa.Array:
    layout, kind, value_of = _BATCH_COLUMNS[name]
    data = b"".join(layout.pack(value_of(header)) * count for header, count in rows.runs)
    return _numbers(data, kind, rows.columns.row_count)


def _bytes_array(column: BytesColumn | None) -> pa.Array:
    assert column is not None, "it was scanned for"
    validity = pa.py_buffer(column.validity) if column.null_count else None
    buffers = [validity, pa.py_buffer(column.ends), pa.py_buffer(column.data)]
    return pa.Array.from_buffers(
        pa.binary(), column.row_count, buffers, null_count=column.null_count
    )


def _headers_array(column: HeadersColumn | None, kind: pa.ListType) -> pa.Array:
    assert column is not None, "it was scanned for"
    fields = [kind.value_type.field(index) for index in range(2)]
    pairs = pa.StructArray.from_arrays(
        [_names_array(column.keys), _bytes_array(column.values)], fields=fields
    )
    row_count = len(column.ends) // _INT32.size - 1
    validity = pa.py_buffer(column.validity) if column.null_count else None
    return pa.Array.from_buffers(
        kind,
        row_count,
        [validity, pa.py_buffer(column.ends)],
        null_count=column.null_count,
        children=[pairs],
    )


def _names_array(column: BytesColumn) -> pa.Array:
    """Return headers' keys as text; invalid UTF-8 becomes U+FFFD, as in Java."""
    try:
        return _bytes_array(column).cast(pa.string())
    except pa.ArrowInvalid:
        names = [name.as_py().decode("utf-8", "replace") for name in _bytes_array(column)]
        return pa.array(names, pa.string())
