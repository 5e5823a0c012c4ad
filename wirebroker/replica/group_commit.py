"""Group commit: syncs the appended records of all partitions of a broker together.

A partition is added when its high watermark has to wait for the disk: always with
`wirebroker.durability=fsync`, otherwise when flush.messages is reached or a flush is requested.
Records appended during a round wait for the next one.

From MANY_FILES on, one syncfs replaces the single syncs where it reports errors reliably: 500 dirty
files take 3 ms instead of 19.

A round does not count records of a log that was truncated meanwhile, whose offsets now hold other
records.

Source: Kafka's UnifiedLog.flush; Gray and Reuter's group commit; "fsyncgate" (PostgreSQL, 2018).
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, NamedTuple

from wirebroker.base.clock import pause
from wirebroker.base.integer_histogram import IntegerHistogram
from wirebroker.base.request_meters import STOPWATCH
from wirebroker.base.threads import Work, in_thread
from wirebroker.codecs.errors import without_frames
from wirebroker.disks.data_directory import is_disk_full, is_shortage
from wirebroker.replica.deadlines import Deadlines

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wirebroker.disks.data_directory import DataDirectory
    from wirebroker.replica.replica_state import ReplicaState
    from wirebroker.storage.log.flush import FlushTarget

logger = logging.getLogger(__name__)

# 8 dirty files take 1.0 ms one by one and 0.2 ms with syncfs.
MANY_FILES = 8
# More threads gained nothing: 500 files take 19 ms with 16 and 30 ms with 64.
_THREADS = Work.SYNCS.most_threads
# Delay before retrying after a lack of file descriptors or memory.
_SHORTAGE_PAUSE_S = 0.1


class _Sync(NamedTuple):
    partition: ReplicaState
    target: FlushTarget


class GroupCommit:
    """The syncs of one broker.

    Attributes:
        is_always: Whether records must be on disk before they count as committed.
        flush_times: Microseconds that each sync of one or more logs took in its thread.
    """

    __slots__ = (
        "_dirty",
        "_missing",
        "_on_failure",
        "_task",
        "deadlines",
        "flush_times",
        "is_always",
        "rounds",
    )

    # _dirty is empty or _task runs.

    def __init__(
        self, *, is_always: bool, on_failure: Callable[[DataDirectory, OSError], None]
    ) -> None:
        self.deadlines = Deadlines()
        self.is_always = is_always
        self.rounds = 0
        self.flush_times = IntegerHistogram()
        self._on_failure = on_failure
        self._dirty: dict[ReplicaState, None] = {}
        # Partitions whose files were not found in the last round.
        self._missing: set[ReplicaState] = set()
        self._task: asyncio.Task[None] | None = None

    def add(self, partition: ReplicaState) -> None:
        """Sync everything appended to a partition so far and notify its waiters."""
        self._dirty[partition] = None
        if self._task is None:
            # In a separate turn, so that requests of one wake-up of the loop share a round.
            self._task = asyncio.create_task(self._run(), name="group commit")

    async def until_idle(self) -> None:
        """Wait until all syncs have ended."""
        while self._task is not None:
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        try:
            while self._dirty:
                is_short = await self._round()
                if is_short:
                    await pause(_SHORTAGE_PAUSE_S)
        finally:
            self._task = None

    async def _round(self) -> bool:
        """Sync all dirty partitions; return whether to retry."""
        dirty, self._dirty = self._dirty, {}
        syncs: dict[DataDirectory, list[_Sync]] = {}
        is_short = False
        for partition in dirty:
            if partition.is_appending:
                # A writing thread would replace the same files.
                await partition.until_settled()
            if partition.is_retired or not partition.directory.is_online:
                continue
            directory = partition.directory
            try:
                target = partition.log.flush_target()
            except OSError as error:
                is_short |= self._failed(directory, partition, error)
                continue
            if target is not None:
                syncs.setdefault(directory, []).append(_Sync(partition, target))
        if syncs:
            self.rounds += 1
            for directory, done, errors in await self._sync(syncs):
                is_short |= self._note(directory, done, errors)
        return is_short

    async def _sync(
        self, syncs: dict[DataDirectory, list[_Sync]]
    ) -> list[tuple[DataDirectory, Sequence[_Sync], list[OSError | None]]]:
        jobs: list[tuple[DataDirectory, Sequence[_Sync]]] = []
        for directory, of_directory in syncs.items():
            if len(of_directory) >= MANY_FILES and directory.volume is not None:
                jobs.append((directory, of_directory))
                continue
            count = min(_THREADS, len(of_directory))
            jobs += [(directory, of_directory[number::count]) for number in range(count)]
        outcomes = await asyncio.gather(
            *[in_thread(Work.SYNCS, _sync_timed, directory, part) for directory, part in jobs]
        )
        for _, took_s in outcomes:
            self.flush_times.record(int(took_s * 1_000_000))
        return [(*job, errors) for job, (errors, _) in zip(jobs, outcomes, strict=True)]

    def _note(
        self, directory: DataDirectory, done: Sequence[_Sync], errors: list[OSError | None]
    ) -> bool:
        is_short = False
        # Failures first: one takes the whole directory offline.
        for (partition, _), error in zip(done, errors, strict=True):
            if error is not None:
                is_short |= self._failed(directory, partition, error, is_sync=True)
        for (partition, target), error in zip(done, errors, strict=True):
            if error is None and partition.directory.is_online and not partition.is_retired:
                self._missing.discard(partition)
                partition.flushed(target.offset, cuts=target.cuts)
        return is_short

    def _failed(
        self,
        directory: DataDirectory,
        partition: ReplicaState,
        error: OSError,
        *,
        is_sync: bool = False,
    ) -> bool:
        if partition.is_retired or not partition.directory.is_online:
            return False  # the files of a deleted partition need no sync
        partition.log.mark_touched()
        is_passing = is_shortage(error) or (is_disk_full(error) and not is_sync)
        if isinstance(error, FileNotFoundError) and partition not in self._missing:
            # Retention has removed a segment.
            self._missing.add(partition)
            is_passing = True
        if is_passing:
            logger.warning(
                "cannot sync %s-%d, retrying: %s", partition.topic, partition.index, error
            )
            self._dirty[partition] = None
            return True
        if partition.directory is not directory:
            self._dirty[partition] = None  # it has been moved meanwhile
        self._on_failure(directory, error)
        return False


def _sync_timed(
    directory: DataDirectory, syncs: Sequence[_Sync]
) -> tuple[list[OSError | None], float]:
    began_s = STOPWATCH()
    return _sync_all(directory, syncs), STOPWATCH() - began_s


def _sync_all(directory: DataDirectory, syncs: Sequence[_Sync]) -> list[OSError | None]:
    """Sync the logs; return an error or None for each. Blocks."""
    if len(syncs) >= MANY_FILES and directory.volume is not None:
        try:
            directory.volume.sync()
        except OSError as error:
            return [without_frames(error)] * len(syncs)
        return [None] * len(syncs)
    errors: list[OSError | None] = []
    for _, target in syncs:
        try:
            directory.sync_names()
            target.sync()
        except OSError as error:
            errors.append(without_frames(error))
        else:
            errors.append(None)
    return errors
