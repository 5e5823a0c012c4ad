"""Applies committed batches of the metadata log to the image, in order.

A batch that this node's controller has appended comes with its image. Others are decoded.

Source: Kafka's MetadataLoader.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from wirebroker.base.clock import Slices
from wirebroker.codecs.errors import KafkaError, MalformedFrameError
from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
from wirebroker.coordinator.controller.image.image_builder import ImageBuilder
from wirebroker.quorum.log.metadata_batches import decode_batch
from wirebroker.quorum.log.metadata_snapshot import SnapshotId

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from wirebroker.base.clock import Clock
    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.coordinator.raft.model.log_point import LogPoint
    from wirebroker.quorum.image.metadata_follower import MetadataFollower
    from wirebroker.quorum.log.metadata_snapshot import SnapshotContents
    from wirebroker.quorum.raft.raft_log import RaftLog
    from wirebroker.quorum.raft.unapplied_batches import WaitingBatch

LOGGER = logging.getLogger(__name__)


class CommittedRecords:
    """Applies committed records, in a task while there are any.

    `on_applied` is called after each applied change; after the last one, `is_idle` is true.
    `on_failure` is called with the reason when applying ends because a record is damaged or has a
    newer version.

    Attributes:
        on_disk_failure: Called with the error when the log cannot be read; set by the replica.
    """

    __slots__ = (
        "_clock",
        "_follower",
        "_high_watermark",
        "_is_failed",
        "_is_reported",
        "_log",
        "_on_applied",
        "_on_failure",
        "_parts",
        "_snapshot",
        "_task",
        "on_disk_failure",
    )

    on_disk_failure: Callable[[OSError], None]

    def __init__(
        self,
        log: RaftLog,
        follower: MetadataFollower,
        *,
        clock: Clock,
        on_applied: Callable[[], None],
        on_failure: Callable[[str], None],
    ) -> None:
        self._log = log
        self._follower = follower
        self._clock = clock
        self._on_applied = on_applied
        self._on_failure = on_failure
        self._high_watermark = 0
        # Committed, but the rest of their change is not.
        self._parts: list[WaitingBatch] = []
        self._snapshot: tuple[LogPoint, SnapshotContents] | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_failed = False
        # Whether `on_applied` was called after the last applied change.
        self._is_reported = True

    @property
    def is_idle(self) -> bool:
        """Whether everything committed is applied."""
        return self._task is None

    @property
    def applied_offset(self) -> int:
        """The end of what is applied."""
        return self._follower.image.offset

    def advance(self, high_watermark: int) -> None:
        """Apply the batches before an offset."""
        self._high_watermark = high_watermark
        self._begin()

    def replace(self, point: LogPoint, contents: SnapshotContents) -> None:
        """Apply a snapshot that has replaced the log."""
        self._parts.clear()
        self._snapshot = point, contents
        self._begin()

    async def settle(self) -> None:
        """Wait until everything committed is applied."""
        if self._task is not None:
            await asyncio.wait([self._task])

    def fail(self, reason: str) -> None:
        """Apply nothing more, and report the reason."""
        self._is_failed = True
        self._on_failure(reason)

    def stop(self) -> None:
        """Apply nothing more."""
        self._is_failed = True
        if self._task is not None:
            self._task.cancel()

    def _begin(self) -> None:
        if self._task is None and not self._is_failed:
            self._task = asyncio.create_task(self._run(), name="metadata records")

    async def _run(self) -> None:
        try:
            while await self._apply_next():
                pass
        except (KafkaError, MalformedFrameError) as error:
            self.fail(f"the cluster's metadata cannot be applied: {error}")
        except OSError as error:
            self._is_failed = True
            self.on_disk_failure(error)
        except Exception:  # a bug: nothing may be applied after it
            LOGGER.exception("applying the cluster's metadata failed")
            self.fail("the cluster's metadata cannot be applied: see the line above")
        finally:
            self._task = None
        self._is_reported = True
        self._on_applied()

    def _report(self) -> None:
        """Report an applied change before the next one."""
        if not self._is_reported:
            self._is_reported = True
            self._on_applied()

    async def _apply_next(self) -> bool:
        if self._snapshot is not None:
            (point, contents), self._snapshot = self._snapshot, None
            await self._apply_snapshot(point, contents)
            self._is_reported = False
            return True
        committed = await self._log.take_committed(self._high_watermark)
        if not committed:
            return False
        decoded: list[WaitingBatch] = []
        for batch in committed:
            if batch.is_part:
                self._parts.append(batch)
            elif batch.change is None:
                # Parts whose rest was truncated are a transaction that never ends.
                decoded += (*self._parts, batch)
                self._parts.clear()
            else:
                await self._decode(decoded)
                decoded = []
                self._parts.clear()
                self._report()
                await self._follower.publish(batch.change.change, batch.change.image)
                self._is_reported = False
        await self._decode(decoded)
        return True

    async def _decode(self, batches: Sequence[WaitingBatch]) -> None:
        if batches:
            self._report()
            await _follow(self._follower, batches)
            self._is_reported = False

    async def _apply_snapshot(self, point: LogPoint, contents: SnapshotContents) -> None:
        snapshot = SnapshotId(point.offset, point.epoch)
        self._report()
        image = await image_of_snapshot(contents, snapshot, self._clock)
        before = self._follower.image
        if image.offset > before.offset:
            change = await self._follower.difference(before, image)
            await self._follower.publish(change, image)


async def image_of_snapshot(
    contents: SnapshotContents, snapshot: SnapshotId, clock: Clock
) -> ClusterImage:
    """Return the image of a snapshot, built in slices.

    Raises:
        KafkaError: UNSUPPORTED_VERSION for unknown records.
        MalformedFrameError: A record is malformed.
    """
    slices = Slices(clock)
    builder = ImageBuilder(ClusterImage())
    for header, batch in contents.batches:
        for record in decode_batch(batch, header):
            builder.apply(record)
            await slices.turn()
    steps = builder.finish(offset=snapshot.end_offset, epoch=snapshot.epoch)
    image, _ = await slices.run(steps)
    return image


async def apply_all(log: RaftLog, follower: MetadataFollower) -> None:
    """Apply the whole log of a quorum with one voter.

    Raises:
        KafkaError, MalformedFrameError: A record is unreadable or unknown.
    """
    while batches := await log.take_committed(log.end_offset):
        await _follow(follower, batches)


async def _follow(follower: MetadataFollower, batches: Sequence[WaitingBatch]) -> None:
    if batches:
        last = batches[-1]
        records = _records_of(batches, from_offset=follower.image.offset)
        await follower.follow(records, offset=last.end_offset, epoch=last.epoch)


def _records_of(batches: Sequence[WaitingBatch], *, from_offset: int) -> Iterator[MetadataRecord]:
    for batch in batches:
        header, content = batch.fetched
        if not header.is_control:
            yield from decode_batch(content, header, from_offset=from_offset)
