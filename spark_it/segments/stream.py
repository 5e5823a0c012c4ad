"""Streams over log directories: offsets in the connector's form, with topic ids.

    {"orders": {"0": 23}, "#topicIds": {"orders": "p0hU_tYkT5yVbVjOhnuAjQ"}}

A new partition is read from its beginning; a removed one is data loss. A recreated topic has
another id: this is an error, or the topic is read from its beginning. A checkpoint contains all of
a stream's state; one without ids, from an earlier version, gets them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from wirebroker.segments.errors import DataLossError, recreated
from wirebroker.segments.log_directories import LogDirectories, topic_ids
from wirebroker.segments.loss_report import LostRange, note_loss
from wirebroker.segments.offset_ranges import RowRange, limited, split, start_offset
from wirebroker.segments.range_rows import RangePartition, arrow_batches, scan_wish
from wirebroker.segments.trigger_limits import TriggerGate

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.streaming.datasource import ReadLimit
    from pyspark.sql.types import StructType

    from wirebroker.segments.log_directories import PartitionPlace
    from wirebroker.segments.options import SegmentOptions
    from wirebroker.storage.checkpoints import TopicPartition

# As JSON: topic -> partition in digits -> offset; under _IDS: topic -> topic id.
StreamOffset: TypeAlias = "dict[str, dict[str, Any]]"
_IDS: Final = "#topicIds"  # not a valid topic name


class StreamMark(NamedTuple):
    """A position of a stream: the offset of each partition, and the known topic ids."""

    offsets: dict[TopicPartition, int]
    ids: dict[str, str]

    def recreated_in(self, other: StreamMark) -> set[str]:
        """Return the topics that have a different id in another mark."""
        known = self.ids.items()
        return {topic for topic, each in known if other.ids.get(topic, each) != each}


class SegmentStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reader of a stream in micro-batches."""

    def __init__(self, options: SegmentOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._directories: LogDirectories | None = None
        self._target: StreamMark | None = None
        self._gate: TriggerGate | None = None

    def initialOffset(self) -> StreamOffset:  # noqa: N802
        """Return where a new query starts."""
        found: dict[TopicPartition, int] = {}
        directories = self._opened()
        places = self._places()
        for key, place in places.items():
            log = place.log()
            end = directories.end_offset(key, place, log, is_committed=self._options.is_committed)
            found[key] = start_offset(self._options, key, log, end)
        return _to_json(StreamMark(found, topic_ids(places)))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return whether the options set a limit, which latestOffset then applies."""
        most, fewest = self._options.max_offsets_per_trigger, self._options.min_offsets_per_trigger
        # Spark's Python API takes only one limit.
        if most is not None:
            return ReadMaxRows(most)
        return ReadAllAvailable() if fewest is None else ReadMinRows(fewest)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Store the current end offsets, at which this query ends."""
        self._target = self._ends(self._places())

    def latestOffset(self, start: StreamOffset, limit: ReadLimit) -> StreamOffset:  # noqa: N802
        """Return where the next micro-batch ends.

        Raises:
            DataLossError: A partition is gone, or ends before the read position.
            RecreatedTopicError: A topic's id has changed.
            KafkaError, OSError: A log cannot be read.
        """
        begun = _from_json(start)
        places = self._places()
        now = self._target or self._ends(places)
        restarted = self._recreated(begun, now)
        ends = dict(now.offsets)
        for key, begin in begun.offsets.items():
            if key[0] not in restarted and ends.get(key, -1) < begin:
                sentence = f"{key[0]}-{key[1]} was read up to {begin}, which no longer exists"
                self._tell_loss(sentence, LostRange(*key, begin, begin))
                ends[key] = begin
        # Keep ids that cannot be read now.
        ids = begun.ids | now.ids
        if isinstance(limit, ReadAllAvailable):
            return _to_json(StreamMark(ends, ids))
        starts = {key: self._begin(key, begun, restarted, places) for key in ends}
        if not self._trigger_gate().opens(starts, ends):
            return start
        most = self._options.max_offsets_per_trigger
        return _to_json(StreamMark(ends if most is None else limited(starts, ends, most), ids))

    def reportLatestOffset(self) -> StreamOffset | None:  # noqa: N802
        """Return the current end offsets, for the query's progress."""
        return _to_json(self._ends(self._places()))

    def partitions(self, start: StreamOffset, end: StreamOffset) -> list[InputPartition]:
        """Return a partition for each task of a micro-batch.

        A topic that was recreated after planning is left out, or an error.
        """
        begun, planned = _from_json(start), _from_json(end)
        restarted = begun.recreated_in(planned)
        places = self._places()
        gone = self._recreated(planned, StreamMark({}, topic_ids(places)))
        ranges: list[RowRange] = []
        for key, last in planned.offsets.items():
            if key[0] in gone:
                continue
            first = self._begin(key, begun, restarted, places)
            if first >= last:
                continue
            if key not in places:
                lost = LostRange(*key, first, last)
                self._tell_loss(f"{key[0]}-{key[1]} is gone", lost)
                continue
            ranges.append(RowRange(*key, places[key], first, last))
        return [RangePartition(each) for each in split(ranges, self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return arrow_batches(partition, scan_wish(self._options, self._schema), self._schema)

    def _trigger_gate(self) -> TriggerGate:
        if self._gate is None:
            # Imported late: workers load this module without needing a clock, which loads asyncio.
            from wirebroker.base.clock import SystemClock

            fewest = self._options.min_offsets_per_trigger
            delay_ms = self._options.max_trigger_delay_ms
            self._gate = TriggerGate(fewest, delay_ms, SystemClock())
        return self._gate

    def _opened(self) -> LogDirectories:
        if self._directories is None:
            self._directories = LogDirectories(self._options.directories)
        return self._directories

    def _places(self) -> dict[TopicPartition, PartitionPlace]:
        """List the directories, which opens a file of each partition: do this once in a call."""
        return self._opened().find(self._options.wants)

    def _ends(self, places: dict[TopicPartition, PartitionPlace]) -> StreamMark:
        directories = self._opened()
        is_committed = self._options.is_committed
        ends = {
            key: directories.end_offset(key, place, place.log(), is_committed=is_committed)
            for key, place in places.items()
        }
        return StreamMark(ends, topic_ids(places))

    def _begin(
        self,
        key: TopicPartition,
        begun: StreamMark,
        restarted: set[str],
        places: dict[TopicPartition, PartitionPlace],
    ) -> int:
        """Return where a partition's read starts; for a new one, its first offset."""
        if key in begun.offsets and key[0] not in restarted:
            return begun.offsets[key]
        place = places.get(key)
        return 0 if place is None else place.log().start_offset

    def _recreated(self, before: StreamMark, now: StreamMark) -> set[str]:
        """Return the recreated topics; raise if the options refuse them."""
        found = before.recreated_in(now)
        if found and not self._options.restarts_recreated:
            topic = min(found)
            advice = "recreatedTopics=restart reads the new one from its beginning."
            raise recreated(topic, before.ids[topic], now.ids[topic], advice)
        return found

    def _tell_loss(self, sentence: str, lost: LostRange) -> None:
        if self._options.fail_on_data_loss:
            raise DataLossError(f"{sentence}; failOnDataLoss=false passes over that")
        note_loss(self._options.loss_report, lost)


def _to_json(mark: StreamMark) -> StreamOffset:
    found: StreamOffset = {}
    for (topic, partition), offset in sorted(mark.offsets.items()):
        found.setdefault(topic, {})[str(partition)] = offset
    ids = {topic: mark.ids[topic] for topic in found if topic in mark.ids}
    return {**found, _IDS: ids} if ids else found


def _from_json(offsets: StreamOffset) -> StreamMark:
    places = {
        (topic, int(partition)): offset
        for topic, partitions in offsets.items()
        if topic != _IDS
        for partition, offset in partitions.items()
    }
    return StreamMark(places, dict(offsets.get(_IDS, {})))
