"""Reads partitions from their leaders, and scans them in a thread.

Of each leader one response is scanned while the next one is fetched. A few leaders are read at a
time, so that a bounded number of responses is in memory. Leaders that move are followed. Large
batches are read in turn (client/records/record_connections.py).
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from wirebroker.base.clock import pause
from wirebroker.base.threads import Work, in_thread
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

    from wirebroker.client.records.record_connections import RecordConnections
    from wirebroker.client.topics.leaders import TopicPartition
    from wirebroker.console.records.leader_fetches import Rows
    from wirebroker.console.records.partition_scan import PartitionScan
    from wirebroker.console.records.queries import FoundRecord

_LEADERS_AT_ONCE: Final = 3
_MOVED: Final = PASSING | {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.KAFKA_STORAGE_ERROR}


class Package(Protocol):
    """Records that are passed on together, in the form in which they are passed on."""

    @property
    def is_full(self) -> bool:
        """Whether further records go into another package."""
        ...

    def add(self, found: list[FoundRecord]) -> bool:
        """Add the records of a step, perhaps none; called in a thread.

        Returns:
            Whether other work comes before the next step.
        """
        ...

    def close(self) -> None:
        """Release what it has; idempotent."""
        ...


PackageT = TypeVar("PackageT", bound=Package)


class Packages(Protocol[PackageT]):
    """Where packages come from and go to."""

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
        "_fetcher",
        "_is_tail",
        "_packages",
        "_places",
        "_scans",
        "_turn",
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
        self._turn = connections.turn
        self._scans = scans
        self._packages = packages
        self._is_tail = wait_ms is not None
        self._places = asyncio.Semaphore(_LEADERS_AT_ONCE)
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
            leaders = await partitions_of(self._fetcher.client, topics)
            by_leader: dict[int, list[TopicPartition]] = defaultdict(list)
            for place in open_scans:
                by_leader[leaders[place]].append(place)
            at_once = len(by_leader) if self._is_tail else min(len(by_leader), _LEADERS_AT_ONCE)
            self._fetcher.response_bytes = RESPONSE_BYTES // at_once
            await self._fetcher.client.together(
                *(self._follow(leader, places) for leader, places in by_leader.items())
            )

    async def _follow(self, leader: int, places: list[TopicPartition]) -> None:
        """Read from a leader until its partitions end or one has moved."""
        # Tails wait in leaders, which would block the other ones.
        if self._is_tail:
            await self._follow_now(leader, places)
        else:
            async with self._places:
                await self._follow_now(leader, places)

    async def _follow_now(self, leader: int, places: list[TopicPartition]) -> None:
        positions = {place: self._scans[place].position for place in places}
        fetching = self._begin_fetch(leader, positions)
        try:
            while True:
                rows = await fetching
                if rows is None:
                    return
                positions = self._next_positions(positions, rows)
                # Two large responses would be in memory.
                is_ahead = bytes_of(rows) <= self._fetcher.response_bytes
                if positions and is_ahead:
                    fetching = self._begin_fetch(leader, positions)
                if not await self._accept(rows) or not positions:
                    return
                del rows
                if not is_ahead:
                    fetching = self._begin_fetch(leader, positions)
        except TooLongError:
            await self._read_large(leader, places)
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
            await self._scan(self._scans[place], row)
        return True

    async def _is_readable(self, place: TopicPartition, row: Any) -> bool:
        """Count a row; return False if positions have to be determined again."""
        if row.error_code in _MOVED:
            await pause(RETRY_S)
            return False
        if row.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            scan = self._scans[place]
            nearest = await clamped(self._fetcher.client, {place: scan.position})
            scan.skip_to(nearest[place])
            return False
        check(row.error_code, f"{place} cannot be read")
        self.fetched_bytes += len(row.records or b"")
        return True

    async def _scan(self, scan: PartitionScan, row: Any) -> None:
        """Scan a row; what becomes large when it is decompressed is scanned in turn."""
        while True:
            steps = scan.steps(row)
            while (package := await self._step(steps)) is not None:
                await self._packages.put(package)
            if not scan.needs_turn:
                return
            package = self._packages.new()
            async with self._turn:
                await self._scan_in_turn(scan, row, package)
            await self._packages.put(package)

    async def _step(self, steps: Iterator[list[FoundRecord]]) -> PackageT | None:
        package = self._packages.new()
        if await in_thread(Work.RECORDS, _add_steps, steps, package):
            return package
        self._packages.drop(package)
        return None

    # --- in turn ---

    async def _read_large(self, leader: int, places: list[TopicPartition]) -> None:
        """Read large batches, each in its turn, until a response is small."""
        is_large = True
        while is_large and (
            positions := {
                place: self._scans[place].position
                for place in places
                if not self._scans[place].is_done
            }
        ):
            package = self._packages.new()
            async with self._turn:
                rows = await self._fetcher.fetch_large(leader, positions)
                is_large = bytes_of(rows or ()) > RESPONSE_BYTES
                for place, row in rows or ():
                    if not await self._is_readable(place, row):
                        is_large = False
                    elif row.records:
                        await self._scan_in_turn(self._scans[place], row, package)
                        places.append(places.pop(places.index(place)))  # the others come first
                del rows
            await self._packages.put(package)

    async def _scan_in_turn(self, scan: PartitionScan, row: Any, package: PackageT) -> None:
        """Scan a row up to the end of its first large batch, or until the package is full."""
        steps = scan.steps(row, in_turn=True)
        while not package.is_full:
            if not await in_thread(Work.RECORDS, _add_steps, steps, package):
                break


def _add_steps(steps: Iterator[list[FoundRecord]], package: Package) -> bool:
    """Add the records of the next steps to a package; return False if there is none."""
    has_step = False
    for found in steps:
        has_step = True
        if package.add(found):
            break
    return has_step
