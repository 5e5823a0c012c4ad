"""Pages of records of a topic, in the order of time across its partitions.

A partition's records keep their order even if their timestamps do not rise: each counts with the
highest timestamp before it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.base.threads import Work, in_thread
from wirebroker.client.errors import TooLongError
from wirebroker.client.records.one_partition import PartitionFetcher
from wirebroker.client.records.record_connections import too_large
from wirebroker.console.records.partition_scan import PartitionScan, ScanRules
from wirebroker.console.records.positions import begins_of, ranges_of, ranges_until
from wirebroker.console.records.queries import (
    MOST_ON_PAGE,
    STARTS,
    FoundRecord,
    ReadQuery,
    RecordPage,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from wirebroker.client.records.record_connections import RecordConnections
    from wirebroker.client.topics.leaders import TopicPartition
    from wirebroker.console.model.collector import Collector
    from wirebroker.console.records.positions import StoredOffsets

# A partition is read for a page up to this many bytes, compressed.
_MOST_BYTES: Final = 64 << 20
_PARTITIONS_AT_ONCE: Final = 4
# Reading backwards begins with as many offsets as records are wanted; then with more, if
# compaction or markers left gaps, or fewer, if the records are large.
_GROWTH: Final = 8
_MOST_SPANS: Final = 8
_WHOLE_RECORD_BYTES: Final = 1 << 20
_WHOLE_RECORD_HEADERS: Final = 100


class _Placed(NamedTuple):
    """A record with its place in the order of the page."""

    order: tuple[int, int, int]
    record: FoundRecord


class _Span(NamedTuple):
    """Records of a partition in order; `read_to` is the next offset, `end` if all were read."""

    records: list[FoundRecord]
    read_to: int


async def read_page(collector: Collector, query: ReadQuery) -> RecordPage:
    """Read a page.

    Raises:
        ClientError: The topic cannot be read.
        ValueError: The query has an unknown start or limit.
    """
    if query.start not in STARTS or not 1 <= query.limit <= MOST_ON_PAGE:
        raise ValueError(f"a page has 1 to {MOST_ON_PAGE} records from {', '.join(STARTS)}")
    client = collector.client
    ranges = await ranges_until(
        client,
        await ranges_of(client, query.topic, query.partitions, is_committed=query.is_committed),
        query.until_ms,
    )
    reader = _PageReader(collector.record_connections, query)
    if query.positions is not None:
        begins = {
            place: span.nearest(query.positions[place.partition])
            for place, span in ranges.items()
            if place.partition in query.positions
        }
    elif query.start == "end":
        begins = {place: span.end for place, span in ranges.items()}
    else:
        begins = await begins_of(
            client, ranges, query.start, offset=query.offset, time_ms=query.time_ms
        )
    turns = asyncio.Semaphore(_PARTITIONS_AT_ONCE)

    async def read(place: TopicPartition, begin: int) -> None:
        async with turns:
            await reader.read(place, begin, ranges[place])

    async with collector.record_connections.pages_at_once:
        await client.together(*(read(place, begin) for place, begin in begins.items()))
    return reader.page()


async def read_record(
    collector: Collector, topic: str, partition: int, offset: int
) -> FoundRecord | None:
    """Read one record with up to 1 MiB of its key, of its value and of its headers.

    Returns:
        None if it does not exist.
    """
    query = ReadQuery(
        topic,
        (partition,),
        "offset",
        offset,
        limit=1,
        max_value_bytes=_WHOLE_RECORD_BYTES,
        max_headers=_WHOLE_RECORD_HEADERS,
    )
    page = await read_page(collector, query)
    return next((record for record in page.records if record.offset == offset), None)


class _PageReader:
    """The records of one page; only those are kept, whatever the number of partitions."""

    def __init__(self, connections: RecordConnections, query: ReadQuery) -> None:
        self._connections = connections
        self._fetcher = PartitionFetcher(connections.pages, is_committed=query.is_committed)
        self._limit = query.limit
        self._is_backward = query.start == "end"
        self._rules = ScanRules(
            None, query.is_committed, query.is_control, query.max_value_bytes, query.max_headers
        )
        self._placed: list[_Placed] = []
        self._notes: list[str] = []
        # By partition, for the following page; a partition without more records is missing.
        self._next: dict[int, int] = {}

    async def read(self, place: TopicPartition, begin: int, span: StoredOffsets) -> None:
        """Read the records of a partition that may be on the page."""
        if self._is_backward:
            await self._read_backward(place, begin, span.start)
        else:
            found = await self._span(place, begin, span.end)
            records = found.records[: self._limit]
            has_all = len(records) == len(found.records)
            next_offset = found.read_to if has_all else records[-1].offset + 1
            if next_offset < span.end:
                self._next[place.partition] = next_offset
            self._keep(records)

    async def _read_backward(self, place: TopicPartition, end: int, start: int) -> None:
        size, is_shrunk, begin = self._limit, False, end
        found = _Span([], end)
        for _ in range(_MOST_SPANS):
            begin = max(start, end - size)
            found = await self._span(place, begin, end)
            if found.read_to < end and size > 1:
                size, is_shrunk = max(1, size // _GROWTH), True
                continue
            if len(found.records) >= self._limit or begin == start or is_shrunk:
                break
            size *= _GROWTH
        records = found.records[-self._limit :]
        if len(records) < len(found.records):
            begin = records[0].offset
        if begin > start:
            self._next[place.partition] = begin
        self._keep(reversed(records))

    async def _span(self, place: TopicPartition, begin: int, end: int) -> _Span:
        """Read from `begin`: the first records, or to `end` and keep the last ones."""
        scan = PartitionScan(place, begin, end, self._rules)
        records: list[FoundRecord] = []
        fetched_bytes = 0
        while not (scan.is_done or self._has_enough(records)) and fetched_bytes < _MOST_BYTES:
            read_bytes = await self._read_some(scan, records)
            if not read_bytes:
                break
            fetched_bytes += read_bytes
        self._notes += scan.notes
        return _Span(
            records, records[-1].offset + 1 if self._has_enough(records) else scan.position
        )

    def _has_enough(self, records: list[FoundRecord]) -> bool:
        return not self._is_backward and len(records) >= self._limit

    async def _read_some(self, scan: PartitionScan, records: list[FoundRecord]) -> int:
        """Fetch and scan once; return how many bytes were fetched."""
        try:
            row = await self._fetcher.fetch(scan.place, scan.position)
        except TooLongError:
            return await self._read_large(scan, records)
        await self._scan(scan.steps(row), records)
        if scan.needs_turn and not self._has_enough(records):
            async with self._connections.turn():
                await self._scan(scan.steps(row, in_turn=True), records)
        return len(row.records or b"")

    async def _read_large(self, scan: PartitionScan, records: list[FoundRecord]) -> int:
        async with self._connections.turn():
            client = self._connections.large()
            fetcher = PartitionFetcher(client, is_committed=self._rules.is_committed)
            try:
                row = await fetcher.fetch(scan.place, scan.position)
                await self._scan(scan.steps(row, in_turn=True), records)
                return len(row.records or b"")
            except TooLongError as error:
                raise too_large(scan.place.topic, error) from None
            finally:
                client.abort()

    async def _scan(self, steps: Iterator[list[FoundRecord]], records: list[FoundRecord]) -> None:
        while (found := await in_thread(Work.RECORDS, next, steps, None)) is not None:
            records += found
            if self._is_backward:
                # One more, to know that there are older ones.
                del records[: -self._limit - 1]
            elif len(records) >= self._limit:
                return

    def _keep(self, records: Iterable[FoundRecord]) -> None:
        """Add records of a partition in the order of the page, and drop the last ones."""
        placed = sorted([*self._placed, *self._in_order(records)])
        self._placed = placed[: self._limit]
        for dropped in placed[self._limit :]:
            record = dropped.record
            if self._is_backward:
                before = self._next.get(record.partition, 0)
                self._next[record.partition] = max(before, record.offset + 1)
            else:
                following = self._next.get(record.partition, record.offset)
                self._next[record.partition] = min(following, record.offset)

    def _in_order(self, records: Iterable[FoundRecord]) -> Iterable[_Placed]:
        # Newest first, the negative times rise.
        sign = -1 if self._is_backward else 1
        order_ms: int | None = None
        for record in records:
            time_ms = sign * record.timestamp_ms
            order_ms = time_ms if order_ms is None else max(order_ms, time_ms)
            yield _Placed((order_ms, record.partition, sign * record.offset), record)

    def page(self) -> RecordPage:
        """Return the page."""
        records = tuple(placed.record for placed in self._placed)
        return RecordPage(records, dict(sorted(self._next.items())), tuple(self._notes[:10]))
