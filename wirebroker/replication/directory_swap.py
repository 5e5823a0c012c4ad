"""Replaces a log's files by its copy in another directory.

    rename the log's directory away, give its name to the copy    in one turn of the loop
    update the checkpoints, sync both names                       after that
    count the copied records as on disk                           after that
    remove the old directory                                      after file.delete.delay.ms

Between the renames only the complete copy exists: a start uses it as the log (log_copies.py). Kafka
renames the copy first and may then find a partition twice.

Names are synced in the order of the renames, after the log start offset was written: deleted
records stay deleted after a power failure.

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
    """The log's state at the swap: its copy has everything below the end on disk."""

    log_end_offset: int
    cuts: int


class HalfSwappedError(OSError):
    """Neither directory has the log's name; only the complete copy is left."""


def swap_directories(
    partition: Partition, target: DataDirectory, copy_path: str, files: Files
) -> str:
    """Switch a replica to the complete, synced copy of its log; nothing may be appending.

    Return the path of the old directory.

    Raises:
        OSError: A disk failed; the replica stays in its directory.
        HalfSwappedError: Both renames failed; neither directory may be used until the next start.
    """
    source = partition.directory
    topic, index = partition.topic, partition.index
    with files.renaming:
        old_path = source.files.delete_partition_directory(topic, index)
        try:
            path = target.files.use_future_directory(copy_path, topic, index)
        except OSError as error:
            try:
                source.files.keep_partition_directory(old_path, topic, index)
            except OSError as second_error:
                raise HalfSwappedError(error.errno, f"{error}; {second_error}") from second_error
            raise
        partition.log.relocate(path)
    source.partitions.discard(partition)
    target.partitions.add(partition)
    for directory in (source, target):
        directory.note_new_names()
    partition.move_to(target)
    return old_path


async def settle(
    partition: Partition,
    source: DataDirectory,
    clock: Clock,
    *,
    swapped: Swapped,
    on_failure: Callable[[DataDirectory, OSError], None],
) -> None:
    """Update the checkpoints of both directories and sync the names.

    `on_failure` is called for each disk that fails.
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
