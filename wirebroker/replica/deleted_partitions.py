"""Files of deleted partitions: put aside at once, removed when file.delete.delay.ms is over.

    <topic>-<n>/ --rename--> <topic>-<n>.<hex>-delete/ --after a while--> gone

Open files stay open meanwhile, so that answers that are being sent from them are finished. What a
broker that stopped could not remove, the next one does.

Source: Kafka's LogManager.asyncDelete, deleteLogs.
"""

from __future__ import annotations

import contextlib
import logging
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

logger = logging.getLogger(__name__)

# Partitions that a thread renames or removes at a time: about 50 ms of a disk that is busy.
_BATCH = 50


class _Removal(NamedTuple):
    """A deleted partition whose files go when file.delete.delay.ms is over."""

    due: float  # monotonic seconds
    path: str
    log: Log | None  # whose open files readers may still be sent from


class DeletedPartitions:
    """What is to be removed."""

    __slots__ = ("_clock", "_files", "_on_failure", "_removals")

    def __init__(
        self,
        files: Files,
        clock: Clock,
        *,
        on_failure: Callable[[DataDirectory, OSError], None],
    ) -> None:
        """Keep deleted partitions' files; `on_failure` is told of a disk that cannot rename."""
        self._files = files
        self._clock = clock
        self._on_failure = on_failure
        self._removals: list[_Removal] = []

    def add_found(self, paths: Iterable[str]) -> None:
        """Note what a broker that stopped before has left: to be removed at once."""
        now = self._clock.monotonic()
        self._removals += [_Removal(now, path, None) for path in paths]

    def add_moved(self, path: str, *, delay_ms: int) -> None:
        """Note what a log that lies elsewhere by now has left: to be removed after a while."""
        self._removals.append(_Removal(self._clock.monotonic() + delay_ms / 1000, path, None))

    async def put_aside(self, partitions: Sequence[Partition]) -> None:
        """Rename the directories of retired partitions, some at a time."""
        for start in range(0, len(partitions), _BATCH):
            batch = partitions[start : start + _BATCH]
            for partition in batch:
                assert partition.is_retired, f"{partition} is still served"
                # Whoever comes after a thread that is writing finds the partition retired.
                await partition.until_settled()
            moved = await in_thread(Work.TOPICS, _move_aside, batch)
            now = self._clock.monotonic()
            for partition, path in zip(batch, moved, strict=True):
                if isinstance(path, OSError):
                    self._on_failure(partition.directory, path)
                elif path is not None:
                    delay_s = partition.log.settings.file_delete_delay_ms / 1000
                    self._removals.append(_Removal(now + delay_s, path, partition.log))

    def remove_due(self) -> bool:
        """Remove the files of some deleted partitions whose delay is over. Blocks.

        Returns:
            Whether there may be more of them.
        """
        now = self._clock.monotonic()
        due = [removal for removal in self._removals if removal.due <= now][:_BATCH]
        for removal in due:
            self._removals.remove(removal)
            if removal.log is not None:
                removal.log.close(clean=False)
            try:
                self._files.remove_tree(removal.path)
            except OSError as error:
                logger.warning("%s cannot be removed: %s", removal.path, error)
        return len(due) == _BATCH

    def close(self) -> None:
        """Let go of the files that are still open."""
        for removal in self._removals:
            if removal.log is not None:
                removal.log.close(clean=False)


def _move_aside(partitions: Sequence[Partition]) -> list[str | OSError | None]:
    """Rename the directories of deleted partitions. Blocks.

    Returns:
        Each one's new path or what went wrong; None where the disk has failed before.
    """
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
                # No room for a second name: the files go at once.
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
