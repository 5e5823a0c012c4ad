"""Reads partitions from their leaders, and scans them in a thread.

While one response of a leader is scanned, the next one is fetched. A few leaders are read at a
time, so that a bounded number of responses is in memory. Leaders that move are followed. Large
batches are read in turns (client/records/record_connections.py).
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from wirebroker.base.clock import pause
from wirebroker.base.threads import Work, begin_in_thread, in_thread
from wirebroker.client.errors import PASSING, TooLongError, check
from wirebroker.client.topics.leaders import clamped, partitions_of
from wirebroker.codecs.errors import ErrorCode
from wirebroker.console.records.leader_fetches import (
    RESPONSE_BYTES,
    RETRY_S,
    LeaderFetcher,
    bytes_of,
    end_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.client.records.record_connections import RecordConnections
    from wirebroker.client.topics.leaders import TopicPartition
    from wirebroker.console.records.leader_fetches import Rows
    from wirebroker.console.records.partition_scan import PartitionScan
    from wirebroker.console.records.queries import FoundRecord

_LEADERS_AT_ONCE: Final = 3
_MOVED: Final = PASSING | {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.KAFKA_STORAGE_ERROR}


class Package(Protocol):
    """Records on their way to the reader: a list, or lines of a file."""

    @property
    def is_full(self) -> bool:
        """Whether further records go into another package."""
        ...

    def add(self, found: list[FoundRecord]) -> bool:
        """Add the records of a step, perhaps none; called in a thread.

        Returns:
            True if the thread should return, so that other work can run.
        """
        ...

    def close(self) -> None:
        """Free the memory or the temporary file. Idempotent."""
        ...


PackageT = TypeVar("PackageT", bound=Package)


class Packages(Protocol[PackageT]):
    """Source and destination of packages."""

    def new(self) -> PackageT:
        """Return an empty package, for `put` or `drop`."""
        ...

    async def put(self, package: PackageT) -> None:
        """Pass a package on, perhaps an empty one, when there is room."""
        ...

    def drop(self, package: PackageT) -> None:
        """Close a package that is not needed."""
        ...


class TopicReader(Generic[PackageT]):
    """A reader of partitions of a topic.

    Attributes:
        fetched_bytes: Compressed, so far.
    """

    __slots__ = (
        "_connections",
        "_fetcher",
        "_is_tail",
        "_must_look_up",
        "_packages",
        "_places",
        "_scans",
        "fetched_bytes",
    )

    def __init__(
        self,
        connections: RecordConnections,
        scans: Mapping[TopicPartition, PartitionScan],
        packages: Packages[PackageT],
        *,
        is_committed: bool,
        wait_ms: int | None = None,
    ) -> None:
        """Store what to read.

        `wait_ms` is how long leaders wait for new records; None for a range that ends.
        """
        self._fetcher = LeaderFetcher(connections, is_committed=is_committed, wait_ms=wait_ms)
        self._connections = connections
        self._scans = scans
        self._packages = packages
        self._is_tail = wait_ms is not None
        self._places = asyncio.Semaphore(_LEADERS_AT_ONCE)
        # A leader has moved or failed. The others end too, so that all are looked up again.
        self._must_look_up = False
        self.fetched_bytes = 0

    def close(self) -> None:
        """Close the connections."""
        self._fetcher.close()

    async def run(self) -> None:
        """Read all partitions to their ends.

        Raises:
            ClientError: A leader refuses, or does not respond within the client's timeout.
        """
        while open_scans := [place for place, scan in self._scans.items() if not scan.is_done]:
            topics = sorted({place.topic for place in open_scans})
            leaders = await partitions_of(self._fetcher.metadata, topics)
            by_leader: dict[int, list[TopicPartition]] = defaultdict(list)
            for place in open_scans:
                by_leader[leaders[place]].append(place)
            at_once = len(by_leader) if self._is_tail else min(len(by_leader), _LEADERS_AT_ONCE)
            self._fetcher.response_bytes = RESPONSE_BYTES // at_once
            self._must_look_up = False
            await self._fetcher.metadata.together(
                *(self._follow(leader, places) for leader, places in by_leader.items())
            )

    async def _follow(self, leader: int, places: list[TopicPartition]) -> None:
        """Read from a leader until its partitions end or one has moved."""
        # The requests of a tail wait in the brokers, so a limit would block other leaders.
        if self._is_tail:
            await self._follow_now(leader, places)
        else:
            async with self._places:
                await self._follow_now(leader, places)

    async def _follow_now(self, leader: int, places: list[TopicPartition]) -> None:
        while places := [place for place in places if not self._scans[place].is_done]:
            try:
                await self._follow_small(leader, places)
            except TooLongError:
                if await self._read_large(leader, places):
                    continue
            if any(not self._scans[place].is_done for place in places):
                self._must_look_up = True
            return

    async def _follow_small(self, leader: int, places: list[TopicPartition]) -> None:
        """Read until the partitions end or one has moved.

        Raises:
            TooLongError: The next response is large.
        """
        positions = {place: self._scans[place].position for place in places}
        fetching = self._begin_fetch(leader, positions)
        try:
            while True:
                rows = await fetching
                if rows is None:
                    return
                positions = self._next_positions(positions, rows)
                # After a large response, another one in memory would be too much.
                is_ahead = bytes_of(rows) <= self._fetcher.response_bytes
                if positions and is_ahead:
                    fetching = self._begin_fetch(leader, positions)
                is_accepted = await self._accept(rows)
                if not is_accepted or not positions or self._must_look_up:
                    return
                del rows
                if not is_ahead:
                    fetching = self._begin_fetch(leader, positions)
        finally:
            fetching.cancel()
            await asyncio.gather(fetching, return_exceptions=True)

    def _begin_fetch(
        self, leader: int, positions: Mapping[TopicPartition, int]
    ) -> asyncio.Task[Rows | None]:
        return asyncio.create_task(self._fetcher.fetch(leader, positions))

    def _next_positions(
        self, positions: Mapping[TopicPartition, int], rows: Rows
    ) -> dict[TopicPartition, int]:
        """Return the positions of the next request; partitions without records come first."""
        following = dict(positions)
        for place, row in rows:
            end = end_of(row.records)
            if row.error_code or end is None:
                continue
            del following[place]
            until = self._scans[place].until
            if until is None or end < until:
                following[place] = end
        return following

    async def _accept(self, rows: Rows) -> bool:
        """Scan rows; return False if positions have to be determined again."""
        for place, row in rows:
            if not await self._is_readable(place, row):
                return False
            if row.records:
                await self._scan(self._scans[place], row)
        return True

    async def _is_readable(self, place: TopicPartition, row: Any) -> bool:
        """Count a row; return False if positions have to be determined again."""
        if row.error_code in _MOVED:
            await pause(RETRY_S)
            return False
        if row.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            scan = self._scans[place]
            nearest = await clamped(self._fetcher.metadata, {place: scan.position})
            scan.skip_to(nearest[place])
            return False
        check(row.error_code, f"{place} cannot be read")
        self.fetched_bytes += len(row.records or b"")
        return True

    async def _scan(self, scan: PartitionScan, row: Any) -> None:
        """Scan a row; batches that are large when decompressed are scanned in turns."""
        while True:
            steps = scan.steps(row)
            while (package := await self._step(steps)) is not None:
                await self._packages.put(package)
            if not scan.needs_turn:
                return
            package = self._packages.new()
            async with self._connections.turn():
                await self._scan_in_turn(scan, row, package)
            await self._packages.put(package)

    async def _step(self, steps: Iterator[list[FoundRecord]]) -> PackageT | None:
        package = self._packages.new()
        if await in_thread(Work.RECORDS, _add_steps, steps, package):
            return package
        self._packages.drop(package)
        return None

    # --- in a turn ---

    async def _read_large(self, leader: int, places: list[TopicPartition]) -> bool:
        """Read large batches, each in its turn, until a response is small.

        Returns:
            False if positions have to be determined again.
        """
        client = self._connections.large()
        try:
            is_large = True
            while is_large and (
                positions := {
                    place: self._scans[place].position
                    for place in places
                    if not self._scans[place].is_done
                }
            ):
                package = self._packages.new()
                async with self._connections.turn():
                    is_large, failed = await self._take_turn(client, leader, positions, package)
                # Partitions that were not read come first.
                places.sort(key=lambda place: self._scans[place].position != positions.get(place))
                await self._packages.put(package)
                for place, row in failed:
                    if not await self._is_readable(place, row):
                        return False
            return True
        finally:
            client.abort()

    async def _take_turn(
        self,
        client: KafkaClient,
        leader: int,
        positions: Mapping[TopicPartition, int],
        package: PackageT,
    ) -> tuple[bool, Rows]:
        """Fetch and scan; return whether the response was large, and the rows with an error."""
        rows = await self._fetcher.fetch_large(client, leader, positions) or ()
        size = bytes_of(rows)
        self.fetched_bytes += size
        for place, row in rows:
            if row.records:
                await self._scan_in_turn(self._scans[place], row, package)
        failed = [(place, row) for place, row in rows if row.error_code]
        return size > self._fetcher.response_bytes, failed

    async def _scan_in_turn(self, scan: PartitionScan, row: Any, package: PackageT) -> None:
        """Scan a row up to the end of its first large batch, or until the package is full."""
        steps = scan.steps(row, in_turn=True)
        while not package.is_full:
            step = begin_in_thread(Work.RECORDS, _add_steps, steps, package)
            try:
                has_step = await asyncio.shield(step)
            except asyncio.CancelledError:
                await asyncio.wait({step})  # the turn lasts until the thread has finished
                raise
            if not has_step:
                break


def _add_steps(steps: Iterator[list[FoundRecord]], package: Package) -> bool:
    """Add the records of the next steps to a package; return False if there is none."""
    has_step = False
    for found in steps:
        has_step = True
        if package.add(found):
            break
    return has_step
