"""The metadata log as the controller's engine has it: appended at once, committed when followed.

    append()     a whole change, at the end of the log
    flusher      one fdatasync for all that were appended meanwhile (group commit, in a thread)
    follower     told of each change, in order; then `committed_offset` moves, and answers leave

Laws:
- `committed_offset` is the offset of the follower's image: who is told of a topic finds its
  partitions. It is never above what the disk has.
- After a failed write or sync nothing is appended any more: what the disk holds is unknown until a
  restart reads it. What was on the disk before is followed all the same. A write that found no room
  was taken back, and fails its own change only.
- A snapshot is begun only while everything is committed.

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
        stored: Files, epochs, snapshots.
        follower: Shows the committed state, and tells others of it.
        on_disk_failure: Told the path of the log when its disk has failed.
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

    # follower.image, then _synced, then _appended: the log from its start to its end.

    def __init__(self, stored: MetadataLog, follower: MetadataFollower) -> None:
        self.stored = stored
        self.follower = follower
        self.on_disk_failure: Callable[[str, OSError], None] = _ignore
        self._appended: deque[ClusterChange] = deque()
        self._synced: deque[ClusterChange] = deque()
        self._flusher: asyncio.Task[None] | None = None
        self._watchers: list[Callable[[], None]] = []
        self._failure: KafkaError | None = None  # why nothing is appended any more
        self._may_condense = True

    # What the engine sees

    @property
    def name(self) -> str:
        """What messages call it."""
        return "the metadata log"

    @property
    def end_offset(self) -> int:
        """The end behind the last record, on the disk or not."""
        return self.stored.end_offset

    @property
    def committed_offset(self) -> int:
        """The end of what is on the disk, and followed by this node."""
        return self.follower.image.offset

    @property
    def failure(self) -> KafkaError | None:
        """KAFKA_STORAGE_ERROR once the disk has failed, and what it has is followed."""
        return None if self._synced else self._failure

    def watch(self, on_advance: Callable[[], None]) -> None:
        """Call back whenever a change was followed, or the disk has failed."""
        self._watchers.append(on_advance)

    def unwatch(self, on_advance: Callable[[], None]) -> None:
        """Call back no more."""
        self._watchers = [each for each in self._watchers if each != on_advance]

    def append(
        self,
        records: Sequence[ClusterChange],
        moment: Moment,
        producer: ProducerEpoch | None = None,
        guard: VerificationGuard | None = None,
    ) -> None:
        """Append a change that was encoded for the end of the log, and have it synced.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR: nothing was appended.
            OSError: The disk failed.
        """
        del moment, guard  # it is encoded already
        assert producer is None, "nobody writes here in a producer's transaction"
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
        self._have_synced(change)

    def cut(self, records: Sequence[ClusterChange]) -> Iterator[Sequence[ClusterChange]]:
        """Yield each change by itself."""
        for change in records:
            yield [change]

    def disk_failed(self, error: OSError) -> None:
        """Take nothing more: the log's end on the disk is not known."""
        message = f"the metadata log cannot be written: {error}"
        LOGGER.error("%s", message)
        self._failure = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message)
        self._appended.clear()
        self.on_disk_failure(self.stored.directory, error)
        self._tell()

    # What the controller does with it

    def lead(self, image: ClusterImage) -> ClusterImage:
        """Begin the next epoch; return the image after the records that begin it."""
        led = self.stored.lead(image)
        self._have_synced(ClusterChange(None, led, ImageChange()))
        return led

    def encode(self, records: list[MetadataRecord]) -> Steps[EncodedBatches]:
        """Encode records that come next in the log; see MetadataLog.encode."""
        return self.stored.encode(records)

    async def close(self) -> None:
        """Commit what is appended, and let go of the files."""
        if self._flusher is not None:
            await self._flusher
        await self.stored.close()

    def hold_snapshots(self) -> None:
        """Begin no snapshot until `allow_snapshots`: a start is not held up by one."""
        self._may_condense = False

    def allow_snapshots(self) -> None:
        """Begin the snapshot that is due, if one is, and those to come when they are."""
        self._may_condense = True
        self._condense()

    # Committing

    def _have_synced(self, change: ClusterChange) -> None:
        self._appended.append(change)
        if self._flusher is None:
            self._flusher = asyncio.create_task(self._flush(), name="metadata flusher")

    async def _flush(self) -> None:
        """Sync and publish until nothing waits any more; the root of its task."""
        while self._appended:
            covered = len(self._appended)
            try:
                await self.stored.sync()
            except OSError as error:
                self.disk_failed(error)
                break
            # A write may have failed meanwhile: then what was not known to be synced is given up.
            count = min(covered, len(self._appended))
            self._synced.extend(self._appended.popleft() for _ in range(count))
            await self._publish()
            self._condense()
        self._flusher = None

    async def _publish(self) -> None:
        """Have what is synced followed: facts, whatever becomes of the disk meanwhile."""
        while self._synced:
            change = self._synced[0]
            await self.follower.publish(change.change, change.image)
            self._synced.popleft()
            self._tell()

    def _condense(self) -> None:
        if self._may_condense and not self._appended and self._failure is None:
            self.stored.condense(self.follower.image, self.disk_failed)

    def _tell(self) -> None:
        for watcher in tuple(self._watchers):
            watcher()


def _ignore(path: str, error: OSError) -> None:
    """Do nothing: nobody has asked to be told."""
