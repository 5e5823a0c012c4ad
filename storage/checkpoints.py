"""Checkpoint files: an offset per partition, in the text form that Kafka's brokers share.

    0                          version
    <count>
    <topic> <partition> <offset>     count lines

`leader-epoch-checkpoint` has the same form with two numbers a line. Files are replaced whole, so
what does not parse is damage: CheckpointError. An empty file is an empty list (Kafka creates
`cleaner-offset-checkpoint` so).

Source: Kafka's CheckpointFile, OffsetCheckpointFile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from wirebroker.storage.files import Files

RECOVERY_POINT_CHECKPOINT = "recovery-point-offset-checkpoint"
LOG_START_CHECKPOINT = "log-start-offset-checkpoint"
HIGH_WATERMARK_CHECKPOINT = "replication-offset-checkpoint"
CLEANER_CHECKPOINT = "cleaner-offset-checkpoint"

TopicPartition = tuple[str, int]

_VERSION = "0"


class CheckpointError(OSError):
    """A checkpoint file that cannot be read as one."""


def read_offsets(files: Files, path: str) -> dict[TopicPartition, int]:
    """Return the offsets in a checkpoint file; none if it is missing or empty.

    Raises:
        CheckpointError: The file is damaged.
    """
    offsets: dict[TopicPartition, int] = {}
    for row in read_rows(files, path, columns=3):
        try:
            offsets[row[0], int(row[1])] = int(row[2])
        except ValueError:
            raise CheckpointError(f"{path} is damaged: {' '.join(row)!r}") from None
    return offsets


def write_offsets(
    files: Files, path: str, offsets: Mapping[TopicPartition, int], *, sync: bool = True
) -> None:
    """Replace a checkpoint file. Blocks for the disk unless `sync` is false."""
    rows = [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()]
    write_rows(files, path, rows, sync=sync)


def read_rows(files: Files, path: str, *, columns: int) -> list[list[str]]:
    """Return the rows of any checkpoint file, each split; none if it is missing or empty.

    Raises:
        CheckpointError: The file is damaged, or a row has another number of columns.
    """
    try:
        content = files.read_whole(path)
    except FileNotFoundError:
        return []
    if not content:
        return []
    try:
        version, count, *lines = content.decode().splitlines()
        declared = int(count)
    except ValueError:
        raise CheckpointError(f"{path} is damaged: it does not begin as a checkpoint") from None
    if version != _VERSION:
        raise CheckpointError(f"{path} has version {version[:20]!r}, only 0 is known")
    rows = [line.split() for line in lines if line]
    if len(rows) != declared:
        raise CheckpointError(f"{path} is damaged: {declared} rows declared, {len(rows)} there")
    for row in rows:
        if len(row) != columns:
            raise CheckpointError(f"{path} is damaged: {' '.join(row)!r}")
    return rows


def write_rows(files: Files, path: str, rows: Collection[str], *, sync: bool = True) -> None:
    """Replace a checkpoint file by rows without line ends."""
    content = "\n".join((_VERSION, str(len(rows)), *rows, ""))
    files.write_whole(path, content.encode(), sync=sync)
