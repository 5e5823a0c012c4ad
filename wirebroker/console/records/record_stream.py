"""Records of a topic as an asynchronous iterator, with a bounded number of them in memory."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from wirebroker.console.records.topic_reader import TopicReader

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.client.topics.leaders import TopicPartition
    from wirebroker.console.records.partition_scan import PartitionScan
    from wirebroker.console.records.queries import FoundRecord

# Steps that were scanned and not taken; each has up to 1 MiB and one record.
_MOST_STEPS: Final = 4


class RecordStream:
    """The records that scans find, in lists."""

    def __init__(
        self,
        client: KafkaClient,
        scans: Mapping[TopicPartition, PartitionScan],
        *,
        is_committed: bool,
        wait_ms: int | None = None,
    ) -> None:
        self._steps: asyncio.Queue[list[FoundRecord] | None] = asyncio.Queue(_MOST_STEPS)
        self._reader = TopicReader(
            client, scans, self._steps.put, is_committed=is_committed, wait_ms=wait_ms
        )

    @property
    def fetched_bytes(self) -> int:
        """Bytes that were read so far, compressed."""
        return self._reader.fetched_bytes

    async def lists(self) -> AsyncGenerator[list[FoundRecord], None]:
        """Yield the records of each step, also empty lists; closing it ends the reading.

        Raises:
            ClientError: The topic cannot be read.
        """
        task = asyncio.create_task(self._run())
        try:
            while (found := await self._steps.get()) is not None:
                yield found
            await task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _run(self) -> None:
        try:
            await self._reader.run()
        except Exception:  # raised again, after the end is passed on
            await self._steps.put(None)
            raise
        await self._steps.put(None)
