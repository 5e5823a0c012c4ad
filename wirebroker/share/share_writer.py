"""Writes of share partitions to the persister, and to the dead-letter topics.

Source: Kafka's SharePartition.rollbackOrProcessStateUpdates, initiateDLQAndArchive,
releaseAcquisitionLockOnTimeout.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import TYPE_CHECKING

from wirebroker.base.clock import Slices
from wirebroker.coordinator.share_partitions.state_change import archive_dead
from wirebroker.coordinator.share_state.state import StateWrite
from wirebroker.share.persisted import error_of

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from typing import Any

    from wirebroker.base.clock import Clock
    from wirebroker.codecs.errors import KafkaError
    from wirebroker.coordinator.share_partitions.state_change import DeadRecords, StateChange
    from wirebroker.coordinator.share_state.state import SharePartitionKey, StateBatch
    from wirebroker.share.dead_letters import DeadLetters
    from wirebroker.share.leader_share import LeaderShare
    from wirebroker.share.persister import Persister

logger = logging.getLogger(__name__)


class ShareWriter:
    """The writes in progress."""

    __slots__ = (
        "_clock",
        "_dead_letters",
        "_idle",
        "_now_ms",
        "_on_error",
        "_persister",
        "_tasks",
        "_writing",
    )

    def __init__(
        self,
        persister: Persister,
        dead_letters: DeadLetters,
        *,
        clock: Clock,
        now_ms: Callable[[], float],
        on_error: Callable[[LeaderShare, KafkaError], None],
    ) -> None:
        """`on_error` receives the share partitions whose acknowledgements are not persisted."""
        self._persister = persister
        self._dead_letters = dead_letters
        self._clock = clock
        self._now_ms = now_ms
        self._on_error = on_error
        self._tasks: set[asyncio.Task[Any]] = set()
        self._writing: Counter[SharePartitionKey] = Counter()
        # Set at the end of a write; a new one for each wait.
        self._idle = asyncio.Event()

    def run(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Start work that ends with the broker."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def stop(self) -> None:
        """Cancel the work in progress."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def until_written(self, key: SharePartitionKey) -> None:
        """Wait until no write of a share partition is in progress.

        Its state must not be read before.
        """
        while self._writing[key]:
            await self._idle.wait()

    async def _store(
        self, group_id: str, writes: dict[LeaderShare, StateWrite]
    ) -> dict[LeaderShare, KafkaError | None]:
        self._writing.update(share.key for share in writes)
        try:
            results = await self._persister.write(
                group_id, {_partition_of(share): write for share, write in writes.items()}
            )
        finally:
            for share in writes:
                self._writing[share.key] -= 1
                if not self._writing[share.key]:
                    del self._writing[share.key]
            self._idle.set()
            self._idle = asyncio.Event()
        failures = {share: results[_partition_of(share)] for share in writes}
        return {
            share: None if failure is None else error_of(failure)
            for share, failure in failures.items()
        }

    async def persist(
        self, group_id: str, changes: Sequence[tuple[LeaderShare, StateChange]]
    ) -> dict[LeaderShare, KafkaError]:
        """Persist changes of different share partitions and complete them; return the errors."""
        changes = [pair for pair in changes if pair[1].batches]
        if not changes:
            return {}
        writes = {share: _write_of(share, change.batches) for share, change in changes}
        try:
            results = await self._store(group_id, writes)
        except BaseException:
            for _, change in changes:
                change.roll_back(self._now_ms())
            raise
        errors: dict[LeaderShare, KafkaError] = {}
        slices = Slices(self._clock)
        for share, change in changes:
            error = results[share]
            if error is None:
                self.bury(share, await slices.run(change.commit()))
                share.state.move_start()
            else:
                errors[share] = error
                change.roll_back(self._now_ms())
                self._on_error(share, error)
            share.wake()
        return errors

    async def persist_now(self, share: LeaderShare, batches: Sequence[StateBatch]) -> None:
        """Persist states that are in force already, whatever the persister says."""
        results = await self._store(share.key.group_id, {share: _write_of(share, batches)})
        error = results[share]
        if error is not None:
            logger.info("cannot persist the state of %s: %s", share.key, error)
        share.state.move_start()
        share.wake()

    def bury(self, share: LeaderShare, dead: Sequence[DeadRecords]) -> None:
        """Write records to the dead-letter topic, and archive them."""
        share.dead.extend(dead)
        if share.dead and not share.is_burying:
            share.is_burying = True
            self.run(self._write_dead(share), f"dead letters of {share.key}")

    async def _write_dead(self, share: LeaderShare) -> None:
        try:
            while share.dead and share.is_active:
                dead = tuple(share.dead)
                await self._dead_letters.write(share.key, share.partition, dead)
                for _ in dead:
                    share.dead.popleft()
                batches = [archive_dead(share.state, records) for records in dead]
                await self.persist_now(share, batches)
        finally:
            share.is_burying = False


def _partition_of(share: LeaderShare) -> tuple[bytes, int]:
    return share.key.topic_id, share.key.partition


def _write_of(share: LeaderShare, batches: Sequence[StateBatch]) -> StateWrite:
    state = share.state
    return StateWrite(
        state.state_epoch,
        state.leader_epoch,
        state.start_offset,
        state.delivery_complete_count,
        tuple(batches),
    )
