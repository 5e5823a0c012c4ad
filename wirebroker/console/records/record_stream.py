"""Records of a topic as an asynchronous iterator, with a bounded number of them in memory."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Generic

from wirebroker.console.records.topic_reader import PackageT, TopicReader

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from wirebroker.client.records.record_connections import RecordConnections
    from wirebroker.client.topics.leaders import TopicPartition
    from wirebroker.console.records.partition_scan import PartitionScan
    from wirebroker.console.records.queries import FoundRecord

# Packages that were scanned and not taken.
_MOST_PACKAGES: Final = 2
# A list takes this many records of a large batch. The batch is scanned again for the others.
_MOST_LISTED: Final = 500


class RecordList:
    """A package of records as a list."""

    __slots__ = ("records",)

    def __init__(self) -> None:
        self.records: list[FoundRecord] = []

    @property
    def is_full(self) -> bool:
        """See Package."""
        return len(self.records) >= _MOST_LISTED

    def add(self, found: list[FoundRecord]) -> bool:
        """See Package."""
        self.records += found
        return True

    def close(self) -> None:
        """See Package."""


class NewestRecords(RecordList):
    """A package of the newest records, for a reader that may miss some.

    Attributes:
        skipped: How many were dropped.
    """

    __slots__ = ("skipped",)

    def __init__(self) -> None:
        super().__init__()
        self.skipped = 0

    @property
    def is_full(self) -> bool:
        """See Package."""
        return False

    def add(self, found: list[FoundRecord]) -> bool:
        """See Package."""
        super().add(found)
        dropped = max(0, len(self.records) - _MOST_LISTED)
        self.skipped += dropped
        del self.records[:dropped]
        return True


class RecordStream(Generic[PackageT]):
    """The records that scans find, in packages."""

    def __init__(
        self,
        connections: RecordConnections,
        scans: Mapping[TopicPartition, PartitionScan],
        new_package: Callable[[], PackageT],
        *,
        is_committed: bool,
        wait_ms: int | None = None,
    ) -> None:
        self._new_package = new_package
        # Packages that are not closed.
        self._open: set[PackageT] = set()
        self._waiting: asyncio.Queue[PackageT | None] = asyncio.Queue(_MOST_PACKAGES)
        self._reader = TopicReader(
            connections, scans, self, is_committed=is_committed, wait_ms=wait_ms
        )

    # --- called by the reader ---

    def new(self) -> PackageT:
        """See Packages."""
        package = self._new_package()
        self._open.add(package)
        return package

    async def put(self, package: PackageT) -> None:
        """See Packages."""
        await self._waiting.put(package)

    def drop(self, package: PackageT) -> None:
        """See Packages."""
        package.close()
        self._open.discard(package)

    # --- called by the owner ---

    @property
    def fetched_bytes(self) -> int:
        """Bytes that were read so far, compressed."""
        return self._reader.fetched_bytes

    async def packages(self) -> AsyncGenerator[PackageT, None]:
        """Yield the records of each step, also of empty ones; closing it ends the reading.

        Raises:
            ClientError: The topic cannot be read.
        """
        task = asyncio.create_task(self._run())
        try:
            while (package := await self._waiting.get()) is not None:
                yield package
                self.drop(package)
            await task
        finally:
            task.cancel()
            try:
                await asyncio.gather(task, return_exceptions=True)
            finally:
                self._reader.close()
                while self._open:
                    self._open.pop().close()

    async def _run(self) -> None:
        try:
            await self._reader.run()
        except Exception:  # raised again, after the end is passed on
            await self._waiting.put(None)
            raise
        await self._waiting.put(None)
