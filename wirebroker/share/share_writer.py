"""Changes of share partitions: begun, written to the persister, completed or rolled back.

While a share partition is changing, its state is not loaded again: neither an acknowledgement nor
an expired lock is stored after a newer share partition has read the state.

Source: Kafka's SharePartition.rollbackOrProcessStateUpdates, initiateDLQAndArchive,
releaseAcquisitionLockOnTimeout.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from typing import TYPE_CHECKING

from wirebroker.base.clock import Slices, finish
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.share_partitions.release import Expired, release_expired
from wirebroker.coordinator.share_partitions.state_change import archive_dead
from wirebroker.share.persisted import error_of
from wirebroker.share.state_writes import write_of

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
    from typing import Any

    from wirebroker.base.clock import Clock, Steps
    from wirebroker.coordinator.share_partitions.share_partition import ShareLimits
    from wirebroker.coordinator.share_partitions.state_change import DeadRecords, StateChange
    from wirebroker.coordinator.share_state.state import (
        SharePartitionKey,
        StateBatch,
        StateWrite,
    )
    from wirebroker.share.dead_letters import DeadLetters
    from wirebroker.share.leader_share import LeaderShare
    from wirebroker.share.persister import Persister

logger = logging.getLogger(__name__)

Changes = list[tuple["LeaderShare", "StateChange"]]


class ShareWriter:
    """The changes in progress."""

    __slots__ = (
        "_changing",
        "_clock",
        "_dead_letters",
        "_idle",
        "_now_ms",
        "_on_error",
        "_on_fault",
        "_persister",
        "_tasks",
    )

    def __init__(
        self,
        persister: Persister,
        dead_letters: DeadLetters,
        *,
        clock: Clock,
        now_ms: Callable[[], float],
        on_error: Callable[[LeaderShare, KafkaError], None],
        on_fault: Callable[[LeaderShare], object],
    ) -> None:
        """Use a persister and dead letters.

        `on_error` receives the share partitions whose acknowledgements are not persisted,
        `on_fault` those whose state is not known to be correct after a bug.
        """
        self._persister = persister
        self._dead_letters = dead_letters
        self._clock = clock
        self._now_ms = now_ms
        self._on_error = on_error
        self._on_fault = on_fault
        self._tasks: set[asyncio.Task[Any]] = set()
        self._changing: Counter[SharePartitionKey] = Counter()
        # Set at the end of a change; a new one for each wait.
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

    async def until_unchanged(self, key: SharePartitionKey) -> None:
        """Wait until no change of a share partition is in progress.

        Its state must not be read before.
        """
        while self._changing[key]:
            await self._idle.wait()

    def _end(self, key: SharePartitionKey) -> None:
        """Note the end of a change."""
        self._changing[key] -= 1
        if not self._changing[key]:
            del self._changing[key]
        self._idle.set()
        self._idle = asyncio.Event()

    # -- changes ---------------------------------------------------------------------------------

    async def begin(
        self, share: LeaderShare, steps: Steps[StateChange], slices: Slices
    ) -> StateChange:
        """Run the steps that begin a change; `persist` or `abandon` ends it.

        Raises:
            KafkaError: The change is refused, or its steps have failed.
        """
        self._changing[share.key] += 1
        try:
            return await slices.run(steps)
        except KafkaError:
            self._end(share.key)
            share.wake()
            raise
        except BaseException as fault:
            steps.close()
            self._end(share.key)
            if not isinstance(fault, Exception):
                raise
            raise self._failed(share, fault) from None

    def abandon(self, changes: Iterable[tuple[LeaderShare, StateChange]]) -> None:
        """Roll back changes that are not persisted."""
        for share, change in changes:
            finish(change.roll_back(self._now_ms))
            self._end(share.key)
            share.wake()

    async def persist(self, group_id: str, changes: Changes) -> dict[LeaderShare, KafkaError]:
        """Persist changes of different share partitions and complete them; return the errors."""
        pending = deque(changes)
        errors: dict[LeaderShare, KafkaError] = {}
        try:
            slices = Slices(self._clock)
            writes: dict[LeaderShare, StateWrite] = {}
            for share, change in changes:
                if change.batches:
                    writes[share] = await slices.run(write_of(share.state, change.batches))
                await slices.turn()
            results = await self._store(group_id, writes)
            slices = Slices(self._clock)
            while pending:
                share, change = pending[0]
                error = await self._complete(share, change, results.get(share), slices)
                if error is not None:
                    errors[share] = error
                pending.popleft()
                self._end(share.key)
                await slices.turn()
        finally:
            self.abandon(pending)
        return errors

    async def _complete(
        self, share: LeaderShare, change: StateChange, error: KafkaError | None, slices: Slices
    ) -> KafkaError | None:
        try:
            if error is None:
                self.bury(share, await slices.run(change.commit()))
                share.state.move_start()
            else:
                await slices.run(change.roll_back(self._now_ms))
                self._on_error(share, error)
        except Exception as fault:  # noqa: BLE001 - logged by _failed
            error = self._failed(share, fault)
        share.wake()
        return error

    def _failed(self, share: LeaderShare, fault: Exception) -> KafkaError:
        """Log an exception, which is a bug, and remove the share partition: it is loaded again."""
        logger.error("a change of the share partition %s failed", share.key, exc_info=fault)
        self._on_fault(share)
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)

    async def _store(
        self, group_id: str, writes: Mapping[LeaderShare, StateWrite]
    ) -> dict[LeaderShare, KafkaError | None]:
        if not writes:
            return {}
        try:
            results = await self._persister.write(
                group_id, {_partition_of(share): write for share, write in writes.items()}
            )
            failures = {share: results[_partition_of(share)] for share in writes}
        except Exception:  # each share partition must get its result
            logger.exception("cannot persist %d share partitions of %s", len(writes), group_id)
            return dict.fromkeys(writes, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
        return {
            share: None if failure is None else error_of(failure)
            for share, failure in failures.items()
        }

    # -- states that are in force already --------------------------------------------------------

    async def release_expired(
        self, share: LeaderShare, limits: ShareLimits, now_ms: float
    ) -> Expired:
        """Release the expired locks of a share partition, and start to persist that."""
        expired = Expired()
        self._changing[share.key] += 1
        try:
            steps = release_expired(share.state, limits, now_ms, expired)
            await Slices(self._clock).run(steps)
        except Exception as fault:  # noqa: BLE001 - logged by _failed
            self._failed(share, fault)
        except BaseException:
            self._end(share.key)
            raise
        if not expired.batches:
            self._end(share.key)
            return expired
        work = self._persist_begun(share, expired.batches)
        self.run(work, f"expired locks of {share.key}")
        self.bury(share, expired.dead)
        share.wake()
        return expired

    async def _persist_now(self, share: LeaderShare, batches: Sequence[StateBatch]) -> None:
        """Persist states that are in force already, whatever the persister says."""
        self._changing[share.key] += 1
        await self._persist_begun(share, batches)

    async def _persist_begun(self, share: LeaderShare, batches: Sequence[StateBatch]) -> None:
        """Do as `_persist_now` for a change that was begun before."""
        try:
            write = await Slices(self._clock).run(write_of(share.state, batches))
            results = await self._store(share.key.group_id, {share: write})
        finally:
            self._end(share.key)
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
                try:
                    await self._dead_letters.write(share.key, share.partition, dead)
                except Exception:  # the records are archived all the same
                    logger.exception("%s: records are archived without dead letters", share.key)
                slices = Slices(self._clock)
                batches: list[StateBatch] = []
                for _ in dead:
                    batches.append(archive_dead(share.state, share.dead.popleft()))
                    await slices.turn()
                await self._persist_now(share, batches)
        finally:
            share.is_burying = False


def _partition_of(share: LeaderShare) -> tuple[bytes, int]:
    return share.key.topic_id, share.key.partition
