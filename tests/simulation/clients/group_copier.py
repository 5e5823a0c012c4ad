"""A member of a consumer group that copies its partitions exactly once (KIP-447).

    the member:   join, sync -> OffsetFetch, stable only -> heartbeats ----> rebalance: join again
    the transfer:                    consecutive transactions, each with the generation in which
                                     it began

A patient member ends its transaction before it rejoins. Another does not, like a client with
processing threads: the group refuses its offsets, and the transaction is aborted. A new owner waits
until the former owner's transactions have ended.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.simulation.clients.copier import OFFSET_FETCH_VERSION, Scene, Transfer
from tests.simulation.clients.member import TOPIC, Habits, Member
from tests.simulation.clients.transactional_producer import RefusedError
from tests.simulation.network.link import LinkLostError
from wirebroker.base.clock import pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from tests.simulation.machine.loop import Process

_BACKOFF_S = 0.1
_NOT_YET = {ErrorCode.UNSTABLE_OFFSET_COMMIT, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}


@dataclass(frozen=True)
class CopierHabits(Habits):
    """The configuration of a copier.

    Attributes:
        transactional_id: Shared by all incarnations; None: each has its own.
        is_patient: Whether it ends its transaction before it rejoins.
    """

    transactional_id: str | None = None
    is_patient: bool = True


class GroupCopier(Member):
    """One incarnation of a member and of its producer."""

    habits: CopierHabits

    def __init__(
        self,
        process: Process,
        scene: Scene,
        *,
        group: str,
        topic_id: bytes,
        partition_count: int,
        habits: CopierHabits,
    ) -> None:
        super().__init__(
            process,
            scene.network,
            scene.model,
            group=group,
            topic_id=topic_id,
            partition_count=partition_count,
            habits=habits,
        )
        name = habits.transactional_id or process.name
        self._transfer = Transfer(process, scene, name=name, works=0.2)
        self._copying: asyncio.Task[dict[int, int] | None] | None = None
        self._refusal: RefusedError | None = None
        self._due_s = 0.0

    async def run(self) -> None:
        try:
            await self._transfer.producer.begin()
            await super().run()
        except RefusedError as error:
            self._model.count(str(error))

    async def _consume(self) -> None:
        self._beat_later()
        if self._copying is not None:
            await self._stay_until(self._copying)  # begun in another generation
        positions = None
        while not self._is_told_to_leave:
            if not self.owned:
                await pause(max(0.0, self._due_s - self.process.loop.time()))
                await self._beat()
            elif positions is None:
                positions = await self._stable_offsets()
            else:
                self._copying = self._begin_copy(positions)
                await self._stay_until(self._copying)
                positions = self._copying.result()

    def _begin_copy(self, positions: dict[int, int]) -> asyncio.Task[dict[int, int] | None]:
        fields = {"group_id": self.group, "generation_id_or_member_epoch": self.generation}
        metadata = self._as_member(fields, has_generation=False)
        task = self.process.spawn(self._copy(metadata, positions))
        task.add_done_callback(self._copied)
        return task

    async def _copy(
        self, metadata: dict[str, Any], positions: dict[int, int]
    ) -> dict[int, int] | None:
        try:
            return await self._transfer.copy(metadata, positions)
        except RefusedError as error:
            self._refusal = error
            return None

    def _copied(self, task: asyncio.Task[Any]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._network.observer.failed(error)

    async def _commit(self) -> None:
        """End the current transaction, with its offsets, before a rejoin."""
        if self.habits.is_patient and self._copying is not None:
            await asyncio.wait([self._copying])

    # -- staying in the group ----------------------------------------------------------------

    async def _stay_until(self, task: asyncio.Task[Any]) -> None:
        """Send heartbeats until a task is done.

        Raises:
            RejoinError, FencedError: The group requires it; the task continues.
            RefusedError: The producer is closed.
        """
        while not task.done():
            left_s = max(0.0, self._due_s - self.process.loop.time())
            await asyncio.wait([task], timeout=left_s)
            await self._beat()
        if self._refusal is not None:
            raise self._refusal

    def _beat_later(self) -> None:
        self._due_s = self.process.loop.time() + self.habits.heartbeat_interval_s

    async def _beat(self) -> None:
        if self.process.loop.time() < self._due_s:
            return
        self._beat_later()
        try:
            await self._heartbeat()
        except LinkLostError:
            await pause(_BACKOFF_S)

    async def _stable_offsets(self) -> dict[int, int]:
        """Return the committed offsets once no transaction is pending."""
        topic = {"name": TOPIC, "partition_indexes": list(self.owned)}
        request = {"topics": [topic], "require_stable": True}
        while True:
            await self._beat()
            try:
                answer = await self._ask(ApiKey.OFFSET_FETCH, OFFSET_FETCH_VERSION, request)
                partitions = [
                    partition for topic in answer.topics for partition in topic.partitions
                ]
                errors = {answer.error_code, *(partition.error_code for partition in partitions)}
                errors.discard(ErrorCode.NONE)
                if not errors:
                    return {
                        partition.partition_index: max(0, partition.committed_offset)
                        for partition in partitions
                    }
                for error in errors - _NOT_YET:
                    await self._check(error)
            except LinkLostError:
                pass
            await pause(_BACKOFF_S)
