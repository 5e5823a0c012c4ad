"""Facts about a log directory: its user, identity, checkpoints and partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from wirebroker.codecs.primitives import uuid_from_text
from wirebroker.inspect.rows.file_kinds import (
    LEFTOVERS,
    OFFSET_CHECKPOINTS,
    FileKind,
    kind_of,
)
from wirebroker.inspect.rows.small_file_rows import small_file_rows
from wirebroker.inspect.verify.findings import FileReport
from wirebroker.inspect.views.read_only_files import lock_holder
from wirebroker.storage.checkpoints import (
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
)
from wirebroker.storage.directory_identity import META_PROPERTIES
from wirebroker.storage.file_names import PartitionName, partition_of
from wirebroker.storage.log_directory import CLEAN_SHUTDOWN_MARKER

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.inspect.rows.rows import Row
    from wirebroker.inspect.verify.findings import Finding
    from wirebroker.inspect.views.read_only_files import ReadOnlyFiles
    from wirebroker.storage.checkpoints import TopicPartition

_KNOWN_NAMES = {".lock"}


class DirectoryFacts(NamedTuple):
    """A log directory's facts, read before it is checked."""

    path: str
    names: list[str]
    is_running: bool
    was_clean: bool
    cluster_id: str | None
    node_id: int | None
    directory_id: bytes | None
    recovery_points: dict[TopicPartition, int]
    high_watermarks: dict[TopicPartition, int]
    log_start_offsets: dict[TopicPartition, int]
    partitions: dict[str, PartitionName]  # by folder name


def read_facts(files: ReadOnlyFiles, path: str, emit: Callable[[Finding], None]) -> DirectoryFacts:
    """Read a directory's own files, and report their problems."""
    is_running = lock_holder(path) is not None
    reader = _Reader(files, path, emit)
    checkpoints = {name: reader.offsets(name) for name in OFFSET_CHECKPOINTS}
    names = sorted(files.list_directory(path))
    partitions = {
        name: partition
        for name in names
        if (partition := partition_of(name)) and files.is_directory(f"{path}/{name}")
    }
    if is_running:
        FileReport(path, emit).note("a broker uses it: data that it may be changing is not checked")
    else:
        _check_names(path, names, partitions, emit)
        for name, offsets in checkpoints.items():
            _check_partitions(FileReport(f"{path}/{name}", emit), offsets, partitions)
    identity = reader.one(META_PROPERTIES, FileKind.META_PROPERTIES)
    if identity is None and not files.exists(f"{path}/{META_PROPERTIES}"):
        FileReport(f"{path}/{META_PROPERTIES}", emit).error("it is missing")
    identity = identity or {"cluster_id": None, "node_id": None, "directory_id": None}
    directory_id = identity["directory_id"]
    if not is_running:
        reader.one(CLEAN_SHUTDOWN_MARKER, FileKind.CLEAN_SHUTDOWN)
    return DirectoryFacts(
        path=path,
        names=names,
        is_running=is_running,
        was_clean=CLEAN_SHUTDOWN_MARKER in names,
        cluster_id=identity["cluster_id"],
        node_id=identity["node_id"],
        directory_id=directory_id and uuid_from_text(directory_id),
        recovery_points=checkpoints[RECOVERY_POINT_CHECKPOINT],
        high_watermarks=checkpoints[HIGH_WATERMARK_CHECKPOINT],
        log_start_offsets=checkpoints[LOG_START_CHECKPOINT],
        partitions=partitions,
    )


class _Reader:
    def __init__(self, files: ReadOnlyFiles, path: str, emit: Callable[[Finding], None]) -> None:
        self._files = files
        self._path = path
        self._emit = emit

    def offsets(self, name: str) -> dict[TopicPartition, int]:
        """Return a checkpoint's offsets by partition; empty if it is missing or damaged."""
        offsets: dict[TopicPartition, int] = {}
        report = FileReport(f"{self._path}/{name}", self._emit)
        for row in self._rows(name, FileKind.OFFSET_CHECKPOINT):
            key = (row["topic"], row["partition"])
            if row["offset"] < 0 or row["partition"] < 0:
                report.error(f"{key[0]}-{key[1]} has the offset {row['offset']}")
            elif key in offsets:
                report.error(f"{key[0]}-{key[1]} occurs twice")
            else:
                offsets[key] = row["offset"]
        return offsets

    def one(self, name: str, kind: FileKind) -> Row | None:
        """Return the row of a file with one row; None if it is missing or damaged."""
        return next(iter(self._rows(name, kind)), None)

    def _rows(self, name: str, kind: FileKind) -> list[dict[str, Any]]:
        path = f"{self._path}/{name}"
        if not self._files.exists(path):
            return []
        rows = list(small_file_rows(self._files, path, kind))
        for row in rows:
            if row["type"] == "damage":
                FileReport(path, self._emit).error(row["message"], position=row["position"])
                return []
        return rows


def _check_names(
    path: str,
    names: list[str],
    partitions: dict[str, PartitionName],
    emit: Callable[[Finding], None],
) -> None:
    for name in names:
        report = FileReport(f"{path}/{name}", emit)
        if name.endswith(LEFTOVERS):
            report.note("left by a crash")
        elif name not in partitions and kind_of(name) is None and name not in _KNOWN_NAMES:
            report.note("not a Kafka file")


def _check_partitions(
    report: FileReport,
    offsets: dict[TopicPartition, int],
    partitions: dict[str, PartitionName],
) -> None:
    present = {(name.topic, name.partition) for name in partitions.values() if name.aside is None}
    for topic, partition in offsets:
        if (topic, partition) not in present:
            report.note(f"{topic}-{partition} is not here")
