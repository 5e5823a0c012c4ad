"""The live tail of a topic."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from wirebroker.client.errors import ClientError
from wirebroker.console.records.partition_scan import PartitionScan, ScanRules
from wirebroker.console.records.positions import ranges_of
from wirebroker.console.records.record_stream import NewestRecords, RecordStream

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from wirebroker.console.model.collector import Collector
    from wirebroker.console.records.queries import FoundRecord, ReadQuery
    from wirebroker.console.records.record_filter import RecordFilter

_WAIT_MS: Final = 500


class TailLosses:
    """What a tail did not yield.

    Attributes:
        skipped: Records of large batches of which only the newest were kept.
        notes: Sentences on batches that cannot be shown.
    """

    __slots__ = ("notes", "skipped")

    def __init__(self) -> None:
        self.skipped = 0
        self.notes: list[str] = []


async def tail(
    collector: Collector,
    query: ReadQuery,
    record_filter: RecordFilter | None = None,
    losses: TailLosses | None = None,
) -> AsyncGenerator[FoundRecord, None]:
    """Yield the matching records that are written from now on, or from `query.positions`.

    It ends when it is closed. A slow reader gets the records later, but only the newest of a large
    batch; `losses` is kept up to date.

    Raises:
        ClientError: The topic cannot be read.
    """
    client = collector.client
    rules = ScanRules(
        record_filter,
        query.is_committed,
        query.is_control,
        query.max_value_bytes,
        query.max_headers,
    )
    ranges = await ranges_of(client, query.topic, query.partitions, is_committed=query.is_committed)
    positions = query.positions or {}
    scans = {
        place: PartitionScan(
            place, span.nearest(positions.get(place.partition, span.end)), None, rules
        )
        for place, span in ranges.items()
    }
    stream = RecordStream(
        collector.record_connections,
        scans,
        NewestRecords,
        is_committed=query.is_committed,
        wait_ms=_WAIT_MS,
    )
    async with contextlib.aclosing(stream.packages()) as packages:
        async for package in packages:
            if losses is not None:
                losses.skipped += package.skipped
                losses.notes = [note for scan in scans.values() for note in scan.notes][:10]
            for record in package.records:
                yield record
    # All partitions ended, because they cannot be read.
    raise ClientError("; ".join(note for scan in scans.values() for note in scan.notes[-1:]))
