"""Moves replicas in use between this node's log directories (AlterReplicaLogDirs).

    copy the log piece by piece (log_copy.py), at replica.alter.log.dirs.io.max.bytes.per.second
    --> when little is left, report the new directory to the controller
    --> block appends, copy and sync the rest, rename both directories

The next start restarts an interrupted move, unless it was interrupted between the two renames; then
the copy becomes the log (log_copies.py).

Source: Kafka's ReplicaManager.alterReplicaLogDirs, ReplicaAlterLogDirsThread,
Partition.maybeReplaceCurrentWithFutureReplica; KIP-113, KIP-858.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, TypeVarTuple

from wirebroker.base.threads import Work, begin_in_thread
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.primitives import ZERO_UUID
from wirebroker.replication.directory_swap import (
    HalfSwappedError,
    Swapped,
    settle,
    swap_directories,
)
from wirebroker.storage.log.log_copy import LogCopy
from wirebroker.storage.log_directory import has_future_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from wirebroker.base.clock import Clock
    from wirebroker.disks.data_directory import DataDirectory
    from wirebroker.quotas.replication_quotas import ReplicationQuota
    from wirebroker.replica.partition import Partition
    from wirebroker.replica.replica_manager import ReplicaManager
    from wirebroker.replication.directory_assignments import DirectoryAssignments
    from wirebroker.storage.files import Files
    from wirebroker.storage.log.log_copy import Piece

logger = logging.getLogger(__name__)

_Arguments = TypeVarTuple("_Arguments")

# What a thread copies at a time.
_PIECE_BYTES: Final = 4 << 20
# Under a rate limit: Kafka's default of replica.fetch.max.bytes.
_THROTTLED_PIECE_BYTES: Final = 1 << 20
# Copied while appends are blocked: a few milliseconds, besides the syncs.
_LAST_BYTES: Final = 1 << 20


class _MoveEndedError(Exception):
    """The partition or one of the directories is gone."""


class ReplicaMoves:
    """The moves of one node; a limited number runs at a time."""

    __slots__ = ("_assignments", "_clock", "_files", "_quota", "_replicas", "_running", "_turns")

    def __init__(
        self,
        replicas: ReplicaManager,
        assignments: DirectoryAssignments,
        *,
        files: Files,
        clock: Clock,
        quota: ReplicationQuota,
    ) -> None:
        self._replicas = replicas
        self._assignments = assignments
        self._files = files
        self._clock = clock
        self._quota = quota
        self._running: dict[Partition, _Move] = {}
        # At most as many at a time as log directories; num.replica.alter.log.dirs.threads has no
        # effect.
        self._turns = asyncio.Semaphore(max(1, len(replicas.directories)))

    def start(self) -> None:
        """Restart the moves that the last stop interrupted."""
        unfinished, self._replicas.unfinished_moves = self._replicas.unfinished_moves, []
        for partition, target in unfinished:
            if partition.directory is not target:
                self._begin(partition, target)

    async def stop(self) -> None:
        """Interrupt all moves until the next start."""
        moves = list(self._running.values())
        for move in moves:
            assert move.task is not None
            move.task.cancel()
        await asyncio.gather(*[move.task for move in moves if move.task], return_exceptions=True)

    def ask(self, path: str, topic: str, index: int) -> ErrorCode:
        """Start to move a replica to the directory at `path`; return an error code.

        A missing replica will be created there. A request for its current directory cancels a move.
        """
        if not has_future_path(topic, index):
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        target = next(
            (directory for directory in self._replicas.directories if directory.path == path), None
        )
        if target is None:
            return ErrorCode.LOG_DIR_NOT_FOUND
        if not target.is_online:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if target.is_cordoned:
            return ErrorCode.INVALID_REPLICA_ASSIGNMENT
        return self._ask(target, topic, index)

    def _ask(self, target: DataDirectory, topic: str, index: int) -> ErrorCode:
        partitions, _ = self._replicas.find(topic, ZERO_UUID, by_id=False)
        partition = partitions.get(index)
        if partition is None:
            self._replicas.choice.prefer(topic, index, target)
            if self._replicas.image.partition(topic, index) is None:
                return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return ErrorCode.REPLICA_NOT_AVAILABLE
        if not partition.directory.is_online:
            return ErrorCode.KAFKA_STORAGE_ERROR
        move = self._running.get(partition)
        if move is not None and move.target is not target:
            assert move.task is not None
            move.task.cancel()
            move.is_canceled = True
            del self._running[partition]
            move = None
        if move is None and partition.directory is not target:
            self._begin(partition, target)
        return ErrorCode.NONE

    def of(self, directory: DataDirectory) -> Iterator[tuple[Partition, int, int]]:
        """Yield the moves to a directory: the replica, bytes copied, offset lag."""
        for partition, move in self._running.items():
            if move.target is directory and move.copy is not None:
                yield partition, move.copy.copied_bytes, move.copy.lag

    def _begin(self, partition: Partition, target: DataDirectory) -> None:
        move = self._running[partition] = _Move(partition, target)
        move.task = asyncio.create_task(self._run(move), name=f"move {partition}")
        move.task.add_done_callback(lambda _: self._ended(move))

    def _ended(self, move: _Move) -> None:
        if self._running.get(move.partition) is move:
            del self._running[move.partition]

    async def _run(self, move: _Move) -> None:
        partition, target = move.partition, move.target
        try:
            async with self._turns, partition.upkeep_lock:
                await self._copy_and_swap(move)
            logger.info("moved %s to %s", partition, target.path)
        except asyncio.CancelledError:
            if move.is_canceled:
                await self._take_back(move)
            raise
        except _MoveEndedError:
            await self._take_back(move)
        except HalfSwappedError as error:
            # The plan tells the controller where the next start finds the log.
            for directory in (partition.directory, target):
                self._replicas.directory_failed(directory, error)
        except (KafkaError, OSError) as error:
            logger.error("cannot move %s: %s", partition, error)  # noqa: TRY400 - a disk
            await self._take_back(move)
        except Exception:  # the root of a task
            logger.exception("cannot move %s", partition)
            await self._take_back(move)

    async def _copy_and_swap(self, move: _Move) -> None:
        partition, target = move.partition, move.target
        source = partition.directory
        path = move.path = target.files.future_path(partition.topic, partition.index)
        create = target.files.create_future_directory
        await move.work(Work.TOPICS, create, path, partition.topic_id)
        copy = move.copy = LogCopy(partition.log, self._files, path)
        while True:
            await self._catch_up(move, copy)
            await self._assignments.tell(partition, target.directory_id)
            async with partition.append_lock:
                if await self._finish(move, copy):
                    swapped = Swapped(partition.log.log_end_offset, partition.log.cuts)
                    break
        self._assignments.forget(partition)
        failed = self._replicas.write_failed
        await settle(partition, source, self._clock, swapped=swapped, on_failure=failed)

    async def _catch_up(self, move: _Move, copy: LogCopy) -> None:
        """Copy at the allowed rate until little of the active segment is left."""
        while (piece := await self._next_piece(move, copy)) is not None:
            if (
                copy.copied_bytes
                and copy.lacking_bytes <= _LAST_BYTES
                and copy.is_of_the_active(piece)
            ):
                return
            await self._copy(move, copy, piece)
            if self._quota.is_set:
                self._quota.count(piece.length)
                await self._quota.until_allowed()

    async def _next_piece(self, move: _Move, copy: LogCopy) -> Piece | None:
        await self._drop_deleted(move, copy)
        return copy.next_piece(_THROTTLED_PIECE_BYTES if self._quota.is_set else _PIECE_BYTES)

    async def _copy(self, move: _Move, copy: LogCopy, piece: Piece) -> None:
        try:
            await move.work(Work.UPKEEP, copy.copy, piece)
        except FileNotFoundError:
            # If the check passes, retention removed the file.
            self._check(move)
        else:
            copy.note_copied(piece)

    async def _drop_deleted(self, move: _Move, copy: LogCopy) -> None:
        self._check(move)
        if deleted_paths := copy.drop_removed():
            await move.work(Work.UPKEEP, self._unlink, deleted_paths)

    def _unlink(self, paths: list[str]) -> None:
        for path in paths:
            self._files.unlink(path)

    async def _finish(self, move: _Move, copy: LogCopy) -> bool:
        """Copy the rest and swap while appends are blocked; return whether it is complete."""
        log = move.partition.log
        if copy.lacking_bytes > _LAST_BYTES:
            return False
        while (piece := await self._next_piece(move, copy)) is not None:
            await self._copy(move, copy, piece)
        if log.leader_epochs.is_dirty:
            log.leader_epochs.persist()
        try:
            await move.work(Work.UPKEEP, copy.finish)
        except FileNotFoundError:
            return False
        self._check(move)
        if not copy.is_complete:
            return False
        delay_ms = log.settings.file_delete_delay_ms
        old_path = swap_directories(move.partition, move.target, copy.directory, self._files)
        self._replicas.deleted_partitions.add_moved(old_path, delay_ms=delay_ms)
        move.copy = None  # now the log
        return True

    def _check(self, move: _Move) -> None:
        partition = move.partition
        if partition.is_retired or not (partition.directory.is_online and move.target.is_online):
            raise _MoveEndedError

    async def _take_back(self, move: _Move) -> None:
        self._ended(move)  # a new move need not wait for the disk
        self._assignments.forget(move.partition)
        await move.until_idle()  # the thread could create files again
        if move.path is not None and move.target.is_online:
            try:
                await move.work(Work.UPKEEP, self._files.remove_tree, move.path)
            except OSError as error:
                logger.warning("cannot remove the copy in %s: %s", move.path, error)


class _Move:
    """One move.

    If its task is cancelled, the next start restarts the move; if `is_canceled`, another request
    ended the move, and the copy is removed.
    """

    __slots__ = ("_working", "copy", "is_canceled", "partition", "path", "target", "task")

    def __init__(self, partition: Partition, target: DataDirectory) -> None:
        self.partition = partition
        self.target = target
        self.path: str | None = None
        self.copy: LogCopy | None = None
        self.is_canceled = False
        self.task: asyncio.Task[None] | None = None
        # The current or last work.
        self._working: asyncio.Future[None] | None = None

    async def work(
        self, work: Work, function: Callable[[*_Arguments], None], *arguments: *_Arguments
    ) -> None:
        """Run a function in a thread; cancellation does not end it."""
        self._working = begin_in_thread(work, function, *arguments)
        await asyncio.shield(self._working)

    async def until_idle(self) -> None:
        if self._working is not None:
            await asyncio.wait([self._working])
