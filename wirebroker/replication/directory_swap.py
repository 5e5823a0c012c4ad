"""Takes the copy of a log in another directory into use, in place of the log's own files.

    the log's directory is set aside, the copy's gets its name    in one turn of the loop
    checkpoints say where it lies, both names are on the disk     after that
    what was appended counts as being on the disk                 after that
    what was set aside is removed                                 after file.delete.delay.ms

Between the two renames nothing but the copy is there, and it is whole: a start takes it for the log
(found_copies.py). Kafka renames the copy first, and may then find a partition twice.

The names are synced in the order of the renames, and where the log begins is written down before:
whatever a loss of power leaves, deleted records stay deleted.

Source: Kafka's LogManager.replaceCurrentWithFutureLog.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirebroker.base.threads import Work, in_thread

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.base.clock import Clock
    from wirebroker.disks.data_directory import DataDirectory
    from wirebroker.replica.partition import Partition
    from wirebroker.storage.files import Files


class Swapped(NamedTuple):
    """What a log was when its directories were swapped: all below its end is synced in its copy."""

    log_end_offset: int
    cuts: int


class HalfSwappedError(OSError):
    """Neither directory has the log's name any more: the copy, whole, is all there is."""


def swap_directories(
    partition: Partition, target: DataDirectory, copy_path: str, files: Files
) -> str:
    """Have a replica lie where a copy of its log is, whole and on the disk; nobody appends.

    Returns:
        The path of what it has left.

    Raises:
        OSError: A disk failed; it lies where it was.
        HalfSwappedError: Both failed. The next start finds the copy (found_copies.py); until then
            nobody may believe either of the directories.
    """
    source = partition.directory
    topic, index = partition.topic, partition.index
    with files.renaming:
        aside = source.files.delete_partition_directory(topic, index)
        try:
            path = target.files.use_future_directory(copy_path, topic, index)
        except OSError as error:
            try:
                source.files.keep_partition_directory(aside, topic, index)
            except OSError as again:
                raise HalfSwappedError(error.errno, f"{error}; {again}") from again
            raise
        partition.log.relocate(path)
    source.partitions.discard(partition)
    target.partitions.add(partition)
    for each in (source, target):
        each.note_new_names()
    partition.move_to(target)
    return aside


async def settle(
    partition: Partition,
    source: DataDirectory,
    clock: Clock,
    *,
    swapped: Swapped,
    on_failure: Callable[[DataDirectory, OSError], None],
) -> None:
    """Have the checkpoints of both directories say where it lies, and the names on the disk.

    Args:
        partition: It lies where it was moved to.
        source: Where it lay.
        clock: For slices of long work.
        swapped: What the log was when the directories were swapped.
        on_failure: Told of a disk that fails; what is to be done on the other one is done.
    """
    target = partition.directory
    try:
        await target.checkpoint(clock)
    except OSError as error:
        on_failure(target, error)
    is_settled = True
    for directory in (source, target):
        try:
            await in_thread(Work.TOPICS, directory.sync_names)
        except OSError as error:
            is_settled = False
            on_failure(directory, error)
    if is_settled and target.is_online and not partition.is_retired:
        partition.flushed(swapped.log_end_offset, cuts=swapped.cuts)
    try:
        await source.forget([partition], clock)
    except OSError as error:
        on_failure(source, error)
