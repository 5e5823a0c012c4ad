"""Checkpoint files: one offset per partition, in Kafka's text format (storage/README.md).

Files are replaced as a whole, so any deviation is damage. An empty file is an empty list (Kafka
creates `cleaner-offset-checkpoint` and `leader-epoch-checkpoint` so).

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
_MOST_DIGITS = 19


class CheckpointError(OSError):
    """A damaged checkpoint file."""


def read_offsets(files: Files, path: str) -> dict[TopicPartition, int]:
    """Return the offsets in a checkpoint file, which may be missing.

    Raises:
        CheckpointError: The file is damaged.
    """
    offsets: dict[TopicPartition, int] = {}
    for row in read_rows(files, path, columns=3):
        offsets[row[0], int(row[1])] = int(row[2])
    return offsets


def write_offsets(
    files: Files, path: str, offsets: Mapping[TopicPartition, int], *, sync: bool = True
) -> None:
    """Replace a checkpoint file. Blocks for the disk unless `sync` is false."""
    rows = [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()]
    write_rows(files, path, rows, sync=sync)


def read_rows(files: Files, path: str, *, columns: int) -> list[list[str]]:
    """Return the split rows of a checkpoint file, which may be missing.

    Raises:
        CheckpointError: The file is damaged.
    """
    try:
        content = files.read_file(path)
    except FileNotFoundError:
        return []
    try:
        return parse_rows(content, columns=columns)
    except ValueError as error:
        raise CheckpointError(f"{path} {error}") from None


def parse_rows(content: bytes, *, columns: int) -> list[list[str]]:
    """Return the split rows of a checkpoint file's content.

    Raises:
        ValueError: It is damaged; the message continues a sentence that begins with the path.
    """
    if not content:
        return []
    version, *lines = content.decode("ascii").split("\n")
    if version != _VERSION:
        raise ValueError(f"has version {version[:20]!r}, only 0 is supported")
    count = lines[0] if lines else ""
    if not count.isdigit() or lines[-1]:
        raise ValueError("is damaged: its beginning or end is invalid")
    rows = [line.split(" ") for line in lines[1:-1]]
    if len(rows) != int(count):
        raise ValueError(f"is damaged: {count} rows declared, {len(rows)} found")
    for row in rows:
        if len(row) != columns or not row[0] or not all(map(_is_long, row[columns - 2 :])):
            raise ValueError(f"is damaged: {' '.join(row)!r}")
    return rows


def _is_long(text: str) -> bool:
    return text.isdigit() and len(text) <= _MOST_DIGITS and int(text) < 1 << 63


def encode_rows(rows: Collection[str]) -> bytes:
    """Return the content of a checkpoint file with these rows."""
    return "\n".join((_VERSION, str(len(rows)), *rows, "")).encode()


def write_rows(files: Files, path: str, rows: Collection[str], *, sync: bool = True) -> None:
    """Replace a checkpoint file; see encode_rows."""
    files.write_file(path, encode_rows(rows), sync=sync)
