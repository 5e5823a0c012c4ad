"""The metadata log of the controller's engine: append, sync, publish, commit.

    append()     appends a whole change
    flusher      syncs all appended changes at once (group commit, in a thread)
    follower     publishes each change in order; then `committed_offset` rises and responses leave

Invariant: `committed_offset` is the offset of the follower's image, so a client that learns of a
topic finds its partitions.

After a failed write or sync nothing is appended until a restart, but changes on disk are still
published. A write to a full disk is undone and fails only its own change.

Source: Kafka's KafkaRaftClient and QuorumController.handleCommit, for a quorum of one voter
(KIP-500, KIP-595).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.controller.controller_machine import ClusterChange
from wirebroker.coordinator.controller.image.image_change import ImageChange
from wirebroker.disks.data_directory import is_disk_failure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from wirebroker.base.clock import Steps
    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.outcome import Moment, ProducerEpoch
    from wirebroker.quorum.image.metadata_follower import MetadataFollower
    from wirebroker.quorum.log.metadata_batches import EncodedBatches
    from wirebroker.quorum.log.metadata_log import MetadataLog
    from wirebroker.storage.log.producers.verification import VerificationGuard

LOGGER = logging.getLogger(__name__)


class ControllerLog:
    """The log of a controller that is its quorum's only voter.

    Attributes:
        on_disk_failure: Called with the log's path when its disk fails.
    """

    __slots__ = (
        "_appended",
        "_failure",
        "_flusher",
        "_may_condense",
        "_synced",
        "_watchers",
        "follower",
        "on_disk_failure",
        "stored",
    )

    # follower.image, then _synced, then _appended cover the log from start to end.

    def __init__(self, stored: MetadataLog, follower: MetadataFollower) -> None:
        self.stored = stored
        self.follower = follower
        self.on_disk_failure: Callable[[str, OSError], None] = _ignore
        self._appended: deque[ClusterChange] = deque()
        self._synced: deque[ClusterChange] = deque()
        self._flusher: asyncio.Task[None] | None = None
        self._watchers: list[Callable[[], None]] = []
        self._failure: KafkaError | None = None  # for later appends
        self._may_condense = True

    # The engine's interface

    @property
    def name(self) -> str:
        """The name in messages."""
        return "the metadata log"

    @property
    def end_offset(self) -> int:
        """The end of the log, on disk or not."""
        return self.stored.end_offset

    @property
    def committed_offset(self) -> int:
        """The end of what is published."""
        return self.follower.image.offset

    @property
    def failure(self) -> KafkaError | None:
        """KAFKA_STORAGE_ERROR after a disk failure, once everything on disk is published."""
        return None if self._synced else self._failure

    def watch(self, on_advance: Callable[[], None]) -> None:
        """Call `on_advance` after each published change and on a disk failure."""
        self._watchers.append(on_advance)

    def unwatch(self, on_advance: Callable[[], None]) -> None:
        """Remove a callback."""
        self._watchers = [watcher for watcher in self._watchers if watcher != on_advance]

    def append(
        self,
        records: Sequence[ClusterChange],
        now: Moment,
        producer: ProducerEpoch | None = None,
        guard: VerificationGuard | None = None,
    ) -> None:
        """Append a change that was encoded for the end of the log.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR: nothing was appended.
            OSError: The disk failed.
        """
        del now, guard  # already encoded
        assert producer is None, "producers do not write metadata"
        [change] = records
        if self._failure is not None:
            raise self._failure
        try:
            self.stored.append(change.encoded)
        except OSError as error:
            if is_disk_failure(error):
                raise
            message = f"the metadata log cannot be written now: {error}"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message) from error
        self._on_synced(change)

    def cut(self, records: Sequence[ClusterChange]) -> Iterator[Sequence[ClusterChange]]:
        """Yield each change on its own."""
        for change in records:
            yield [change]

    def disk_failed(self, error: OSError) -> None:
        """Accept no more appends: the log's end on disk is unknown."""
        message = f"the metadata log cannot be written: {error}"
        LOGGER.error("%s", message)
        self._failure = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message)
        self._appended.clear()
        self.on_disk_failure(self.stored.directory, error)
        self._notify()

    # The controller's interface

    def lead(self, image: ClusterImage) -> ClusterImage:
        """Begin the next epoch; return the image after its first records."""
        led = self.stored.lead(image)
        self._on_synced(ClusterChange(None, led, ImageChange()))
        return led

    def encode(self, records: list[MetadataRecord]) -> Steps[EncodedBatches]:
        """Encode the next records; see MetadataLog.encode."""
        return self.stored.encode(records)

    async def close(self) -> None:
        """Commit what is appended and close the files."""
        if self._flusher is not None:
            await self._flusher
        await self.stored.close()

    def hold_snapshots(self) -> None:
        """Postpone snapshots until `allow_snapshots`, for a quick start."""
        self._may_condense = False

    def allow_snapshots(self) -> None:
        """Begin snapshots when they are due."""
        self._may_condense = True
        self._condense()

    # Committing

    def _on_synced(self, change: ClusterChange) -> None:
        self._appended.append(change)
        if self._flusher is None:
            self._flusher = asyncio.create_task(self._flush(), name="metadata flusher")

    async def _flush(self) -> None:
        while self._appended:
            covered = len(self._appended)
            try:
                await self.stored.sync()
            except OSError as error:
                self.disk_failed(error)
                break
            # A failed write may have cleared _appended meanwhile.
            count = min(covered, len(self._appended))
            self._synced.extend(self._appended.popleft() for _ in range(count))
            await self._publish()
            self._condense()
        self._flusher = None

    async def _publish(self) -> None:
        """Publish the synced changes, even if the disk fails meanwhile."""
        while self._synced:
            change = self._synced[0]
            await self.follower.publish(change.change, change.image)
            self._synced.popleft()
            self._notify()

    def _condense(self) -> None:
        if self._may_condense and not self._appended and self._failure is None:
            self.stored.condense(self.follower.image, self.disk_failed)

    def _notify(self) -> None:
        for watcher in tuple(self._watchers):
            watcher()


def _ignore(path: str, error: OSError) -> None:
    """Ignore the failure."""
