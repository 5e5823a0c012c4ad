"""Records of a topic, copied to another topic of the cluster.

Keys, values, headers and timestamps are kept. Records of aborted and open transactions are not
copied. A partition is copied after the other, so the order of each is kept.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.base.text import counted
from wirebroker.base.threads import Work, in_thread
from wirebroker.client.errors import ClientError
from wirebroker.client.records.consuming import AbortedFilter
from wirebroker.client.records.fetched_batches import fetched_batches
from wirebroker.client.records.one_partition import PartitionFetcher
from wirebroker.client.records.partitioning import Partitioner
from wirebroker.client.records.producing import TopicWriter
from wirebroker.client.topics.leaders import clamped, offsets_at, partitions_of
from wirebroker.client.topics.partition_choice import of_topic
from wirebroker.codecs.errors import KafkaError, TooLargeError
from wirebroker.codecs.records.batch import iterate_records
from wirebroker.codecs.records.codec import Codec
from wirebroker.codecs.special_offsets import EARLIEST, LATEST

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.client.topics.leaders import TopicPartition
    from wirebroker.codecs.records.record import Record

# Decompressed; the console's memory is bounded.
_MOST_BATCH_BYTES: Final = 16 << 20
# Of one request to write.
_MOST_WRITTEN: Final = 5000


class RangeBound(NamedTuple):
    """Where a range begins or ends (exclusive): an offset, else a time in ms or a special one."""

    offset: int | None = None
    timestamp: int = EARLIEST


FROM_START: Final = RangeBound(timestamp=EARLIEST)
TO_END: Final = RangeBound(timestamp=LATEST)


class CopyRange(NamedTuple):
    """The offsets of a partition from `begin` to `end` (exclusive).

    Attributes:
        is_to_end: Whether it ends at the end of the committed records, which moves.
    """

    place: TopicPartition
    begin: int
    end: int
    is_to_end: bool = False


class CopyPlan(NamedTuple):
    """The records that are copied.

    Attributes:
        keeps_partitions: Whether a record goes to the partition with the same number; else the key
            chooses, as in Java's producer.
        most: The copy ends after this many records.
    """

    source: str
    target: str
    ranges: list[CopyRange]
    keeps_partitions: bool
    most: int | None

    @property
    def offsets(self) -> int:
        """Number of offsets, of which compaction and transactions leave fewer records."""
        return sum(part.end - part.begin for part in self.ranges)


async def planned_copy(
    client: KafkaClient,
    source: str,
    target: str,
    *,
    partitions: Iterable[int] | None = None,
    begin: RangeBound = FROM_START,
    end: RangeBound = TO_END,
    keeps_partitions: bool = False,
    most: int | None = None,
) -> CopyPlan:
    """Return what is copied, up to the current end of the source at most.

    Raises:
        ClientError: A topic or partition does not exist, or source and target are the same topic.
    """
    if source == target:
        raise ClientError(f"topic {source} cannot be copied to itself: name another topic")
    leaders = await partitions_of(client, [source, target])
    places = of_topic([place for place in leaders if place.topic == source], partitions)
    count = sum(place.topic == target for place in leaders)
    if keeps_partitions and (most_number := max(place.partition for place in places)) >= count:
        raise ClientError(
            f"topic {target} has no partition {most_number}: it has {count}, numbered from 0"
        )
    starts = await offsets_at(client, dict.fromkeys(places, EARLIEST))
    stable = await offsets_at(client, dict.fromkeys(places, LATEST), read_committed=True)
    begins = await _offsets(client, places, begin)
    ends = await _offsets(client, places, end)
    ranges: list[CopyRange] = []
    for place in places:
        first = min(max(begins[place], starts[place]), stable[place])
        last = max(first, min(ends[place], stable[place]))
        ranges.append(CopyRange(place, first, last, is_to_end=ends[place] >= stable[place]))
    return CopyPlan(source, target, ranges, keeps_partitions, most)


async def _offsets(
    client: KafkaClient, places: Sequence[TopicPartition], bound: RangeBound
) -> dict[TopicPartition, int]:
    if bound.offset is not None:
        return dict.fromkeys(places, bound.offset)
    return await offsets_at(client, dict.fromkeys(places, bound.timestamp))


class RecordCopier:
    """Copies the records of a plan, once."""

    __slots__ = ("_client", "_fetcher", "_partitioner", "_passed", "_plan", "_position", "_writer")

    def __init__(self, client: KafkaClient, plan: CopyPlan, codec: Codec = Codec.NONE) -> None:
        self._client = client
        self._plan = plan
        self._writer = TopicWriter(client, plan.target, codec)
        self._fetcher = PartitionFetcher(client, is_committed=True)
        self._partitioner: Partitioner | None = None
        # Offsets that were read.
        self._passed = 0
        # The next offset of the partition that is being copied.
        self._position = 0

    @property
    def copied(self) -> int:
        """Number of records that the target has acknowledged."""
        return sum(stored.records for stored in self._writer.stored)

    @property
    def passed(self) -> int:
        """Number of offsets of the plan that were read."""
        return self._passed

    async def run(self) -> None:
        """Copy; if it is cancelled, what was copied remains.

        Raises:
            ClientError: Source or target refuse; the message says how many records were copied.
        """
        await self._writer.open()
        self._partitioner = Partitioner(self._writer.partition_count, random.Random())  # noqa: S311
        for part in self._plan.ranges:
            self._position = part.begin
            try:
                await self._copy(part)
            except ClientError as error:
                raise ClientError(
                    f"{error}; {counted(self.copied, 'record')} copied before, of partition"
                    f" {part.place.partition} at least up to offset {self._position} (exclusive)",
                    code=error.code,
                ) from error

    @property
    def _is_full(self) -> bool:
        return self._plan.most is not None and self.copied >= self._plan.most

    async def _copy(self, part: CopyRange) -> None:
        aborted = AbortedFilter()
        while (position := self._position) < part.end and not self._is_full:
            row = await self._fetcher.fetch(part.place, position)
            if not row.records:
                await self._skip_gap(part)
                continue
            aborted.begin(row.aborted_transactions or ())
            steps = _steps(part, position, row, aborted)
            while not self._is_full:
                step = await in_thread(Work.RECORDS, _next_step, part, steps)
                if step is None:
                    break
                records, following = step
                await self._write(part, records)
                self._pass_to(following)
            if self._position == position:
                await self._skip_gap(part)

    def _pass_to(self, offset: int) -> None:
        self._passed += offset - self._position
        self._position = offset

    async def _skip_gap(self, part: CopyRange) -> None:
        """Go on at the next offset that exists: the records before it were deleted."""
        position = self._position
        nearest = (await clamped(self._client, {part.place: position}))[part.place]
        if nearest <= position:
            raise ClientError(
                f"{part.place} cannot be read from offset {position} on: its leader has no records"
            )
        self._pass_to(min(nearest, part.end))

    async def _write(self, part: CopyRange, records: list[Record]) -> None:
        if self._plan.most is not None:
            del records[max(0, self._plan.most - self.copied) :]
        assert self._partitioner is not None
        for first in range(0, len(records), _MOST_WRITTEN):
            chunk = records[first : first + _MOST_WRITTEN]
            await self._writer.write(await in_thread(Work.RECORDS, self._targets, part, chunk))
            self._partitioner.turn()
            self._pass_to(chunk[-1].offset + 1)

    def _targets(self, part: CopyRange, records: list[Record]) -> list[tuple[int, Record]]:
        """Return records with their partitions; hashing long keys takes time."""
        assert self._partitioner is not None
        if self._plan.keeps_partitions:
            return [(part.place.partition, record) for record in records]
        return [(self._partitioner.partition_of(record.key), record) for record in records]


def _steps(
    part: CopyRange, position: int, row: Any, aborted: AbortedFilter
) -> Iterator[tuple[list[Record], int]]:
    """Yield the records of each batch that are to be copied, and the offset after it."""
    for header, batch in fetched_batches(memoryview(row.records)):
        if header.base_offset >= part.end:  # compaction left no records before it
            yield [], part.end
            return
        if header.last_offset < position:
            continue
        records: list[Record] = []
        if aborted.lets_through(header, batch):
            decoded = iterate_records(batch, header, max_bytes=_MOST_BATCH_BYTES)
            records = [record for record in decoded if position <= record.offset < part.end]
        yield records, min(header.last_offset + 1, part.end)


def _next_step(
    part: CopyRange, steps: Iterator[tuple[list[Record], int]]
) -> tuple[list[Record], int] | None:
    try:
        return next(steps, None)
    except TooLargeError:
        reason = f"has more than {_MOST_BATCH_BYTES >> 20} MiB"
    except KafkaError as error:
        reason = f"cannot be read: {error}"
    raise ClientError(f"a batch of {part.place} {reason}; the copy ends before it")
