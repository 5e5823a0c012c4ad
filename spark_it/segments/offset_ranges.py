"""The offsets to read of each partition, split into tasks, as in the connector.

Given offsets must name every partition. A timestamp means the first record that is not older.
Ranges are split evenly into at least `minPartitions` pieces in all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirebroker.segments.errors import DataLossError, OptionError
from wirebroker.segments.loss_report import LostRange, note_loss
from wirebroker.segments.options import EARLIEST, LATEST

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from wirebroker.segments.log_directories import LogDirectories, PartitionPlace
    from wirebroker.segments.log_on_disk import LogOnDisk
    from wirebroker.segments.options import Limit, SegmentOptions
    from wirebroker.storage.checkpoints import TopicPartition


class RowRange(NamedTuple):
    """A piece of a partition for one task; pickled to its worker."""

    topic: str
    partition: int
    place: PartitionPlace
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
    places = _found(directories, options)
    _check_named(places, options.start, "startingOffsets")
    _check_named(places, options.end, "endingOffsets")
    ranges: list[RowRange] = []
    for key, place in places.items():
        log = place.log()
        end = directories.end_offset(key, place, log, is_committed=options.is_committed)
        first = start_offset(options, key, log, end)
        last = _end_offset(options, key, log, end)
        if first > last:
            raise OptionError(
                f"{key[0]}-{key[1]} is to be read from {first}, but only up to {last}"
            )
        if first < log.start_offset and last > first:
            if options.fail_on_data_loss:
                raise DataLossError(
                    f"{place.path} begins at offset {log.start_offset}, what was before is gone; "
                    f"it is to be read from {first} (failOnDataLoss=false passes over that)"
                )
            start = min(log.start_offset, last)
            note_loss(options.loss_report, LostRange(*key, first, start))
            first = start
        ranges.append(RowRange(*key, place, first, last))
    return [each for each in ranges if each.size]


def _found(
    directories: LogDirectories, options: SegmentOptions
) -> dict[TopicPartition, PartitionPlace]:
    places = directories.find(options.wants)
    if not places and options.pattern is None:
        raise OptionError("none of the topics or partitions is in the directory")
    missing = sorted((options.assigned or frozenset()) - places.keys())
    if missing:
        topic, partition = missing[0]
        raise OptionError(f"the partition {topic}-{partition} is not in the directory")
    topics = {topic for topic, _ in places}
    absent = sorted((options.topics or frozenset()) - topics)
    if absent:
        raise OptionError(f"the topic {absent[0]} is not in the directory")
    return places


def _check_named(places: Iterable[TopicPartition], limit: Limit, name: str) -> None:
    if limit.each is None:
        return
    there = set(places)
    if limit.is_time:
        name += "ByTimestamp"
    if missing := sorted(there - limit.each.keys()):
        raise OptionError(f"option {name} is to name all partitions; {missing[0]} is missing")
    if unknown := sorted(limit.each.keys() - there):
        raise OptionError(f"option {name} names {unknown[0]}, which is not there")


def start_offset(
    options: SegmentOptions, key: TopicPartition, log: LogOnDisk, end_offset: int
) -> int:
    """Return where a partition's read starts.

    Raises:
        OptionError: No record is late enough, and the options make this an error.
    """
    limit = options.start
    wanted = limit.everywhere if limit.each is None else limit.each[key]
    if limit.is_time:
        found = log.offset_for_time(wanted, end_offset)
        if found is not None:
            return found
        if options.latest_if_not_found:
            return end_offset
        raise OptionError(
            f"{key[0]}-{key[1]} has no record from timestamp {wanted} on; "
            "startingOffsetsByTimestampStrategy=latest begins at its end then"
        )
    return _special(wanted, log, end_offset)


def _end_offset(
    options: SegmentOptions, key: TopicPartition, log: LogOnDisk, end_offset: int
) -> int:
    limit = options.end
    wanted = limit.everywhere if limit.each is None else limit.each[key]
    if limit.is_time:
        found = log.offset_for_time(wanted, end_offset)
        return end_offset if found is None else found
    offset = _special(wanted, log, end_offset)
    if offset > end_offset:
        raise OptionError(
            f"{key[0]}-{key[1]} can be read up to offset {end_offset}, not to {offset}"
        )
    return offset


def _special(wanted: int, log: LogOnDisk, end_offset: int) -> int:
    if wanted == EARLIEST:
        return log.start_offset
    return end_offset if wanted == LATEST else wanted


def split(ranges: list[RowRange], options: SegmentOptions) -> list[RowRange]:
    """Split ranges into pieces for single tasks."""
    total = sum(each.size for each in ranges)
    return [piece for each in ranges for piece in _pieces(each, total, options)]


def _pieces(whole: RowRange, total: int, options: SegmentOptions) -> Iterator[RowRange]:
    count = 1
    if options.most_records:
        count = -(-whole.size // options.most_records)
    if options.min_partitions:
        count = max(count, -(-whole.size * options.min_partitions // total))
    count = min(count, whole.size)
    for number in range(count):
        start = whole.from_offset + whole.size * number // count
        end = whole.from_offset + whole.size * (number + 1) // count
        yield whole._replace(from_offset=start, end_offset=end)


def limited(
    starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], most: int
) -> dict[TopicPartition, int]:
    """Return ends with at most `most` offsets in all; each partition gets its share, at least one.

    Source: the connector's KafkaMicroBatchStream.rateLimit.
    """
    total = sum(max(0, ends[key] - starts[key]) for key in ends)
    if total <= most:
        return dict(ends)
    found: dict[TopicPartition, int] = {}
    for key, end in ends.items():
        size = max(0, end - starts[key])
        share = size * most / total
        found[key] = min(end, starts[key] + (int(share) or (1 if size else 0)))
    return found
