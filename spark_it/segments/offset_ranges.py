"""The offsets to read of each partition, split into tasks, as in the connector.

Given offsets must name every partition. A timestamp means the first record that is not older.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirebroker.codecs.special_offsets import EARLIEST, LATEST
from wirebroker.segments.errors import DataLossError, OptionError
from wirebroker.segments.loss_report import LostRange, note_loss

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from wirebroker.segments.log_directories import LogDirectories, PartitionFolder
    from wirebroker.segments.log_on_disk import LogOnDisk
    from wirebroker.segments.options import Limit, SegmentOptions
    from wirebroker.storage.checkpoints import TopicPartition


class RowRange(NamedTuple):
    """A piece of a partition for one task."""

    topic: str
    partition: int
    place: PartitionFolder
    from_offset: int
    end_offset: int

    @property
    def size(self) -> int:
        """The number of offsets."""
        return self.end_offset - self.from_offset


def batch_ranges(directories: LogDirectories, options: SegmentOptions) -> list[RowRange]:
    """Return the nonempty ranges that a batch reads.

    Raises:
        OptionError: A limit does not match the directories.
        KafkaError, OSError, DataLossError: A log cannot be read.
    """
    folders = _selected_folders(directories, options)
    _check_named(folders, options.start, "startingOffsets")
    _check_named(folders, options.end, "endingOffsets")
    ranges: list[RowRange] = []
    for key, folder in folders.items():
        log = folder.log()
        end = directories.end_offset(key, folder, log, is_committed=options.is_committed)
        first = start_offset(options, key, log, end)
        last = _end_offset(options, key, log, end)
        if first > last:
            raise OptionError(f"{key[0]}-{key[1]}: the start {first} is after the end {last}")
        if first < log.start_offset and last > first:
            if options.fail_on_data_loss:
                raise DataLossError(
                    f"{folder.path} starts at offset {log.start_offset}, after the requested "
                    f"{first}: earlier records are gone (failOnDataLoss=false skips them)"
                )
            start = min(log.start_offset, last)
            note_loss(options.loss_report, LostRange(*key, first, start))
            first = start
        ranges.append(RowRange(*key, folder, first, last))
    return [row_range for row_range in ranges if row_range.size]


def _selected_folders(
    directories: LogDirectories, options: SegmentOptions
) -> dict[TopicPartition, PartitionFolder]:
    folders = directories.find(options.wants)
    if not folders and options.pattern is None:
        raise OptionError("none of the topics or partitions is in the directory")
    missing = sorted((options.assigned or frozenset()) - folders.keys())
    if missing:
        topic, partition = missing[0]
        raise OptionError(f"the partition {topic}-{partition} is not in the directory")
    topics = {topic for topic, _ in folders}
    absent = sorted((options.topics or frozenset()) - topics)
    if absent:
        raise OptionError(f"the topic {absent[0]} is not in the directory")
    return folders


def _check_named(partitions: Iterable[TopicPartition], limit: Limit, name: str) -> None:
    if limit.each is None:
        return
    existing = set(partitions)
    if limit.is_time:
        name += "ByTimestamp"
    if missing := sorted(existing - limit.each.keys()):
        raise OptionError(f"option {name} must name all partitions; {missing[0]} is missing")
    if unknown := sorted(limit.each.keys() - existing):
        raise OptionError(f"option {name} names {unknown[0]}, which does not exist")


def start_offset(
    options: SegmentOptions, key: TopicPartition, log: LogOnDisk, end_offset: int
) -> int:
    """Return where a partition's read starts.

    Raises:
        OptionError: No record is late enough, and the options make this an error.
    """
    limit = options.start
    requested = limit.for_all if limit.each is None else limit.each[key]
    if limit.is_time:
        time_offset = log.offset_for_time(requested, end_offset)
        if time_offset is not None:
            return time_offset
        if options.latest_if_not_found:
            return end_offset
        raise OptionError(
            f"{key[0]}-{key[1]} has no record at or after timestamp {requested}; "
            "startingOffsetsByTimestampStrategy=latest starts at its end"
        )
    return _special(requested, log, end_offset)


def _end_offset(
    options: SegmentOptions, key: TopicPartition, log: LogOnDisk, end_offset: int
) -> int:
    limit = options.end
    requested = limit.for_all if limit.each is None else limit.each[key]
    if limit.is_time:
        time_offset = log.offset_for_time(requested, end_offset)
        return end_offset if time_offset is None else time_offset
    offset = _special(requested, log, end_offset)
    if offset > end_offset:
        raise OptionError(
            f"{key[0]}-{key[1]} can be read up to offset {end_offset}, not to {offset}"
        )
    return offset


def _special(requested: int, log: LogOnDisk, end_offset: int) -> int:
    if requested == EARLIEST:
        return log.start_offset
    return end_offset if requested == LATEST else requested


def split(ranges: list[RowRange], options: SegmentOptions) -> list[RowRange]:
    """Split ranges into pieces for single tasks."""
    total = sum(row_range.size for row_range in ranges)
    return [piece for row_range in ranges for piece in _pieces(row_range, total, options)]


def _pieces(row_range: RowRange, total: int, options: SegmentOptions) -> Iterator[RowRange]:
    count = 1
    if options.most_records:
        count = -(-row_range.size // options.most_records)
    if options.min_partitions:
        count = max(count, -(-row_range.size * options.min_partitions // total))
    count = min(count, row_range.size)
    for number in range(count):
        start = row_range.from_offset + row_range.size * number // count
        end = row_range.from_offset + row_range.size * (number + 1) // count
        yield row_range._replace(from_offset=start, end_offset=end)


def limited(
    starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], max_offsets: int
) -> dict[TopicPartition, int]:
    """Return ends with at most `max_offsets` offsets in all, at least one for each partition.

    Source: the connector's KafkaMicroBatchStream.rateLimit.
    """
    total = sum(max(0, ends[key] - starts[key]) for key in ends)
    if total <= max_offsets:
        return dict(ends)
    limited_ends: dict[TopicPartition, int] = {}
    for key, end in ends.items():
        size = max(0, end - starts[key])
        share = size * max_offsets / total
        limited_ends[key] = min(end, starts[key] + (int(share) or (1 if size else 0)))
    return limited_ends
