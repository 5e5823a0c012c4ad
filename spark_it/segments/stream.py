"""Streams over log directories: offsets in the connector's form, with topic ids.

    {"orders": {"0": 23}, "#topicIds": {"orders": "p0hU_tYkT5yVbVjOhnuAjQ"}}

A new partition is read from its beginning; a removed one is data loss. Checkpoints of earlier
versions have no ids, and get them.
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
from wirebroker.segments.range_rows import RangePartition, arrow_batches, scan_settings
from wirebroker.segments.trigger_limits import TriggerGate

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.streaming.datasource import ReadLimit
    from pyspark.sql.types import StructType

    from wirebroker.segments.log_directories import PartitionFolder
    from wirebroker.segments.options import SegmentOptions
    from wirebroker.storage.checkpoints import TopicPartition

StreamOffset: TypeAlias = "dict[str, dict[str, Any]]"
_IDS: Final = "#topicIds"  # not a valid topic name


class StreamMark(NamedTuple):
    """A parsed StreamOffset."""

    offsets: dict[TopicPartition, int]
    ids: dict[str, str]

    def recreated_in(self, other: StreamMark) -> set[str]:
        """Return the topics that have a different id in another mark."""
        own_ids = self.ids.items()
        return {topic for topic, topic_id in own_ids if other.ids.get(topic, topic_id) != topic_id}


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
        offsets: dict[TopicPartition, int] = {}
        directories = self._opened()
        folders = self._folders()
        for key, folder in folders.items():
            log = folder.log()
            end = directories.end_offset(key, folder, log, is_committed=self._options.is_committed)
            offsets[key] = start_offset(self._options, key, log, end)
        return _to_json(StreamMark(offsets, topic_ids(folders)))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return whether the options set a limit, which latestOffset then applies."""
        maximum, minimum = (
            self._options.max_offsets_per_trigger,
            self._options.min_offsets_per_trigger,
        )
        # Spark's Python API takes only one limit.
        if maximum is not None:
            return ReadMaxRows(maximum)
        return ReadAllAvailable() if minimum is None else ReadMinRows(minimum)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Store the current end offsets, at which this query ends."""
        self._target = self._ends(self._folders())

    def latestOffset(self, start: StreamOffset, limit: ReadLimit) -> StreamOffset:  # noqa: N802
        """Return where the next micro-batch ends.

        Raises:
            DataLossError: A partition is gone, or ends before the read position.
            RecreatedTopicError: A topic's id has changed.
            KafkaError, OSError: A log cannot be read.
        """
        start_mark = _from_json(start)
        folders = self._folders()
        now = self._target or self._ends(folders)
        restarted = self._recreated(start_mark, now)
        ends = dict(now.offsets)
        for key, begin in start_mark.offsets.items():
            if key[0] not in restarted and ends.get(key, -1) < begin:
                sentence = f"{key[0]}-{key[1]} was read up to {begin}, which no longer exists"
                self._report_loss(sentence, LostRange(*key, begin, begin))
                ends[key] = begin
        # Keep ids that cannot be read now.
        ids = start_mark.ids | now.ids
        if isinstance(limit, ReadAllAvailable):
            return _to_json(StreamMark(ends, ids))
        starts = {key: self._begin(key, start_mark, restarted, folders) for key in ends}
        if not self._trigger_gate().opens(starts, ends):
            return start
        maximum = self._options.max_offsets_per_trigger
        return _to_json(
            StreamMark(ends if maximum is None else limited(starts, ends, maximum), ids)
        )

    def reportLatestOffset(self) -> StreamOffset | None:  # noqa: N802
        """Return the current end offsets, for the query's progress."""
        return _to_json(self._ends(self._folders()))

    def partitions(self, start: StreamOffset, end: StreamOffset) -> list[InputPartition]:
        """Return a partition for each task of a micro-batch.

        A topic that was recreated after planning is left out, or an error.
        """
        start_mark, planned = _from_json(start), _from_json(end)
        restarted = start_mark.recreated_in(planned)
        folders = self._folders()
        recreated_topics = self._recreated(planned, StreamMark({}, topic_ids(folders)))
        ranges: list[RowRange] = []
        for key, last in planned.offsets.items():
            if key[0] in recreated_topics:
                continue
            first = self._begin(key, start_mark, restarted, folders)
            if first >= last:
                continue
            if key not in folders:
                lost = LostRange(*key, first, last)
                self._report_loss(f"{key[0]}-{key[1]} is gone", lost)
                continue
            ranges.append(RowRange(*key, folders[key], first, last))
        return [RangePartition(piece) for piece in split(ranges, self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return arrow_batches(partition, scan_settings(self._options, self._schema), self._schema)

    def _trigger_gate(self) -> TriggerGate:
        if self._gate is None:
            # Imported late, because workers do not need asyncio, which it loads.
            from wirebroker.base.clock import SystemClock

            fewest = self._options.min_offsets_per_trigger
            delay_ms = self._options.max_trigger_delay_ms
            self._gate = TriggerGate(fewest, delay_ms, SystemClock())
        return self._gate

    def _opened(self) -> LogDirectories:
        if self._directories is None:
            self._directories = LogDirectories(self._options.directories)
        return self._directories

    def _folders(self) -> dict[TopicPartition, PartitionFolder]:
        """List the directories, which opens many files: do this once in a call."""
        return self._opened().find(self._options.wants)

    def _ends(self, folders: dict[TopicPartition, PartitionFolder]) -> StreamMark:
        directories = self._opened()
        is_committed = self._options.is_committed
        ends = {
            key: directories.end_offset(key, folder, folder.log(), is_committed=is_committed)
            for key, folder in folders.items()
        }
        return StreamMark(ends, topic_ids(folders))

    def _begin(
        self,
        key: TopicPartition,
        start_mark: StreamMark,
        restarted: set[str],
        folders: dict[TopicPartition, PartitionFolder],
    ) -> int:
        """Return where a partition's read starts."""
        if key in start_mark.offsets and key[0] not in restarted:
            return start_mark.offsets[key]
        folder = folders.get(key)
        return 0 if folder is None else folder.log().start_offset

    def _recreated(self, before: StreamMark, now: StreamMark) -> set[str]:
        """Return the recreated topics; raise if the options refuse them."""
        topics = before.recreated_in(now)
        if topics and not self._options.restarts_recreated:
            topic = min(topics)
            advice = "recreatedTopics=restart reads the new one from its beginning."
            raise recreated(topic, before.ids[topic], now.ids[topic], advice)
        return topics

    def _report_loss(self, sentence: str, lost: LostRange) -> None:
        if self._options.fail_on_data_loss:
            raise DataLossError(f"{sentence}; failOnDataLoss=false skips it")
        note_loss(self._options.loss_report, lost)


def _to_json(mark: StreamMark) -> StreamOffset:
    offsets: StreamOffset = {}
    for (topic, partition), offset in sorted(mark.offsets.items()):
        offsets.setdefault(topic, {})[str(partition)] = offset
    ids = {topic: mark.ids[topic] for topic in offsets if topic in mark.ids}
    return {**offsets, _IDS: ids} if ids else offsets


def _from_json(offsets: StreamOffset) -> StreamMark:
    by_partition = {
        (topic, int(partition)): offset
        for topic, partitions in offsets.items()
        if topic != _IDS
        for partition, offset in partitions.items()
    }
    return StreamMark(by_partition, dict(offsets.get(_IDS, {})))
