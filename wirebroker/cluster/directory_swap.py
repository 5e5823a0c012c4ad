"""Takes the copy of a log in another directory into use, in place of the log's own files.

    the log's directory is set aside, the copy's gets its name    in one turn of the loop
    both names are on the disk, checkpoints say where it lies     after that
    what was set aside is removed                                 after file.delete.delay.ms

Between the two renames nothing but the copy is there, and it is whole: a start takes it for the log
(found_copies.py). Kafka renames the copy first, and may then find a partition twice.

Source: Kafka's LogManager.replaceCurrentWithFutureLog.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.threads import Work, in_thread

if TYPE_CHECKING:
    from wirebroker.clock import Clock
    from wirebroker.cluster.data_directory import DataDirectory
    from wirebroker.cluster.partition import Partition
    from wirebroker.storage.files import Files


def swap_directories(
    partition: Partition, target: DataDirectory, copy_path: str, files: Files
) -> str:
    """Have a replica lie where a copy of its log is, whole and on the disk; nobody appends.

    Returns:
        The path of what it has left.

    Raises:
        OSError: A disk failed; it lies where it was.
    """
    source = partition.directory
    topic, index = partition.topic, partition.index
    with files.renaming:
        aside = source.files.delete_partition_directory(topic, index)
        try:
            path = target.files.use_future_directory(copy_path, topic, index)
        except OSError:
            source.files.keep_partition_directory(aside, topic, index)
            raise
        partition.log.relocate(path)
    source.partitions.discard(partition)
    target.partitions.add(partition)
    for each in (source, target):
        each.note_new_names()
    partition.move_to(target)
    return aside


async def settle(partition: Partition, source: DataDirectory, clock: Clock) -> None:
    """Have the names on the disk, and the checkpoints of both directories say where it lies.

    Raises:
        OSError: A disk failed.
    """
    for directory in (source, partition.directory):
        await in_thread(Work.TOPICS, directory.sync_names)
    await source.forget([partition], clock)
    await partition.directory.checkpoint(clock)
