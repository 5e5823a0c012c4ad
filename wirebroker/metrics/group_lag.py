"""The lag of groups in records and in time, computed by their coordinator.

The lag in time is the age of the first unread record: the first timestamp of its batch, read from
the log once for each position.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.base.threads import Work, in_thread
from wirebroker.codecs.coordinator_records import (
    decode_committed_offset,
    read_partition_suffix,
)
from wirebroker.codecs.errors import KafkaError
from wirebroker.codecs.records.layout import BASE_TIMESTAMP_AT, TIMESTAMPS
from wirebroker.metrics.group_rows import NOTHING_COMMITTED, GroupLag, GroupPartition
from wirebroker.metrics.share_lag import share_progress
from wirebroker.storage.files import ColdPagesError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.api.broker import Broker
    from wirebroker.base.clock import Slices
    from wirebroker.coordinator.groups.shard.shard import GroupShard
    from wirebroker.replica.partition import Partition
    from wirebroker.storage.files import DataFile

# Per scrape.
_MOST_LOOKUPS: Final = 1_000
# Per call of a thread: well below 2 ms.
_READ_AT_ONCE: Final = 100
_WARMED_BYTES: Final = 64 << 10


class Lags(NamedTuple):
    """The lags of groups with committed offsets, and of share groups."""

    committed: dict[GroupPartition, GroupLag]
    shares: dict[GroupPartition, GroupLag]


class _Read(NamedTuple):
    """A batch whose timestamp is to be read."""

    place: GroupPartition
    offset: int
    file: DataFile
    position: int


class GroupLags:
    """Computes lags, and caches the timestamps of unread records."""

    __slots__ = ("_broker", "_previous")

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        # A group's offset and the timestamp there.
        self._previous: dict[GroupPartition, tuple[int, int]] = {}

    async def find(self, slices: Slices) -> Lags:
        """Return the lags of the groups whose offsets or share states this broker stores."""
        offsets: dict[GroupPartition, int] = {}
        for shard in list(self._broker.groups.shards()):
            for group_id in list(shard.offsets.by_group):
                await self._read_offsets(shard, group_id, offsets, slices)
        shares = await share_progress(self._broker, slices)
        starts = {place: progress.start_offset for place, progress in shares.items()}
        times = await self._times({**starts, **offsets}, slices)
        now_ms = self._broker.clock.now_ms()
        lags = Lags({}, {})
        for place, offset in offsets.items():
            lags.committed[place] = self._progress(place, offset, times.get(place), now_ms)
            await slices.turn()
        for place, progress in shares.items():
            partition = self._partition(place)
            end_offset = None if partition is None else partition.log.high_watermark
            lags.shares[place] = progress.lag(end_offset, times.get(place), now_ms)
            await slices.turn()
        return lags

    async def _read_offsets(
        self, shard: GroupShard, group_id: str, offsets: dict[GroupPartition, int], slices: Slices
    ) -> None:
        """Add a group's committed offsets, and -1 for the other partitions of those topics."""
        image = self._broker.metadata.image
        topics: set[str] = set()
        committed: dict[GroupPartition, int] = {}
        for suffix, value in list(shard.offsets.by_group.get(group_id, {}).items()):
            topic, index = read_partition_suffix(suffix)
            committed[GroupPartition(group_id, topic, index)] = decode_committed_offset(
                value
            ).offset
            topics.add(topic)
            await slices.turn()
        for topic in sorted(topics):
            topic_image = image.topics.get(topic)
            for index in () if topic_image is None else sorted(topic_image.partitions):
                group_partition = GroupPartition(group_id, topic, index)
                offsets[group_partition] = committed.get(group_partition, NOTHING_COMMITTED)
                await slices.turn()

    def _progress(
        self, group_partition: GroupPartition, offset: int, time_ms: int | None, now_ms: int
    ) -> GroupLag:
        if offset == NOTHING_COMMITTED:
            return GroupLag(offset, NOTHING_COMMITTED, None)
        partition = self._partition(group_partition)
        if partition is None:
            return GroupLag(offset, None, None)
        lag = max(0, partition.log.high_watermark - offset)
        if lag == 0:
            return GroupLag(offset, 0, 0)
        return GroupLag(offset, lag, None if time_ms is None else max(0, now_ms - time_ms))

    def _partition(self, group_partition: GroupPartition) -> Partition | None:
        partitions, _ = self._broker.replicas.find(group_partition.topic, b"", by_id=False)
        return partitions.get(group_partition.partition)

    async def _times(
        self, offsets: dict[GroupPartition, int], slices: Slices
    ) -> dict[GroupPartition, int]:
        previous, self._previous = self._previous, {}
        reads: list[_Read] = []
        for group_partition, offset in offsets.items():
            before = previous.get(group_partition)
            if before is not None and before[0] == offset:
                self._previous[group_partition] = before
            elif offset != NOTHING_COMMITTED and len(reads) < _MOST_LOOKUPS:
                read = await self._locate(group_partition, offset)
                if read is not None:
                    reads.append(read)
            await slices.turn()
        for start in range(0, len(reads), _READ_AT_ONCE):
            batch = reads[start : start + _READ_AT_ONCE]
            for read, time_ms in zip(
                batch, await in_thread(Work.SEARCHES, _timestamps, batch), strict=True
            ):
                if time_ms is not None:
                    self._previous[read.place] = read.offset, time_ms
        return {
            group_partition: time_ms for group_partition, (_, time_ms) in self._previous.items()
        }

    async def _locate(self, group_partition: GroupPartition, offset: int) -> _Read | None:
        """Find the batch of the next record; None if there is none, or its pages are cold twice."""
        partition = self._partition(group_partition)
        if partition is None:
            return None
        for _ in range(2):
            log = partition.log
            try:
                read = log.read(
                    max(offset, log.log_start_offset),
                    1,
                    up_to_offset=log.high_watermark,
                    min_one=True,
                    may_block=False,
                )
            except ColdPagesError as cold:
                await in_thread(Work.WARMING, _warm, cold.file, cold.position)
            except (KafkaError, OSError):
                return None  # reported to clients
            else:
                file_slice = read.slice
                return (
                    None
                    if file_slice is None
                    else _Read(group_partition, offset, file_slice.file, file_slice.position)
                )
        return None


def _warm(file: DataFile, position: int) -> None:
    try:
        file.warm(position, _WARMED_BYTES)
    except OSError:
        return  # the next read reports it


def _timestamps(reads: Sequence[_Read]) -> list[int | None]:
    """Return the first timestamps of batches; None for a deleted file."""
    return [_timestamp(read.file, read.position) for read in reads]


def _timestamp(file: DataFile, position: int) -> int | None:
    try:
        data = file.read_at(position + BASE_TIMESTAMP_AT, TIMESTAMPS.size)
    except OSError:
        return None
    if len(data) < TIMESTAMPS.size:
        return None
    first_ms: int = TIMESTAMPS.unpack(data)[0]
    return first_ms if first_ms >= 0 else None
