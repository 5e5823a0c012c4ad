"""Assignment of a batch's files, or pieces of them, to tasks.

As in Spark, several tasks share a JSON file. One task reads any other file from its beginning,
because only the preceding records show where a record begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.pipelines.ingest.file_lines import is_compressed

if TYPE_CHECKING:
    from collections.abc import Iterable

# Spark's maxPartitionBytes, and openCostInBytes (the cost of opening a file).
_MOST_PIECE_BYTES: Final = 128 << 20
_OPEN_BYTES: Final = 4 << 20


class SourceFile(NamedTuple):
    """A file of a batch.

    Attributes:
        source: Its address, for dead letters.
        path: Where it is read.
    """

    source: str
    path: str
    size: int


class FilePiece(NamedTuple):
    """A piece of a file, and the number of the task that reads it."""

    task: int
    source: str
    path: str
    start: int
    end: int | None


def pieces_of(files: Iterable[SourceFile], *, format_name: str, cores: int) -> list[FilePiece]:
    """Return the pieces of files, for tasks from 0; `cores` tasks run at a time."""
    file_list = list(files)
    total = sum(file.size + _OPEN_BYTES for file in file_list)
    max_bytes = min(_MOST_PIECE_BYTES, max(_OPEN_BYTES, -(-total // cores)))
    pieces: list[FilePiece] = []
    task = task_bytes = 0
    for file in file_list:
        is_split = format_name == "json" and not is_compressed(file.path) and file.size > max_bytes
        for start in range(0, file.size, max_bytes) if is_split else (0,):
            end = start + max_bytes if is_split and start + max_bytes < file.size else None
            size = (end or file.size) - start + _OPEN_BYTES
            if task_bytes and task_bytes + size > max_bytes:
                task, task_bytes = task + 1, 0
            pieces.append(FilePiece(task, file.source, file.path, start, end))
            task_bytes += size
    return pieces
