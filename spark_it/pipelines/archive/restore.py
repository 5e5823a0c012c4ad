"""Restore of an archive's records into partition folders with Kafka's files.

    INTO/<topic>-<partition>/   segments with their indexes, leader-epoch-checkpoint

Offsets and timestamps stay the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.records.batch import build_batch, read_batch_header
from wirebroker.codecs.records.codec import Codec
from wirebroker.codecs.records.record import Record
from wirebroker.pipelines.archive.archive import archived
from wirebroker.pipelines.archive.archived_topics import of_chosen_ids
from wirebroker.storage.checkpoints import write_rows
from wirebroker.storage.files import Files
from wirebroker.storage.log.leader_epochs import FILE_NAME as LEADER_EPOCHS
from wirebroker.storage.log.segment.segment import Segment

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

COLUMNS: Final = ("offset", "unix_millis(timestamp)", "key", "value", "headers")
# Kafka's defaults: batch.size, segment.bytes and index.interval.bytes.
_BATCH_BYTES: Final = 16 << 10
_SEGMENT_BYTES: Final = 1 << 30
_INDEX_INTERVAL_BYTES: Final = 4096
# Indexes contain relative offsets of 31 bits.
_MOST_DELTA: Final = (1 << 31) - 1


class FolderExistsError(Exception):
    """A partition's folder already exists and was not changed."""


def restore(
    spark: SparkSession, target: Path, into: Path, topic_ids: Collection[str] = ()
) -> Iterator[tuple[str, int]]:
    """Write each partition of an archive; yield its folder's name and number of records.

    Raises:
        RecreatedTopicError, PipelineError: As `of_chosen_ids`.
        FolderExistsError: A folder exists; earlier partitions were written.
    """
    table = of_chosen_ids(archived(spark, target), topic_ids)
    partitions = (
        table.select("topic", "partition").distinct().orderBy("topic", "partition").collect()
    )
    for topic, partition in partitions:
        directory = into / f"{topic}-{partition}"
        if directory.exists():
            raise FolderExistsError(f"{directory} already exists; use another folder")
        of_partition = (table.topic == topic) & (table.partition == partition)
        rows = table.where(of_partition).orderBy("offset").selectExpr(*COLUMNS)
        writer = _PartitionWriter(str(directory))
        for row in rows.toLocalIterator():
            writer.add(record_of(row))
        writer.finish()
        yield directory.name, writer.count


def record_of(row: Any) -> Record:
    """Convert a row of COLUMNS to a record."""
    offset, timestamp, key, value, headers = row
    pairs = [(name, _bytes(content)) for name, content in headers or ()]
    return Record(offset, timestamp, _bytes(key), _bytes(value), pairs)


def _bytes(content: bytearray | None) -> bytes | None:
    return None if content is None else bytes(content)


class _PartitionWriter:
    """Writer of one partition's log."""

    def __init__(self, directory: str) -> None:
        self._files = Files()
        self._directory = directory
        self._files.make_directory(directory)
        self._segment: Segment | None = None
        self._records: list[Record] = []
        self._bytes = 0
        self._first_offset = 0
        self.count = 0

    def add(self, record: Record) -> None:
        """Add a record with a higher offset than the previous one."""
        if not self.count:
            self._first_offset = record.offset
        first = self._records[0].offset if self._records else record.offset
        if self._bytes >= _BATCH_BYTES or record.offset - first > _MOST_DELTA:
            self._write()
        self._records.append(record)
        self._bytes += len(record.key or b"") + len(record.value or b"")
        self.count += 1

    def finish(self) -> None:
        self._write()
        if self._segment is not None:
            self._close(self._segment)
            path = f"{self._directory}/{LEADER_EPOCHS}"
            write_rows(self._files, path, [f"0 {self._first_offset}"])
        self._files.sync_directory(self._directory)

    def _write(self) -> None:
        if not self._records:
            return
        batch = build_batch(
            self._records,
            base_offset=self._records[0].offset,
            leader_epoch=0,
            codec=Codec.ZSTD,
        )
        header = read_batch_header(batch)
        segment = self._segment_for(header.base_offset, header.last_offset, len(batch))
        segment.append(batch, [header], index_interval_bytes=_INDEX_INTERVAL_BYTES)
        self._records = []
        self._bytes = 0

    def _segment_for(self, offset: int, last_offset: int, size: int) -> Segment:
        segment = self._segment
        if (
            segment is None
            or segment.size + size > _SEGMENT_BYTES
            or last_offset - segment.base_offset > _MOST_DELTA
        ):
            if segment is not None:
                self._close(segment)
            segment = Segment(self._files, self._directory, offset, created_ms=0)
            segment.create()
            self._segment = segment
        return segment

    @staticmethod
    def _close(segment: Segment) -> None:
        segment.finish()
        segment.sync()
        segment.close_files()
