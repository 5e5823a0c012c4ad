"""Search over a whole topic, streamed, with progress."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from wirebroker.console.records.partition_scan import PartitionScan, ScanRules
from wirebroker.console.records.positions import begins_of, ends_of, ranges_of
from wirebroker.console.records.queries import SHOWN_BYTES, SHOWN_HEADERS, SearchProgress
from wirebroker.console.records.record_filter import filter_of
from wirebroker.console.records.record_stream import RecordList, RecordStream

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from wirebroker.base.clock import Clock
    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.client.topics.leaders import TopicPartition
    from wirebroker.console.model.collector import Collector
    from wirebroker.console.records.queries import FoundRecord, SearchQuery

_PROGRESS_EVERY_S: Final = 0.25


async def search(
    collector: Collector,
    query: SearchQuery,
    on_progress: Callable[[SearchProgress], None],
) -> AsyncGenerator[FoundRecord, None]:
    """Yield the matching records, partition by partition in order; closing it stops the search.

    `on_progress` is called at most four times a second, and at the end.

    Raises:
        ClientError: The topic cannot be read.
        ValueError: See `SearchQuery.check`.
    """
    query.check()
    scans = await scans_of(
        collector.client, query, most_bytes=SHOWN_BYTES, most_headers=SHOWN_HEADERS
    )
    stream = RecordStream(
        collector.record_connections, scans, RecordList, is_committed=query.is_committed
    )
    report = _Report(collector.client.clock, scans, stream, on_progress)
    try:
        async with contextlib.aclosing(stream.packages()) as packages:
            async for package in packages:
                report.perhaps()
                for record in package.records:
                    report.hits += 1
                    yield record
                    if report.hits == query.limit:
                        return
    finally:
        report.send(is_done=True)


async def scans_of(
    client: KafkaClient, query: SearchQuery, *, most_bytes: int, most_headers: int
) -> dict[TopicPartition, PartitionScan]:
    """Return a scan for each partition of a search.

    Raises:
        ClientError: The topic cannot be read.
        ValueError: The JSONPath cannot be used.
    """
    rules = ScanRules(filter_of(query), query.is_committed, False, most_bytes, most_headers)
    ranges = await ranges_of(client, query.topic, query.partitions, is_committed=query.is_committed)
    begins = await begins_of(
        client, ranges, query.start, offset=query.offset, time_ms=query.time_ms
    )
    ends = await ends_of(client, ranges, query.until_ms)
    return {place: PartitionScan(place, begins[place], ends[place], rules) for place in ranges}


class _Report:
    """Progress of a search."""

    def __init__(
        self,
        clock: Clock,
        scans: dict[TopicPartition, PartitionScan],
        stream: RecordStream[RecordList],
        on_progress: Callable[[SearchProgress], None],
    ) -> None:
        self.hits = 0
        self._clock = clock
        self._scans = scans
        self._stream = stream
        self._on_progress = on_progress
        self._began = clock.monotonic()
        self._sent_at = self._began
        self._total = sum(max(0, (scan.until or 0) - scan.begin) for scan in scans.values())

    def perhaps(self) -> None:
        """Report if the last report is old enough."""
        if self._clock.monotonic() - self._sent_at >= _PROGRESS_EVERY_S:
            self.send(is_done=False)

    def send(self, *, is_done: bool) -> None:
        """Report."""
        self._sent_at = self._clock.monotonic()
        elapsed_s = self._sent_at - self._began
        scanned = sum(scan.position - scan.begin for scan in self._scans.values())
        self._on_progress(
            SearchProgress(
                scanned,
                self._total,
                self._stream.fetched_bytes,
                self.hits,
                elapsed_s,
                scanned / elapsed_s if elapsed_s > 0 else 0.0,
                is_done,
                tuple(note for scan in self._scans.values() for note in scan.notes)[:10],
            )
        )
