"""A shadow, from opening the source and the directory to closing them."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.clock import SystemClock
from wirebroker.base.text import counted
from wirebroker.client.errors import ClientError
from wirebroker.codecs.errors import KafkaError
from wirebroker.config.rows.releases import RELEASE_VERSION
from wirebroker.config.sources.sources import load_config
from wirebroker.coordinator.patterns import compile_pattern
from wirebroker.shadow.copied_partition import DONE, FOLLOWED
from wirebroker.shadow.copy_directory import CopyDirectory
from wirebroker.shadow.source import Source
from wirebroker.shadow.source_copier import SourceCopier
from wirebroker.storage.files import Files

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence

    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.shadow.copied_partition import CopiedPartition

# Open segments; others are opened when needed.
_OPEN_FILES: Final = 256


@asynccontextmanager
async def shadowed(
    client: KafkaClient, is_wanted: Callable[[str, bool], bool], *, path: str, is_once: bool
) -> AsyncGenerator[SourceCopier]:
    """Open a copy in a directory (an absolute path); the exit closes it as after a clean stop.

    Raises:
        StartError: The directory cannot be used.
    """
    clock = SystemClock()
    source = Source(client, is_wanted)
    cluster_id = await source.cluster_id()
    flags = {RELEASE_VERSION: await source.release()}
    config = load_config(file=None, environment={}, flags=flags, data_directory=path)
    directory = await CopyDirectory.open(
        path,
        cluster_id=cluster_id,
        config=config,
        clock=clock,
        files=Files(max_open_files=_OPEN_FILES),
    )
    try:
        yield SourceCopier(source, directory, clock=clock, is_once=is_once, cluster_id=cluster_id)
    finally:
        await directory.close()


def topic_filter(patterns: Sequence[str]) -> Callable[[str, bool], bool]:
    """Return a function that selects topics by name and whether they are internal.

    Patterns match whole names; an internal topic needs its exact name.

    Raises:
        ClientError: A pattern is invalid.
    """
    try:
        compiled = [compile_pattern(pattern) for pattern in patterns]
    except KafkaError as error:
        raise ClientError(f"{' '.join(patterns)} is not a regular expression: {error}") from None

    def is_wanted(name: str, is_internal: bool) -> bool:
        if is_internal or name.startswith("__"):
            return name in patterns
        return any(pattern.fullmatch(name) for pattern in compiled)

    return is_wanted


# Columns of the printed table.
COLUMNS: Final = (
    "topic",
    "partition",
    "log_start_offset",
    "log_end_offset",
    "high_watermark",
    "copied_records",
    "copied_bytes",
    "gap_count",
    "fault_count",
)


def summary(partitions: Iterable[CopiedPartition], *, cluster_id: str) -> dict[str, Any]:
    """Return the report for JSON."""
    rows = [
        partition.report()
        for partition in sorted(partitions, key=lambda partition: partition.place)
    ]
    return {
        "cluster_id": cluster_id,
        "partitions": rows,
        "copied_records": sum(row["copied_records"] for row in rows),
        "copied_bytes": sum(row["copied_bytes"] for row in rows),
        "gap_count": sum(row["gap_count"] for row in rows),
        "fault_count": sum(row["fault_count"] for row in rows),
        "ended_count": sum(not _is_fine(row["state"]) for row in rows),
    }


def remarks(report: dict[str, Any]) -> Iterator[str]:
    """Yield sentences about gaps, faults and totals."""
    for row in report["partitions"]:
        partition = f"{row['topic']}-{row['partition']}"
        if not _is_fine(row["state"]):
            yield f"{partition} stopped: {row['state']}"
        for first, end in row["gaps"]:
            yield f"{partition}: no records from {first} to {end - 1}"
        for fault in row["faults"]:
            yield f"{partition}: {fault}"
    yield (
        f"{counted(report['copied_records'], 'record')},"
        f" {counted(report['copied_bytes'], 'byte')} copied;"
        f" {counted(report['gap_count'], 'gap')}, {counted(report['fault_count'], 'fault')}"
    )


def is_fine(report: dict[str, Any]) -> bool:
    """Return whether everything was copied without faults."""
    return not report["fault_count"] and not report["ended_count"]


def _is_fine(state: str) -> bool:
    return state in {FOLLOWED, DONE}
