"""The data source's interface to Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader

from wirebroker.segments.log_directories import LogDirectories
from wirebroker.segments.offset_ranges import batch_ranges, split
from wirebroker.segments.options import parse_columns, parse_options
from wirebroker.segments.pushed_filters import PushedFilters, pushed
from wirebroker.segments.range_rows import RangePartition, arrow_batches, scan_settings
from wirebroker.segments.row_schema import column_names, schema_text
from wirebroker.segments.stream import SegmentStreamReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql.datasource import Filter, InputPartition
    from pyspark.sql.types import StructType

    from wirebroker.segments.options import SegmentOptions


class SegmentDataSource(DataSource):
    """A data source over log directories (options and columns: spark_it/README.md)."""

    @classmethod
    def name(cls) -> str:
        return "wirebroker-segments"

    def schema(self) -> str:
        columns, includes_headers = parse_columns(self.options)
        return schema_text(column_names(columns, includes_headers=includes_headers))

    def reader(self, schema: StructType) -> SegmentBatchReader:
        options = parse_options(self.options, is_stream=False)
        kind = FilteringBatchReader if options.pushes_filters else SegmentBatchReader
        return kind(options, schema)

    def streamReader(self, schema: StructType) -> SegmentStreamReader:  # noqa: N802 - Spark's name
        return SegmentStreamReader(parse_options(self.options, is_stream=True), schema)


class SegmentBatchReader(DataSourceReader):
    """Reader of a batch: the records that exist when Spark asks for partitions."""

    def __init__(self, options: SegmentOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._filters = PushedFilters()

    def partitions(self) -> list[InputPartition]:
        """Return a partition for each task.

        Raises:
            OptionError: The options do not match the directories.
            DataLossError, KafkaError, OSError: A log cannot be read.
        """
        directories = LogDirectories(self._options.directories)
        ranges = self._filters.narrowed(batch_ranges(directories, self._options))
        return [RangePartition(piece) for piece in split(ranges, self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        settings = scan_settings(self._options, self._schema, earliest=self._filters.earliest)
        return arrow_batches(partition, settings, self._schema)


class FilteringBatchReader(SegmentBatchReader):
    """A reader with filters; Spark rejects it unless filter pushdown is enabled."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Store filters, all of which Spark applies again."""
        self._filters = pushed(filters)
        return filters
