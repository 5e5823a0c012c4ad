"""Log directories from outside: their partitions, and how far these may be read.

The limit is the high watermark. It is the log's end if the partition has a single replica, or
without a checkpoint, as in a copy of partition folders.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.codecs.primitives import uuid_text
from wirebroker.codecs.records.batch import iterate_records
from wirebroker.codecs.records.control import MAX_CONTROL_BYTES, ControlType, control_type
from wirebroker.inspect.rows.file_kinds import METADATA_TOPIC
from wirebroker.inspect.views.read_only_files import ReadOnlyFiles
from wirebroker.segments.errors import (
    DataLossError,
    OptionError,
    RecreatedTopicError,
    recreated,
)
from wirebroker.segments.log_on_disk import LogOnDisk
from wirebroker.storage.checkpoints import (
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_CHECKPOINT,
    read_offsets,
)
from wirebroker.storage.file_names import partition_of
from wirebroker.storage.log.producers.producer_snapshot import CorruptSnapshotError, decode_snapshot
from wirebroker.storage.partition_metadata import PARTITION_METADATA, topic_id_in

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wirebroker.storage.checkpoints import TopicPartition

# A broker may remove a segment between listing and reading.
_TRIES: Final = 5


class PartitionFolder(NamedTuple):
    """A partition's folder; without a checkpoint, `high_watermark` is None.

    `topic_id`, from `partition.metadata`, has Kafka's text form or is "".
    """

    path: str
    log_start_offset: int
    high_watermark: int | None
    topic_id: str

    def log(self) -> LogOnDisk:
        """Open the log."""
        return LogOnDisk(self.path, log_start_offset=self.log_start_offset)

    def check_topic_id(self, topic: str) -> None:
        """Raise RecreatedTopicError if the folder now belongs to another topic."""
        current_id = _topic_id(ReadOnlyFiles(), self.path)
        if current_id and self.topic_id and current_id != self.topic_id:
            raise recreated(topic, self.topic_id, current_id, "It was recreated while it was read.")


class LogDirectories:
    """Log directories of one broker, or copies of them."""

    __slots__ = ("_directories", "_files", "_replica_counts")

    def __init__(self, directories: tuple[str, ...]) -> None:
        """Check that the directories exist; raise OptionError."""
        self._files = ReadOnlyFiles()
        self._directories = directories
        self._replica_counts: dict[TopicPartition, int] | None = None
        for directory in directories:
            if not self._files.is_directory(directory):
                raise OptionError(f"option path: there is no directory {directory}")

    def find(self, wants: Callable[[str, int], bool]) -> dict[TopicPartition, PartitionFolder]:
        """Return the wanted partitions, in order.

        Raises:
            OptionError: A partition is in two directories.
            RecreatedTopicError: The folders of one topic have different topic ids.
        """
        partitions: dict[TopicPartition, PartitionFolder] = {}
        for directory in self._directories:
            starts = read_offsets(self._files, f"{directory}/{LOG_START_CHECKPOINT}")
            has_checkpoint = self._files.exists(f"{directory}/{HIGH_WATERMARK_CHECKPOINT}")
            marks = read_offsets(self._files, f"{directory}/{HIGH_WATERMARK_CHECKPOINT}")
            for name in self._files.list_subdirectories(directory):
                named = partition_of(name)
                if named is None or named.aside or named.topic == METADATA_TOPIC:
                    continue
                key = (named.topic, named.partition)
                if not wants(*key):
                    continue
                path = f"{directory}/{name}"
                if key in partitions:
                    raise OptionError(
                        f"option path: {partitions[key].path} and {path} are the same partition"
                    )
                mark = marks.get(key, 0) if has_checkpoint else None
                topic_id = _topic_id(self._files, path)
                partitions[key] = PartitionFolder(path, starts.get(key, 0), mark, topic_id)
        topic_ids(partitions)
        return dict(sorted(partitions.items()))

    def end_offset(
        self, key: TopicPartition, folder: PartitionFolder, log: LogOnDisk, *, is_committed: bool
    ) -> int:
        """Return how far a partition may be read: its high watermark or last stable offset.

        Raises:
            KafkaError, OSError, DataLossError: The log cannot be read.
        """
        if folder.high_watermark is None or self._replica_count(key) == 1:
            high_watermark = log.find_end_offset()
        else:
            high_watermark = folder.high_watermark
        high_watermark = max(high_watermark, log.start_offset)
        if not is_committed:
            return high_watermark
        for _ in range(_TRIES):
            try:
                return last_stable_offset(log, high_watermark)
            except FileNotFoundError:
                log.list_again()
        raise DataLossError(f"{log.path} changes faster than it can be read")

    def _replica_count(self, key: TopicPartition) -> int | None:
        if self._replica_counts is None or key not in self._replica_counts:
            # Imported late, because workers do not need them.
            from wirebroker.base.clock import SystemClock
            from wirebroker.inspect.views.metadata_view import (
                UnreadableMetadataError,
                image_of,
            )

            try:
                image = image_of(list(self._directories), SystemClock())
            except UnreadableMetadataError:
                image = None
            self._replica_counts = {}
            for topic in image.topics.values() if image is not None else ():
                for partition in topic.partitions.values():
                    partition_key = topic.name, partition.index
                    self._replica_counts[partition_key] = len(partition.replicas)
        return self._replica_counts.get(key)


def topic_ids(folders: Mapping[TopicPartition, PartitionFolder]) -> dict[str, str]:
    """Return the known topic ids of partitions, by topic.

    Raises:
        RecreatedTopicError: The folders of one topic have different topic ids.
    """
    ids: dict[str, str] = {}
    paths: dict[str, str] = {}
    for (topic, _), folder in sorted(folders.items()):
        if not folder.topic_id:
            continue
        if ids.setdefault(topic, folder.topic_id) != folder.topic_id:
            raise RecreatedTopicError(
                f"topic {topic} was recreated: {paths[topic]} has the topic id {ids[topic]}, "
                f"{folder.path} has {folder.topic_id}. Remove the folders of one of them."
            )
        paths.setdefault(topic, folder.path)
    return ids


def _topic_id(files: ReadOnlyFiles, path: str) -> str:
    try:
        topic_id = topic_id_in(files.read_file(f"{path}/{PARTITION_METADATA}"))
    except (FileNotFoundError, ValueError):
        return ""  # a copy without the file, or a damaged one, which `verify` reports
    return uuid_text(topic_id) if topic_id else ""


# The last stable offset: below it, every transaction has ended

_ENDS = frozenset({ControlType.ABORT, ControlType.COMMIT})


def last_stable_offset(log: LogOnDisk, high_watermark: int) -> int:
    """Return the last stable offset, at most the high watermark; raise as `LogOnDisk.headers`."""
    from_offset, ongoing = _at_snapshot(log, high_watermark)
    for segment, position, header in log.headers(from_offset, high_watermark):
        if header.last_offset < from_offset or header.producer_id < 0:
            continue
        if header.is_control:
            batch = segment.log.read_at(position, header.size)
            records = iterate_records(batch, header, max_bytes=MAX_CONTROL_BYTES)
            if any(control_type(record.key) in _ENDS for record in records):
                ongoing.pop(header.producer_id, None)
        elif header.is_transactional:
            ongoing.setdefault(header.producer_id, header.base_offset)
    return min(ongoing.values(), default=high_watermark)


def _at_snapshot(log: LogOnDisk, high_watermark: int) -> tuple[int, dict[int, int]]:
    """Return a snapshot's offset, and its open transactions' first offsets by producer id."""
    for offset in reversed(log.snapshots):
        if log.start_offset <= offset <= high_watermark:
            content = log.snapshot(offset)
            try:
                rows = decode_snapshot(content) if content is not None else None
            except CorruptSnapshotError:
                rows = None
            if rows is not None:
                first_offsets = {row.producer_id: row.current_txn_first_offset for row in rows}
                return offset, {
                    producer_id: first for producer_id, first in first_offsets.items() if first >= 0
                }
    return log.start_offset, {}
