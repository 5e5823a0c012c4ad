"""Streams over log directories: offsets are the connector's, {"topic": {"0": 23}}.

A partition that comes up later is read from its beginning; one that goes away is data loss. A
checkpoint holds all that a stream knows, and availableNow ends at what is there when it begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from wirebroker.segments.errors import DataLossError
from wirebroker.segments.log_directories import LogDirectories
from wirebroker.segments.loss_report import LostRange, note_loss
from wirebroker.segments.offset_ranges import RowRange, limited, split, start_offset
from wirebroker.segments.range_rows import RangePartition, arrow_batches, scan_wish
from wirebroker.segments.trigger_limits import TriggerGate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.streaming.datasource import ReadLimit
    from pyspark.sql.types import StructType

    from wirebroker.segments.options import SegmentOptions
    from wirebroker.storage.checkpoints import TopicPartition

# As JSON: topic -> partition in digits -> offset.
StreamOffset: TypeAlias = "dict[str, dict[str, int]]"


class SegmentStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a stream in micro-batches."""

    # Names in Spark's way are Spark's.

    def __init__(self, options: SegmentOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._directories: LogDirectories | None = None
        self._target: dict[TopicPartition, int] | None = None
        self._gate: TriggerGate | None = None

    def initialOffset(self) -> StreamOffset:  # noqa: N802
        """Return where a new query begins."""
        found: dict[TopicPartition, int] = {}
        directories = self._opened()
        for key, place in directories.find(self._options.wants).items():
            log = place.log()
            end = directories.end_offset(key, place, log, is_committed=self._options.is_committed)
            found[key] = start_offset(self._options, key, log, end)
        return _to_json(found)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return what the options limit; where they do, latestOffset goes by them alone."""
        most, fewest = self._options.max_offsets_per_trigger, self._options.min_offsets_per_trigger
        # Spark's Python takes one limit, not two.
        if most is not None:
            return ReadMaxRows(most)
        return ReadAllAvailable() if fewest is None else ReadMinRows(fewest)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Note the ends that there are now, beyond which this query won't go."""
        self._target = self._ends()

    def latestOffset(self, start: StreamOffset, limit: ReadLimit) -> StreamOffset:  # noqa: N802
        """Return where the next micro-batch ends.

        Raises:
            DataLossError: A partition has gone, or ends before it was read up to.
            KafkaError, OSError: A log cannot be read.
        """
        starts = _from_json(start)
        ends = self._ends() if self._target is None else dict(self._target)
        for key, begin in starts.items():
            if ends.get(key, -1) < begin:
                sentence = f"{key[0]}-{key[1]} was read up to {begin}, which is not there now"
                self._tell_loss(sentence, LostRange(*key, begin, begin))
                ends[key] = begin
        if isinstance(limit, ReadAllAvailable):
            return _to_json(ends)
        starts = {key: self._begin(key, starts) for key in ends}
        if not self._trigger_gate().opens(starts, ends):
            return start
        most = self._options.max_offsets_per_trigger
        return _to_json(ends if most is None else limited(starts, ends, most))

    def reportLatestOffset(self) -> StreamOffset | None:  # noqa: N802
        """Return the ends that there are now, for the query's progress."""
        return _to_json(self._ends())

    def partitions(self, start: StreamOffset, end: StreamOffset) -> list[InputPartition]:
        """Return a partition for each task of a micro-batch."""
        starts = _from_json(start)
        places = self._opened().find(self._options.wants)
        ranges: list[RowRange] = []
        for key, last in _from_json(end).items():
            first = self._begin(key, starts)
            if first >= last:
                continue
            if key not in places:
                lost = LostRange(*key, first, last)
                self._tell_loss(f"{key[0]}-{key[1]} is gone", lost)
                continue
            ranges.append(RowRange(*key, places[key], first, last))
        return [RangePartition(each) for each in split(ranges, self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one partition, in a worker."""
        return arrow_batches(partition, scan_wish(self._options, self._schema), self._schema)

    def _trigger_gate(self) -> TriggerGate:
        if self._gate is None:
            # Workers load this module, and have no use for a clock, which loads asyncio: 35 ms.
            from wirebroker.clock import SystemClock

            fewest = self._options.min_offsets_per_trigger
            delay_ms = self._options.max_trigger_delay_ms
            self._gate = TriggerGate(fewest, delay_ms, SystemClock())
        return self._gate

    def _opened(self) -> LogDirectories:
        if self._directories is None:
            self._directories = LogDirectories(self._options.directories)
        return self._directories

    def _ends(self) -> dict[TopicPartition, int]:
        directories = self._opened()
        is_committed = self._options.is_committed
        return {
            key: directories.end_offset(key, place, place.log(), is_committed=is_committed)
            for key, place in directories.find(self._options.wants).items()
        }

    def _begin(self, key: TopicPartition, starts: Mapping[TopicPartition, int]) -> int:
        """Return where a partition is read from; a new one from its first offset."""
        if key in starts:
            return starts[key]
        place = self._opened().find(self._options.wants).get(key)
        return 0 if place is None else place.log().start_offset

    def _tell_loss(self, sentence: str, lost: LostRange) -> None:
        if self._options.fail_on_data_loss:
            raise DataLossError(f"{sentence}; failOnDataLoss=false passes over that")
        note_loss(self._options.loss_report, lost)


def _to_json(offsets: Mapping[TopicPartition, int]) -> StreamOffset:
    found: StreamOffset = {}
    for (topic, partition), offset in sorted(offsets.items()):
        found.setdefault(topic, {})[str(partition)] = offset
    return found


def _from_json(offsets: StreamOffset) -> dict[TopicPartition, int]:
    return {
        (topic, int(partition)): offset
        for topic, partitions in offsets.items()
        for partition, offset in partitions.items()
    }
