"""The compaction of logs whose cleanup.policy contains compact, the dirtiest first.

At most log.cleaner.threads processes write `.cleaned` segments, which are swapped in here. If the
log is deleted, truncated or shortened by retention meanwhile, the output is discarded. After a full
disk, compaction is retried.

Source: Kafka's LogCleaner and LogCleanerManager.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from functools import partial
from typing import TYPE_CHECKING, Final

from wirebroker.base.cleaner_figures import CleanerFigures
from wirebroker.base.clock import Slices
from wirebroker.base.threads import Work, in_thread
from wirebroker.codecs.errors import KafkaError
from wirebroker.maintenance.cleaner_checkpoints import CleanerCheckpoint
from wirebroker.maintenance.compaction_child import CompactionProgress, Done, WorkerDiedError
from wirebroker.maintenance.compaction_order import Limits
from wirebroker.maintenance.compaction_swap import CompactionAbortedError, swap_in, throw_away
from wirebroker.storage.compaction.range import DirtyRange, dirty_range, make_job
from wirebroker.storage.log.wall_clocks import ClockReading, WallClocks

if TYPE_CHECKING:
    from wirebroker.disks.data_directory import DataDirectory
    from wirebroker.maintenance.compaction_child import Run
    from wirebroker.maintenance.maintenance import MaintenanceHost
    from wirebroker.replica.partition import Partition
    from wirebroker.storage.files import Files

logger = logging.getLogger(__name__)

MOST_DEATHS: Final = 3
# One active, one to compact.
_FEWEST_SEGMENTS: Final = 2
_SHORTEST_BACKOFF_S: Final = 0.01
_LONGEST_BACKOFF_S: Final = 86_400.0


class Compactor:
    """The compaction of all logs of one broker.

    Attributes:
        uncleanable: Logs that are skipped until a restart.
    """

    __slots__ = (
        "_broker",
        "_changed",
        "_checkpoints",
        "_clocks",
        "_deaths",
        "_files",
        "_run",
        "_running",
        "_task",
        "figures",
        "uncleanable",
    )

    def __init__(self, broker: MaintenanceHost, files: Files, run: Run) -> None:
        self._broker = broker
        self._files = files
        self._run = run
        self._checkpoints: dict[DataDirectory, CleanerCheckpoint] = {}
        self._clocks = WallClocks(broker.clock.now_ms(), broker.clock.monotonic())
        self._running: dict[Partition, asyncio.Task[bool]] = {}
        self._deaths: dict[Partition, int] = {}
        self._task: asyncio.Task[None] | None = None
        # Set to end a wait.
        self._changed = asyncio.Event()
        self.uncleanable: set[Partition] = set()
        self.figures = CleanerFigures()

    def start(self) -> None:
        """Start, unless log.cleaner.enable is false."""
        if self._broker.config.bool("log.cleaner.enable"):
            self._task = asyncio.create_task(self._repeat())

    @property
    def has_died(self) -> bool:
        """Whether it has ended without `stop`."""
        return self._task is not None and self._task.done() and not self._task.cancelled()

    def config_changed(self) -> None:
        """Check the logs again now, with the new configs."""
        self._changed.set()

    async def stop(self) -> None:
        """End all compactions; unswapped output is lost."""
        if self._task is not None:
            self._task.cancel()
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _repeat(self) -> None:
        while True:
            self._changed.clear()
            try:
                await self.start_due()
            except Exception:  # the root of a task
                logger.exception("the search for logs to compact failed; retrying")
            backoff_s = self._broker.config.int("log.cleaner.backoff.ms") / 1000
            backoff_s = min(max(backoff_s, _SHORTEST_BACKOFF_S), _LONGEST_BACKOFF_S)
            done: set[asyncio.Task[bool]] = set()
            if self._running:
                done, _ = await asyncio.wait(
                    self._running.values(),
                    timeout=backoff_s,
                    return_when=asyncio.FIRST_COMPLETED,
                )
            if not done or not all(task.result() for task in done):
                await self._pause(backoff_s)

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()

    async def start_due(self) -> list[asyncio.Task[bool]]:
        """Check all logs, and start as many compactions as configured.

        The tasks return whether the compaction was completed.
        """
        started: list[asyncio.Task[bool]] = []
        room = self._broker.config.int("log.cleaner.threads") - len(self._running)
        if room <= 0:
            return started
        dirty = await self._dirty_logs()
        await self._forget_deleted()
        dirty.sort(key=lambda entry: entry[0], reverse=True)
        for _, partition in dirty[:room]:
            if partition in self._running:
                continue
            task = asyncio.create_task(self._compact(partition))
            self._running[partition] = task
            task.add_done_callback(partial(self._ended, partition))
            started.append(task)
        return started

    async def catch_up(self) -> None:
        """Compact all dirty logs now, because the clock was moved."""
        while True:
            await self.start_due()
            running = list(self._running.values())
            if not running or not all(await asyncio.gather(*running)):
                return

    def _ended(self, partition: Partition, task: asyncio.Task[bool]) -> None:
        assert self._running[partition] is task
        del self._running[partition]

    async def _dirty_logs(self) -> list[tuple[float, Partition]]:
        """Return the logs to compact, with their dirty ratios."""
        dirty_logs: list[tuple[float, Partition]] = []
        dirtiest = 0.0
        slices = Slices(self._broker.clock, Slices.BESIDE_OTHERS_SECONDS)
        for partition in list(self._broker.replicas):
            await slices.turn()
            log = partition.log
            if (
                not log.settings.is_compacted
                or len(log.segments) < _FEWEST_SEGMENTS
                or partition in self._running
                or partition.is_in_upkeep  # would only keep another log waiting
                or partition in self.uncleanable
                or partition.is_retired
                or not partition.directory.is_online
            ):
                continue
            try:
                dirty = await self._look(partition)
            except (KafkaError, OSError) as error:
                self._failed(partition, error)
                continue
            dirtiest = max(dirtiest, dirty.dirty_ratio)
            if dirty.is_worth_it(log.settings.min_cleanable_dirty_ratio):
                dirty_logs.append((dirty.dirty_ratio, partition))
        self.figures.checked_s = self._broker.clock.monotonic()
        self.figures.max_dirty_percent = round(100 * dirtiest)
        return dirty_logs

    async def _forget_deleted(self) -> None:
        for directory, checkpoint in list(self._checkpoints.items()):
            if checkpoint.forget_deleted():
                try:
                    await in_thread(Work.UPKEEP, checkpoint.write)
                except OSError as error:
                    self._broker.replicas.write_failed(directory, error)

    async def _look(self, partition: Partition) -> DirtyRange:
        """Return the dirty range of a log; reset a wrong checkpoint."""
        checkpoint = self._checkpoint(partition.directory)
        settings = partition.log.settings
        now_ms = self._clock_reading().earliest_ms(kept_ms=settings.min_compaction_lag_ms)
        dirty = dirty_range(partition.log, checkpoint.get(partition), now_ms=now_ms)
        if dirty.is_checkpoint_wrong:
            checkpoint.set(partition, dirty.first_dirty_offset)
            await in_thread(Work.UPKEEP, checkpoint.write)
        return dirty

    async def _compact(self, partition: Partition) -> bool:
        """Compact one log; return whether it was completed."""
        try:
            async with partition.upkeep_lock:
                await self._compact_unguarded(partition)
        except CompactionAbortedError:
            logger.info("skipped the compaction of %s: its log changed", _name(partition))
        except (KafkaError, OSError, WorkerDiedError) as error:
            self._failed(partition, error)
        except Exception:  # the root of a task
            self.uncleanable.add(partition)
            logger.exception("cannot compact %s; not retried until a restart", _name(partition))
        else:
            self._deaths.pop(partition, None)
            return True
        return False

    async def _compact_unguarded(self, partition: Partition) -> None:
        log = partition.log
        await _read_producers(partition)
        dirty = await self._look(partition)
        if not dirty.dirty_bytes or partition.is_retired:
            return
        now_ms = self._clock_reading().earliest_ms(kept_ms=log.settings.delete_retention_ms)
        job = make_job(log, dirty, now_ms=now_ms)
        await _flush(partition)
        started = self._broker.clock.monotonic()
        first_offset = log.segments[0].base_offset
        before = after = 0
        try:
            async with contextlib.aclosing(self._run(job, self._limits())) as worker:
                async for news in worker:
                    if isinstance(news, Done):
                        await self._finish(partition, news.next_dirty_offset)
                    elif isinstance(news, CompactionProgress):
                        if partition.is_retired or not partition.directory.is_online:
                            raise CompactionAbortedError
                    else:
                        await swap_in(
                            partition,
                            self._files,
                            news,
                            deleted=self._broker.replicas.deleted_segments,
                            clock=self._broker.clock,
                        )
                        before += news.bytes_before
                        after += news.bytes_after
        except (FileNotFoundError, WorkerDiedError) as error:
            if log.segments[0].base_offset != first_offset:
                raise CompactionAbortedError from error  # retention was faster than the worker
            raise WorkerDiedError(str(error)) from error
        finally:
            if not partition.is_retired:
                await throw_away(partition, self._files)
        took_s = self._broker.clock.monotonic() - started
        self.figures.last_clean_s = took_s
        self.figures.bytes_before += before
        self.figures.bytes_after += after
        logger.info(
            "compacted %s from offset %d to %d: %d bytes became %d in %.1f s",
            _name(partition),
            dirty.first_dirty_offset,
            self._checkpoint(partition.directory).get(partition),
            before,
            after,
            took_s,
        )

    async def _finish(self, partition: Partition, next_dirty_offset: int) -> None:
        checkpoint = self._checkpoint(partition.directory)
        checkpoint.set(partition, next_dirty_offset)
        await in_thread(Work.UPKEEP, checkpoint.write)

    def _failed(self, partition: Partition, error: Exception) -> None:
        name = _name(partition)
        if partition.is_retired:
            return
        if isinstance(error, OSError):
            self._broker.replicas.disk_failed(partition, error)
        elif isinstance(error, WorkerDiedError):
            deaths = self._deaths[partition] = self._deaths.get(partition, 0) + 1
            if deaths < MOST_DEATHS:
                logger.warning("the compaction of %s died: %s; retrying", name, error)
                return
            self.uncleanable.add(partition)
            logger.error("%s is not compacted until a restart: %s", name, error)
        else:
            self.uncleanable.add(partition)
            logger.error("cannot compact %s, not retried until a restart: %s", name, error)

    def _checkpoint(self, directory: DataDirectory) -> CleanerCheckpoint:
        if directory not in self._checkpoints:
            self._checkpoints[directory] = CleanerCheckpoint(directory, self._files)
        return self._checkpoints[directory]

    def _clock_reading(self) -> ClockReading:
        clock = self._broker.clock
        return self._clocks.moment(clock.now_ms(), clock.monotonic())

    def _limits(self) -> Limits:
        config = self._broker.config
        workers = max(1, config.int("log.cleaner.threads"))
        return Limits(
            map_bytes=config.int("log.cleaner.dedupe.buffer.size") // workers,
            load_factor=config.float("log.cleaner.io.buffer.load.factor"),
            bytes_per_second=config.float("log.cleaner.io.max.bytes.per.second") / workers,
        )


def _name(partition: Partition) -> str:
    return f"{partition.topic}-{partition.index}"


async def _read_producers(partition: Partition) -> None:
    state = partition.log.producer_state
    try:
        if not state.read():
            async with partition.append_lock:
                await in_thread(Work.LOADING, state.replay)
    except KafkaError as error:
        raise CompactionAbortedError from error


async def _flush(partition: Partition) -> None:
    """Sync everything that a compaction relies on.

    Then recovery never reads a compacted segment, and no power loss removes the newer records
    because of which others were dropped.
    """
    log = partition.log
    try:
        if log.recovery_point < log.log_end_offset:
            await partition.flush()
    except KafkaError as error:
        raise CompactionAbortedError from error
