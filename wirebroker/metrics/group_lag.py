"""How far behind groups are, in records and in time, found by their coordinator.

Time is the age of the first record that a group has not read: the timestamp of its batch, read from
the log once for each place that a group has reached (as the batch's first record has it). A place
where nothing moved costs nothing the next time.
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
from wirebroker.metrics.group_rows import NOTHING_COMMITTED, GroupLag
from wirebroker.storage.files import ColdPagesError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.api.broker import Broker
    from wirebroker.base.clock import Slices
    from wirebroker.coordinator.groups.shard.shard import GroupShard
    from wirebroker.replica.partition import Partition
    from wirebroker.storage.files import DataFile

# Places that are looked up in one scrape; the others have no time until the next one.
_MOST_LOOKUPS: Final = 1_000
# Read by a thread in one go: well below 2 ms.
_READ_AT_ONCE: Final = 100
_WARMED_BYTES: Final = 64 << 10


class GroupPlace(NamedTuple):
    """A partition of a topic that a group reads."""

    group_id: str
    topic: str
    partition: int


class _Read(NamedTuple):
    """What is to be read for a place: where its batch begins."""

    place: GroupPlace
    offset: int
    file: DataFile
    position: int


class GroupLags:
    """Finds what groups have read, and remembers when the next record was made."""

    __slots__ = ("_broker", "_known")

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        # Of the last time: the offset that a group was at, and the time of the record there.
        self._known: dict[GroupPlace, tuple[int, int]] = {}

    async def find(self, slices: Slices) -> dict[GroupPlace, GroupLag]:
        """Return where each group is that is coordinated here."""
        offsets: dict[GroupPlace, int] = {}
        for shard in list(self._broker.groups.shards()):
            for group_id in list(shard.offsets.by_group):
                await self._read_offsets(shard, group_id, offsets, slices)
        times = await self._times(offsets, slices)
        now_ms = self._broker.clock.now_ms()
        found: dict[GroupPlace, GroupLag] = {}
        for place, offset in offsets.items():
            found[place] = self._progress(place, offset, times.get(place), now_ms)
            await slices.turn()
        return found

    async def _read_offsets(
        self, shard: GroupShard, group_id: str, offsets: dict[GroupPlace, int], slices: Slices
    ) -> None:
        """Add what a group has committed, and -1 for the other partitions of those topics."""
        image = self._broker.metadata.image
        topics: set[str] = set()
        committed: dict[GroupPlace, int] = {}
        for suffix, value in list(shard.offsets.by_group.get(group_id, {}).items()):
            topic, index = read_partition_suffix(suffix)
            committed[GroupPlace(group_id, topic, index)] = decode_committed_offset(value).offset
            topics.add(topic)
            await slices.turn()
        for topic in sorted(topics):
            known = image.topics.get(topic)
            for index in () if known is None else sorted(known.partitions):
                place = GroupPlace(group_id, topic, index)
                offsets[place] = committed.get(place, NOTHING_COMMITTED)
                await slices.turn()

    def _progress(
        self, place: GroupPlace, offset: int, time_ms: int | None, now_ms: int
    ) -> GroupLag:
        if offset == NOTHING_COMMITTED:
            return GroupLag(offset, NOTHING_COMMITTED, None)
        partition = self._partition(place)
        if partition is None:
            return GroupLag(offset, None, None)
        lag = max(0, partition.log.high_watermark - offset)
        if lag == 0:
            return GroupLag(offset, 0, 0)
        return GroupLag(offset, lag, None if time_ms is None else max(0, now_ms - time_ms))

    def _partition(self, place: GroupPlace) -> Partition | None:
        partitions, _ = self._broker.replicas.find(place.topic, b"", by_id=False)
        return partitions.get(place.partition)

    async def _times(self, offsets: dict[GroupPlace, int], slices: Slices) -> dict[GroupPlace, int]:
        """Return when the first record that is not read was made, where that can be found."""
        known, self._known = self._known, {}
        reads: list[_Read] = []
        for place, offset in offsets.items():
            before = known.get(place)
            if before is not None and before[0] == offset:
                self._known[place] = before
            elif offset != NOTHING_COMMITTED and len(reads) < _MOST_LOOKUPS:
                read = await self._locate(place, offset)
                if read is not None:
                    reads.append(read)
            await slices.turn()
        for start in range(0, len(reads), _READ_AT_ONCE):
            some = reads[start : start + _READ_AT_ONCE]
            for read, time_ms in zip(
                some, await in_thread(Work.SEARCHES, _timestamps, some), strict=True
            ):
                if time_ms is not None:
                    self._known[read.place] = read.offset, time_ms
        return {place: time_ms for place, (_, time_ms) in self._known.items()}

    async def _locate(self, place: GroupPlace, offset: int) -> _Read | None:
        """Find the batch of the next record to read; None if there is none, or it is cold twice."""
        partition = self._partition(place)
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
                return None  # whoever reads it is told; here it has no time
            else:
                found = read.slice
                return None if found is None else _Read(place, offset, found.file, found.position)
        return None


def _warm(file: DataFile, position: int) -> None:
    try:
        file.warm(position, _WARMED_BYTES)
    except OSError:
        return  # who reads it finds out


def _timestamps(reads: Sequence[_Read]) -> list[int | None]:
    """Return the first timestamps of batches; None for one whose file is gone by now."""
    return [_timestamp(read.file, read.position) for read in reads]


def _timestamp(file: DataFile, position: int) -> int | None:
    try:
        found = file.read_at(position + BASE_TIMESTAMP_AT, TIMESTAMPS.size)
    except OSError:
        return None
    if len(found) < TIMESTAMPS.size:
        return None
    first_ms: int = TIMESTAMPS.unpack(found)[0]
    return first_ms if first_ms >= 0 else None
