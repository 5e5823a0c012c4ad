"""Reads partitions from their leaders, and scans them in a thread.

Of each leader one response is scanned while the next one is fetched. A few leaders are read at a
time, so that a bounded number of responses is in memory. Leaders that move are followed.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.clock import pause
from wirebroker.base.threads import Work, in_thread
from wirebroker.client.errors import PASSING, ClientError, check
from wirebroker.client.records.fetching import FetchLimits, fetch_from
from wirebroker.client.topics.leaders import clamped, partitions_of
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import read_batch_header, whole_batches
from wirebroker.codecs.records.layout import HEADER_BYTES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.client.topics.leaders import TopicPartition
    from wirebroker.console.records.partition_scan import PartitionScan
    from wirebroker.console.records.queries import FoundRecord

RESPONSE_BYTES: Final = 2 << 20
PARTITION_BYTES: Final = 1 << 20
_LEADERS_AT_ONCE: Final = 3
# Records of a range exist; this is for replicas that have them a little later.
_WAIT_MS: Final = 100
_RETRY_S: Final = 0.2
_MOVED: Final = PASSING | {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.KAFKA_STORAGE_ERROR}


class TopicReader:
    """A reader of partitions of a topic.

    Attributes:
        fetched_bytes: Compressed, so far.
    """

    __slots__ = (
        "_client",
        "_failing_since",
        "_is_committed",
        "_is_tail",
        "_places",
        "_scans",
        "_take",
        "_wait_ms",
        "fetched_bytes",
    )

    def __init__(
        self,
        client: KafkaClient,
        scans: Mapping[TopicPartition, PartitionScan],
        take: Callable[[list[FoundRecord]], Awaitable[None]],
        *,
        is_committed: bool,
        wait_ms: int | None = None,
    ) -> None:
        """Store what to read; `take` is awaited with the records of each step, also with none.

        `wait_ms` is how long leaders wait for new records; None for a range that ends.
        """
        self._client = client
        self._scans = scans
        self._take = take
        self._is_committed = is_committed
        self._is_tail = wait_ms is not None
        self._wait_ms = _WAIT_MS if wait_ms is None else wait_ms
        self._places = asyncio.Semaphore(_LEADERS_AT_ONCE)
        self._failing_since: float | None = None
        self.fetched_bytes = 0

    async def run(self) -> None:
        """Read all partitions to their ends.

        Raises:
            ClientError: A leader refuses, or does not respond within the client's timeout.
        """
        while open_scans := [place for place, scan in self._scans.items() if not scan.is_done]:
            topics = sorted({place.topic for place in open_scans})
            leaders = await partitions_of(self._client, topics)
            by_leader: dict[int, list[TopicPartition]] = defaultdict(list)
            for place in open_scans:
                by_leader[leaders[place]].append(place)
            await self._client.together(
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
        fetching = asyncio.create_task(self._fetch(leader, positions))
        try:
            while True:
                rows = await fetching
                if rows is None:
                    return
                positions = self._next_positions(positions, rows)
                if positions:
                    fetching = asyncio.create_task(self._fetch(leader, positions))
                for place, row in rows:
                    if not await self._accept(place, row):
                        return
                if not positions:
                    return
        finally:
            fetching.cancel()
            await asyncio.gather(fetching, return_exceptions=True)

    async def _fetch(
        self, leader: int, positions: Mapping[TopicPartition, int]
    ) -> Sequence[tuple[TopicPartition, Any]] | None:
        """Return the rows; None after a failure that may pass."""
        limits = FetchLimits(self._wait_ms, RESPONSE_BYTES, PARTITION_BYTES)
        try:
            rows = await fetch_from(
                self._client,
                leader,
                positions.items(),
                limits,
                read_committed=self._is_committed,
            )
        except ClientError as error:
            await self._wait_to_retry(error)
            return None
        self._failing_since = None
        return rows

    async def _wait_to_retry(self, error: ClientError) -> None:
        now = self._client.clock.monotonic()
        if self._failing_since is None:
            self._failing_since = now
        if error.code or now - self._failing_since >= self._client.timeout_s:
            raise error
        await pause(_RETRY_S)

    def _next_positions(
        self,
        positions: Mapping[TopicPartition, int],
        rows: Sequence[tuple[TopicPartition, Any]],
    ) -> dict[TopicPartition, int]:
        """Return the positions of the next request; partitions without records come first."""
        following = dict(positions)
        for place, row in rows:
            end = _end_of(row.records)
            if row.error_code or end is None:
                continue
            del following[place]
            until = self._scans[place].until
            if until is None or end < until:
                following[place] = end
        return following

    async def _accept(self, place: TopicPartition, row: Any) -> bool:
        """Scan a row; return False if positions have to be determined again."""
        scan = self._scans[place]
        if row.error_code in _MOVED:
            await pause(_RETRY_S)
            return False
        if row.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            nearest = await clamped(self._client, {place: scan.position})
            scan.skip_to(nearest[place])
            return False
        check(row.error_code, f"{place} cannot be read")
        self.fetched_bytes += len(row.records or b"")
        steps = scan.steps(row)
        while (found := await in_thread(Work.RECORDS, next, steps, None)) is not None:
            await self._take(found)
        return True


def _end_of(records: memoryview | None) -> int | None:
    """Return the offset after the last whole batch, or None."""
    view = memoryview(records or b"")
    end: int | None = None
    try:
        position, size = 0, whole_batches(view)
        while position + HEADER_BYTES <= size:
            header = read_batch_header(view, position)
            end = header.last_offset + 1
            position += header.size
    except KafkaError:
        return end  # the scan reports it
    return end
