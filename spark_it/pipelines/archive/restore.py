"""The way back: an archive's records as partitions' logs, in Kafka's format.

    INTO/<topic>-<partition>/   segments with their indexes, leader-epoch-checkpoint

Offsets and timestamps are kept, gaps too; keys, values and headers are what they were. Producers
and transactions are not: all records were committed. The data source reads such a folder as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.records.batch import build_batch, read_batch_header
from wirebroker.codecs.records.compression import Codec
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

# Of an archive, what makes a record.
COLUMNS: Final = ("offset", "unix_millis(timestamp)", "key", "value", "headers")
# As Kafka's producers by default (batch.size), and its logs (segment.bytes, index.interval.bytes).
_BATCH_BYTES: Final = 16 << 10
_SEGMENT_BYTES: Final = 1 << 30
_INDEX_INTERVAL_BYTES: Final = 4096
# Offsets in an index are relative, of 31 bits.
_MOST_DELTA: Final = (1 << 31) - 1


class FolderExistsError(Exception):
    """A partition's folder is there already: nothing was written into it."""


def restore(
    spark: SparkSession, target: Path, into: Path, topic_ids: Collection[str] = ()
) -> Iterator[tuple[str, int]]:
    """Write each partition of an archive; yield its folder's name and how many records it has.

    Args:
        spark: The session.
        target: The archive.
        into: The folder for the partitions' folders.
        topic_ids: Of topics that were recreated: which ids to restore.

    Raises:
        RecreatedTopicError, PipelineError: As `of_chosen_ids`.
        FolderExistsError: What is there is left alone; the partitions before it were written.
        OSError: The disk.
    """
    table = of_chosen_ids(archived(spark, target), topic_ids)
    places = table.select("topic", "partition").distinct().orderBy("topic", "partition").collect()
    for topic, partition in places:
        directory = into / f"{topic}-{partition}"
        if directory.exists():
            raise FolderExistsError(f"{directory} is there already; name another folder")
        mine = (table.topic == topic) & (table.partition == partition)
        rows = table.where(mine).orderBy("offset").selectExpr(*COLUMNS)
        writer = _PartitionWriter(str(directory))
        for row in rows.toLocalIterator():
            writer.add(record_of(row))
        writer.finish()
        yield directory.name, writer.count


def record_of(row: Any) -> Record:
    """Return what a row of COLUMNS is."""
    offset, timestamp, key, value, headers = row
    pairs = [(name, _bytes(content)) for name, content in headers or ()]
    return Record(offset, timestamp, _bytes(key), _bytes(value), pairs)


def _bytes(content: bytearray | None) -> bytes | None:
    return None if content is None else bytes(content)


class _PartitionWriter:
    """One partition's log, from its first record on.

    Attributes:
        count: Of the records.
    """

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
        """Take the next record, of a higher offset than the last."""
        if not self.count:
            self._first_offset = record.offset
        first = self._records[0].offset if self._records else record.offset
        if self._bytes >= _BATCH_BYTES or record.offset - first > _MOST_DELTA:
            self._write()
        self._records.append(record)
        self._bytes += len(record.key or b"") + len(record.value or b"")
        self.count += 1

    def finish(self) -> None:
        """Write what is left, and the file of leader epochs."""
        self._write()
        if self._segment is not None:
            self._close(self._segment)
            path = f"{self._directory}/{LEADER_EPOCHS}"
            write_rows(self._files, path, [f"0 {self._first_offset}"])
        self._files.sync_directory(self._directory)

    def _write(self) -> None:
        """Write a batch of the records."""
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
        """Give the indexes their ends, and wait for the disk."""
        segment.finish()
        segment.sync()
        segment.close_files()
