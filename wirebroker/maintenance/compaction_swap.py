"""Swaps a worker's `.cleaned` segment into a log that goes on being read, written and retained.

Between the steps of segment_swap.py threads sync the directory; meanwhile the log may be deleted,
or lose segments to retention. Whatever the worker has not read is never thrown away: the old
segments must be the same at each step.
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
    from wirebroker.replica.deleted_segments import DeletedSegments
    from wirebroker.replica.partition import Partition
    from wirebroker.storage.compaction.compaction import CleanedGroup
    from wirebroker.storage.files import Files
    from wirebroker.storage.log.segment.segment import Segment

# A sync that lacked descriptors or memory is done again after this.
_SHORTAGE_PAUSE_S: Final = 0.1


class CompactionAbortedError(Exception):
    """The log is not any more what the worker was told to compact."""


async def swap_in(
    partition: Partition,
    files: Files,
    group: CleanedGroup,
    *,
    deleted: DeletedSegments,
    clock: Clock,
) -> None:
    """Put a `.cleaned` segment into the place of the group's old ones.

    Args:
        partition: Others use it meanwhile.
        files: Where its log lies.
        group: What the worker has written.
        deleted: Takes over the old segments.
        clock: For slices of the loop's time.

    Raises:
        CompactionAbortedError: The log has changed; it is as it was, or gone.
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
        with contextlib.suppress(OSError):  # the first error is the one to tell
            undo_swap(files, log.directory, base_offset)
        raise
    try:
        await _sync(partition, files)
        await partition.until_settled()
        old = _check(partition, group)
    except (CompactionAbortedError, OSError):
        # Left there, a start would complete it, whatever the log has become by then.
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
            segment.let_go()  # a deleted topic takes its files along
        return
    finish_swap(log, files, new)
    deleted.add(old, delay_ms=log.settings.file_delete_delay_ms)
    await _sync(partition, files)


async def throw_away(partition: Partition, files: Files) -> None:
    """Remove what a worker that has ended left unfinished.

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
    """Wait until the names are on the disk, and for descriptors and memory if they are short."""
    while True:
        try:
            await in_thread(Work.UPKEEP, files.sync_directory, partition.log.directory)
        except FileNotFoundError:
            # A deletion moves the directory away under the sync.
            if not partition.is_retired:
                raise
            return
        except OSError as error:
            if not is_shortage(error):
                raise
            await pause(_SHORTAGE_PAUSE_S)
        else:
            return
