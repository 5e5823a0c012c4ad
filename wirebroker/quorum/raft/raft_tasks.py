"""The tasks of one replica that run alongside the steps of its machine.

    Send             ->  a request to another replica      ->  ResponseReceived
    Sync             ->  a sync of the log's files         ->  LogSynced
    InstallSnapshot  ->  a check of a downloaded snapshot  ->  SnapshotInstalled or SnapshotRejected

Their results are events. At most one sync runs at a time; batches that are appended meanwhile share
the next one.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from wirebroker.codecs.errors import KafkaError
from wirebroker.coordinator.raft.protocol.events import (
    LogSynced,
    ResponseReceived,
    SnapshotInstalled,
    SnapshotRejected,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from wirebroker.coordinator.raft.model.log_point import LogPoint
    from wirebroker.coordinator.raft.protocol.actions import Send
    from wirebroker.quorum.raft.committed_records import CommittedRecords
    from wirebroker.quorum.raft.raft_channel import RaftTransport
    from wirebroker.quorum.raft.raft_log import RaftLog
    from wirebroker.quorum.raft.raft_snapshots import RaftSnapshots
    from wirebroker.quorum.raft.raft_steps import RaftSteps

LOGGER = logging.getLogger(__name__)


class RaftTasks:
    """The tasks of a replica, on one event loop."""

    __slots__ = (
        "_committed",
        "_is_ended",
        "_is_syncing",
        "_log",
        "_must_sync_to",
        "_on_failure",
        "_snapshots",
        "_steps",
        "_tasks",
        "_transport",
    )

    def __init__(
        self,
        steps: RaftSteps,
        log: RaftLog,
        *,
        transport: RaftTransport,
        committed: CommittedRecords,
        snapshots: RaftSnapshots,
        on_failure: Callable[[OSError], None],
    ) -> None:
        """Store the parts; `on_failure` is called when the disk has failed, and calls `end`."""
        self._steps = steps
        self._log = log
        self._transport = transport
        self._committed = committed
        self._snapshots = snapshots
        self._on_failure = on_failure
        self._tasks: set[asyncio.Task[None]] = set()
        self._must_sync_to: LogPoint | None = None
        self._is_syncing = False
        self._is_ended = False

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work alongside the steps."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def send(self, send: Send) -> None:
        """Send a request to another replica."""
        self.begin(self._send(send))

    def sync(self, point: LogPoint) -> None:
        """Sync the log up to a point, after a sync in progress."""
        self._must_sync_to = point
        if not self._is_syncing:
            self._is_syncing = True
            self.begin(self._sync())

    def install(self, point: LogPoint) -> None:
        """Replace the log by a downloaded snapshot, if it is undamaged."""
        self.begin(self._install(point))

    async def until_synced(self) -> None:
        """Wait until everything appended is on disk, or the replica has ended."""
        while self._tasks and self._has_unsynced:
            await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)

    @property
    def _has_unsynced(self) -> bool:
        return self._is_syncing or (self._must_sync_to is not None and not self._is_ended)

    def end(self) -> None:
        """Begin no further sync; may be repeated."""
        self._is_ended = True

    async def stop(self) -> None:
        """Cancel all tasks, and wait for their end."""
        self.end()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _send(self, send: Send) -> None:
        response = await self._transport.request(send.destination, send.request)
        self._steps.handle(ResponseReceived(send.request_id, send.destination, response))

    async def _sync(self) -> None:
        try:
            while self._must_sync_to is not None and not self._is_ended:
                point, self._must_sync_to = self._must_sync_to, None
                await self._log.sync()
                self._steps.handle(LogSynced(point))
        except OSError as error:
            self._on_failure(error)
        finally:
            self._is_syncing = False

    async def _install(self, point: LogPoint) -> None:
        try:
            contents, content = await self._log.check_part(point)
            await self._committed.settle()
            await self._snapshots.writer.settle()
            await self._log.install(point, content)
        except KafkaError as error:
            LOGGER.warning("the downloaded metadata snapshot %s is damaged: %s", point, error)
            self._log.delete_part(point)
            self._steps.handle(SnapshotRejected(point))
        except OSError as error:
            self._on_failure(error)
        else:
            self._committed.replace(point, contents)
            self._steps.handle(SnapshotInstalled(point, len(content), tuple(contents.voters)))
