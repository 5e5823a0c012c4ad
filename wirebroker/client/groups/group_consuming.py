"""Reading of records as a group member, with commits.

Offsets are committed before partitions move to another member, every few seconds, and at the end:
at least once, and exactly once unless a member is killed.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from wirebroker.base.clock import pause
from wirebroker.client.errors import ClientError
from wirebroker.client.groups.groups import committed_of
from wirebroker.client.records.consuming import PartitionsReader

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import TypeAlias

    from wirebroker.client.groups.group_membership import GroupMembership
    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.client.topics.leaders import TopicPartition
    from wirebroker.codecs.records.record import Record

    # Returns an offset for each partition.
    OffsetLookup: TypeAlias = Callable[[list[TopicPartition]], Awaitable[dict[TopicPartition, int]]]

# Delay until a rebalance is noticed; Java's default is 3 s.
_HEARTBEAT_S: Final = 1.0
# Heartbeats between commits (auto.commit.interval.ms is 5 s).
_COMMIT_EVERY: Final = 5
# Timeout of the last commit.
_GOODBYE_S: Final = 5.0


class GroupReader:
    """A reader of a member's assigned partitions."""

    __slots__ = ("_client", "_committed", "_membership", "_take")

    def __init__(
        self,
        client: KafkaClient,
        membership: GroupMembership,
        take: Callable[[TopicPartition, list[Record]], bool],
    ) -> None:
        """Use a membership; `take` is as in PartitionsReader."""
        self._client = client
        self._membership = membership
        self._take = take
        self._committed: dict[TopicPartition, int] = {}

    async def run(
        self, begin: OffsetLookup, end: OffsetLookup | None, *, read_committed: bool = False
    ) -> None:
        """Read until `take` returns False or the end, then leave the group.

        `begin` returns the first offsets of partitions without committed ones, `end` the end
        offsets; None reads forever.
        """
        try:
            while not await self._read_share(begin, end, read_committed=read_committed):
                pass
        finally:
            self._membership.abort()

    async def _read_share(
        self, begin: OffsetLookup, end: OffsetLookup | None, *, read_committed: bool
    ) -> bool:
        """Read until a rebalance; return whether everything is read."""
        partitions = await self._membership.join()
        self._committed = {
            partition: offset
            for partition, offset in (
                await committed_of(self._client, self._membership.group)
            ).items()
            if partition in partitions
        }
        fresh = [partition for partition in partitions if partition not in self._committed]
        reader = PartitionsReader(
            self._client,
            self._committed | (await begin(fresh) if fresh else {}),
            self._take,
            until=None if end is None else await end(partitions),
            read_committed=read_committed,
        )
        reading = asyncio.create_task(self._read(reader, is_bounded=end is not None))
        beating = asyncio.create_task(self._beat(reader))
        tasks = (reading, beating)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await _ended(tasks)
            await self._leave(reader)
            raise
        is_read = reading.done()
        failures = [result for result in await _ended(tasks) if isinstance(result, ClientError)]
        if failures or is_read:
            await self._leave(reader)
        if failures:
            raise failures[0]
        if not is_read:
            await self._commit(reader.positions)
        return is_read

    async def _read(self, reader: PartitionsReader, *, is_bounded: bool) -> None:
        """Read, or wait for a rebalance if there are no partitions."""
        if reader.positions or is_bounded:
            await reader.run()
            return
        await asyncio.get_running_loop().create_future()

    async def _beat(self, reader: PartitionsReader) -> None:
        """Send heartbeats until a rebalance."""
        count = 0
        while await self._membership.goes_on():
            count += 1
            if count % _COMMIT_EVERY == 0:
                await self._commit(reader.positions)
            await pause(_HEARTBEAT_S)

    async def _commit(self, positions: Mapping[TopicPartition, int]) -> None:
        """Commit changed positions; refused ones are read again by other members."""
        changed = {
            partition: offset
            for partition, offset in positions.items()
            if self._committed.get(partition) != offset
        }
        if changed and await self._membership.commit(changed) is None:
            self._committed |= changed

    async def _leave(self, reader: PartitionsReader) -> None:
        if not self._membership.is_member:
            return
        try:
            async with asyncio.timeout(_GOODBYE_S):
                await self._commit(reader.positions)
                await self._membership.leave()
        except TimeoutError:
            group = self._membership.group
            raise ClientError(
                f"group {group} does not respond: the last records may be read again"
            ) from None


async def _ended(tasks: tuple[asyncio.Task[None], ...]) -> list[BaseException | None]:
    for task in tasks:
        task.cancel()
    return await asyncio.gather(*tasks, return_exceptions=True)
