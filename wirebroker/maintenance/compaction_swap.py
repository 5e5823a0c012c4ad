"""The swap of a worker's `.cleaned` segment into a log in use.

Between the steps of segment_swap.py threads sync the directory, while the log may be deleted or
lose segments to retention. So each step requires the same old segments.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from wirebroker.base.clock import Slices, pause
from wirebroker.base.threads import Work, in_thread
from wirebroker.disks.data_directory import is_shortage
from wirebroker.storage.compaction.segment_swap import (
    begin_swap,
    discard_cleaned,
    enter_swapped,
    finish_swap,
    is_written,
    old_segments,
    set_aside_old,
    undo_swap,
)

if TYPE_CHECKING:
    from wirebroker.base.clock import Clock
    from wirebroker.replica.deleted_files import DeletedSegments
    from wirebroker.replica.partition import Partition
    from wirebroker.storage.compaction.compaction import CleanedGroup
    from wirebroker.storage.files import Files
    from wirebroker.storage.log.segment.segment import Segment

# After a lack of descriptors or memory.
_SHORTAGE_PAUSE_S: Final = 0.1


class CompactionAbortedError(Exception):
    """The log has changed since the worker was started."""


async def swap_in(
    partition: Partition,
    files: Files,
    group: CleanedGroup,
    *,
    deleted: DeletedSegments,
    clock: Clock,
) -> None:
    """Replace the group's old segments while the partition is in use.

    Raises:
        CompactionAbortedError: The log has changed; nothing was swapped.
        OSError: The disk failed.
    """
    log = partition.log
    base_offset = group.base_offsets[0]
    await partition.until_settled()
    _check(partition, group)
    if not is_written(files, log.directory, base_offset, group.bytes_after):
        raise CompactionAbortedError
    try:
        begin_swap(files, log.directory, base_offset)
    except OSError:
        with contextlib.suppress(OSError):  # report the first error
            undo_swap(files, log.directory, base_offset)
        raise
    try:
        await _sync(partition, files)
        await partition.until_settled()
        old = _check(partition, group)
    except (CompactionAbortedError, OSError):
        # Otherwise a start would complete the swap.
        if not partition.is_retired:
            with contextlib.suppress(OSError):
                undo_swap(files, log.directory, base_offset)
        raise
    new = enter_swapped(log, files, old)
    slices = Slices(clock)
    for segment in old:
        if partition.is_retired:
            break
        set_aside_old(log, segment)
        await slices.turn()
    await _sync(partition, files)
    if partition.is_retired:
        for segment in old:
            segment.free_gradually()  # the files go with the topic
        return
    finish_swap(log, files, new)
    deleted.add(old, delay_ms=log.settings.file_delete_delay_ms)
    await _sync(partition, files)


async def throw_away(partition: Partition, files: Files) -> None:
    """Remove the unfinished files of an ended worker.

    Raises:
        OSError: The disk failed.
    """

    def discard() -> None:
        try:
            discard_cleaned(files, partition.log.directory)
        except FileNotFoundError:
            if not partition.is_retired:
                raise

    await in_thread(Work.UPKEEP, discard)


def _check(partition: Partition, group: CleanedGroup) -> list[Segment]:
    if partition.is_retired or not partition.directory.is_online:
        raise CompactionAbortedError
    old = old_segments(partition.log, group.base_offsets)
    if old is None or sum(segment.size for segment in old) != group.bytes_before:
        raise CompactionAbortedError
    return old


async def _sync(partition: Partition, files: Files) -> None:
    """Sync the names; retry if descriptors or memory are short."""
    while True:
        try:
            await in_thread(Work.UPKEEP, files.sync_directory, partition.log.directory)
        except FileNotFoundError:
            # A deletion has moved the directory.
            if not partition.is_retired:
                raise
            return
        except OSError as error:
            if not is_shortage(error):
                raise
            await pause(_SHORTAGE_PAUSE_S)
        else:
            return
