"""Deleted partitions and segments: renamed immediately, removed after file.delete.delay.ms.

    <topic>-<n>/ --rename--> <topic>-<n>.<hex>-delete/ --delay--> removed
    <offset>.log --rename--> <offset>.log.deleted      --delay--> removed

They stay readable until then, for responses that are being sent from them. The next start removes
files that a stop left.

Source: Kafka's LogManager.asyncDelete, deleteLogs; LocalLog.deleteSegmentFiles.
"""

from __future__ import annotations

import contextlib
import logging
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

from wirebroker.base.threads import Work, in_thread
from wirebroker.codecs.errors import without_frames
from wirebroker.disks.data_directory import is_disk_failure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from wirebroker.base.clock import Clock
    from wirebroker.disks.data_directory import DataDirectory
    from wirebroker.replica.partition import Partition
    from wirebroker.storage.files import Files
    from wirebroker.storage.log.log import Log
    from wirebroker.storage.log.segment.segment import Segment

logger = logging.getLogger(__name__)

# Partitions per call of a thread: about 50 ms on a busy disk.
_PARTITION_BATCH = 50
# A file of 1 GiB takes a thread about 50 ms.
_SEGMENT_BATCH = 50


class _Removal(NamedTuple):
    """A directory to remove."""

    due: float  # monotonic seconds
    path: str
    log: Log | None


class DeletedPartitions:
    """The directories that wait for removal."""

    __slots__ = ("_clock", "_files", "_on_failure", "_removals")

    def __init__(
        self,
        files: Files,
        clock: Clock,
        *,
        on_failure: Callable[[DataDirectory, OSError], None],
    ) -> None:
        """Start empty; `on_failure` is called when a rename fails."""
        self._files = files
        self._clock = clock
        self._on_failure = on_failure
        self._removals: list[_Removal] = []

    def add_found(self, paths: Iterable[str]) -> None:
        """Add directories that an earlier run left, to be removed immediately."""
        now = self._clock.monotonic()
        self._removals += [_Removal(now, path, None) for path in paths]

    def add_moved(self, path: str, *, delay_ms: int) -> None:
        """Add the former directory of a moved log."""
        self._removals.append(_Removal(self._clock.monotonic() + delay_ms / 1000, path, None))

    async def put_aside(self, partitions: Sequence[Partition]) -> None:
        """Rename the directories of retired partitions."""
        for start in range(0, len(partitions), _PARTITION_BATCH):
            batch = partitions[start : start + _PARTITION_BATCH]
            for partition in batch:
                assert partition.is_retired, f"{partition} is still served"
                # Waiting appends then see that the partition is retired.
                await partition.until_settled()
            paths = await in_thread(Work.TOPICS, _move_aside, batch)
            now = self._clock.monotonic()
            for partition, path in zip(batch, paths, strict=True):
                if isinstance(path, OSError):
                    self._on_failure(partition.directory, path)
                elif path is not None:
                    delay_s = partition.log.settings.file_delete_delay_ms / 1000
                    self._removals.append(_Removal(now + delay_s, path, partition.log))

    def remove_due(self) -> bool:
        """Remove some directories that are due; return whether there may be more. Blocks."""
        now = self._clock.monotonic()
        removals = [removal for removal in self._removals if removal.due <= now][:_PARTITION_BATCH]
        for removal in removals:
            self._removals.remove(removal)
            if removal.log is not None:
                removal.log.close(clean=False)
            try:
                self._files.remove_tree(removal.path)
            except OSError as error:
                logger.warning("cannot remove %s: %s", removal.path, error)
        return len(removals) == _PARTITION_BATCH

    def close(self) -> None:
        """Close the files that are still open."""
        for removal in self._removals:
            if removal.log is not None:
                removal.log.close(clean=False)


def _move_aside(partitions: Sequence[Partition]) -> list[str | OSError | None]:
    """Rename directories; return each new path or error, or None for a failed disk. Blocks."""
    moved: list[str | OSError | None] = []
    for partition in partitions:
        if not partition.directory.is_online:
            moved.append(None)
            continue
        files = partition.directory.files
        try:
            path = files.delete_partition_directory(partition.topic, partition.index)
        except OSError as error:
            if not is_disk_failure(error):
                # No room for a second name: remove the files immediately.
                with contextlib.suppress(OSError):
                    partition.directory.files.remove_partition_directory(
                        partition.topic, partition.index
                    )
            moved.append(without_frames(error))
        else:
            for segment in partition.log.segments:
                segment.relocate(path)
            moved.append(path)
    return moved


class DeletedSegments:
    """The deleted segments of all logs."""

    __slots__ = ("_clock", "_count", "_deletions")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # A heap; the time is in monotonic seconds.
        self._deletions: list[tuple[float, int, Segment]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._deletions)

    def add(self, segments: Iterable[Segment], *, delay_ms: int) -> None:
        """Add renamed segments."""
        due_s = self._clock.monotonic() + delay_ms / 1000
        for segment in segments:
            self._count += 1
            heappush(self._deletions, (due_s, self._count, segment))

    async def remove_due(self) -> None:
        """Remove the files that are due."""
        now = self._clock.monotonic()
        while self._deletions and self._deletions[0][0] <= now:
            segments: list[Segment] = []
            while (
                self._deletions and self._deletions[0][0] <= now and len(segments) < _SEGMENT_BATCH
            ):
                segments.append(heappop(self._deletions)[2])
            await in_thread(Work.UPKEEP, _remove_segments, segments)


def _remove_segments(segments: list[Segment]) -> None:
    for segment in segments:
        try:
            segment.remove()
        except OSError as error:
            logger.warning("cannot remove %s: %s", segment.log.path, error)
