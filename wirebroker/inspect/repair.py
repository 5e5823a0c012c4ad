"""`wirebroker repair`: the recovery of a broker's start, without a start.

Afterwards the directory is in the state of a clean stop.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from wirebroker.api.broker import dynamic_config
from wirebroker.codecs.errors import KafkaError, MalformedFrameError
from wirebroker.config.rows.row import StartError
from wirebroker.inspect.rows.file_kinds import METADATA_TOPIC
from wirebroker.inspect.views.journal import Journal, JournaledFiles
from wirebroker.inspect.views.metadata_view import recover_image
from wirebroker.inspect.views.overlay_files import OverlayFiles
from wirebroker.inspect.views.read_only_files import lock_holder
from wirebroker.inspect.views.storage_warnings import storage_warnings
from wirebroker.quorum.log.metadata_store import DIRECTORY_NAME, MetadataStore
from wirebroker.storage.directory_identity import META_PROPERTIES, LogDirectoryError
from wirebroker.storage.log.log import Log
from wirebroker.storage.log.segment.segment_files import LOG_SUFFIX, SWAP_SUFFIX
from wirebroker.storage.log_directory import LogDirectory
from wirebroker.storage.meta_properties import parse_meta_properties
from wirebroker.storage.recovery.log_recovery import load_log

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from wirebroker.base.clock import Clock
    from wirebroker.config import Config
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.inspect.rows.rows import Row
    from wirebroker.inspect.views.journal import Change
    from wirebroker.storage.checkpoints import TopicPartition
    from wirebroker.storage.files import Files
    from wirebroker.storage.log_directory import PartitionDirectory


class RepairError(Exception):
    """A reason why a directory cannot be repaired, with what to do."""


class Repair:
    """One run over the log directories of a broker, including that of the metadata log.

    `tell` takes a row for each changed file and each problem. With `reads_all`, segments below the
    recovery point are read too.

    Attributes:
        problem_count: Number of logs that could not be opened.
    """

    def __init__(
        self,
        directories: list[str],
        *,
        config: Config,
        clock: Clock,
        is_dry: bool,
        reads_all: bool,
        tell: Callable[[Row], None],
        on_bytes: Callable[[int], None],
    ) -> None:
        self._paths = directories
        self._config = config
        self._clock = clock
        self._reads_all = reads_all
        self._tell = tell
        self._on_bytes = on_bytes
        self._uncounted_bytes = 0  # of the log that is being opened
        self._has_deleted = False  # records, in the current directory
        self._journal = Journal()
        self._journal.on_read = self._count
        self._files: Files = (
            OverlayFiles(self._journal) if is_dry else JournaledFiles(self._journal)
        )
        self.problem_count = 0

    def run(self) -> None:
        """Repair all directories.

        Raises:
            RepairError: A path is not a data directory, is in use, or has unreadable metadata.
        """
        directories: list[LogDirectory] = []
        try:
            for path in self._paths:
                directories.append(self._open(path))  # noqa: PERF401 - closed if a later one fails
            image = self._repair_metadata(directories)
            node_id = directories[0].node_id
            self._config = dynamic_config(self._config, image, node_id)
            for directory in directories:
                self._repair_directory(directory, image)
        finally:
            for directory in directories:
                directory.close()

    def _open(self, path: str) -> LogDirectory:
        if self._files.exists(f"{path}/.lock") and lock_holder(path) is not None:
            raise RepairError(f"{path} is in use by a broker: stop it first")
        try:
            text = self._files.read_file(f"{path}/{META_PROPERTIES}").decode()
            properties = parse_meta_properties(text)
        except FileNotFoundError:
            raise RepairError(
                f"{path} is not a data directory: {META_PROPERTIES} is missing"
            ) from None
        except ValueError as error:
            raise RepairError(
                f"{path} is not a data directory ({META_PROPERTIES}: {error})"
            ) from None
        try:
            return LogDirectory.open(
                path, self._files, node_id=properties.node_id, cluster_id=properties.cluster_id
            )
        except LogDirectoryError as error:
            raise RepairError(str(error)) from None

    def _repair_metadata(self, directories: list[LogDirectory]) -> ClusterImage:
        metadata_directory = next(
            (
                directory
                for directory in directories
                if self._files.exists(f"{directory.path}/{DIRECTORY_NAME}")
            ),
            None,
        )
        if metadata_directory is None:
            raise RepairError(
                f"no directory has the metadata log ({DIRECTORY_NAME}) with the topics' settings: "
                "name that directory too"
            )
        store = MetadataStore(self._files, metadata_directory.path, self._clock)
        path = f"{metadata_directory.path}/{DIRECTORY_NAME}"
        with self._reporting(path), self._counted(path):
            try:
                store.open()
                image = recover_image(store)
            except (KafkaError, MalformedFrameError, StartError) as error:
                raise RepairError(f"{store.directory} cannot be read: {error}") from None
            store.sync()
            store.close()
        return image

    def _repair_directory(self, directory: LogDirectory, image: ClusterImage) -> None:
        recovery_points = directory.read_recovery_points()
        starts = directory.read_log_start_offsets()
        high_watermarks = directory.read_high_watermarks()
        new_points, new_starts, new_watermarks = (
            dict(offsets) for offsets in (recovery_points, starts, high_watermarks)
        )
        is_whole = True
        self._has_deleted = False
        for partition_directory in sorted(directory.partitions):
            log = self._log(partition_directory, image)
            if log is None:
                continue
            key = (log.topic, log.partition)
            with self._reporting(partition_directory.path), self._counted(partition_directory.path):
                is_loaded = self._load(log, directory, recovery_points, starts)
            if not is_loaded:
                is_whole = False
                continue
            new_points[key] = log.recovery_point
            new_starts.pop(key, None)
            if log.log_start_offset > log.segments[0].base_offset:
                new_starts[key] = log.log_start_offset
            if key in new_watermarks:
                new_watermarks[key] = min(new_watermarks[key], log.log_end_offset)
        with self._reporting(directory.path):
            if new_points != recovery_points:
                directory.write_recovery_points(new_points)
            if new_starts != starts:
                directory.write_log_start_offsets(new_starts)
            if new_watermarks != high_watermarks:
                directory.write_high_watermarks(new_watermarks)
            if is_whole:
                # The deleted records may have been acknowledged: unlike after a clean stop, the
                # controller must not assume that these replicas are complete (KIP-966).
                epoch = -1 if self._has_deleted else directory.previous_broker_epoch
                directory.mark_clean_shutdown(broker_epoch=epoch)

    def _log(self, partition_directory: PartitionDirectory, image: ClusterImage) -> Log | None:
        if partition_directory.topic == METADATA_TOPIC:
            return None
        if partition_directory.topic_id is None:
            topic = image.topics.get(partition_directory.topic)
        else:
            topic = image.topics_by_id.get(partition_directory.topic_id)
        if topic is None or partition_directory.partition not in topic.partitions:
            self._tell(
                _problem(partition_directory.path, "it is not in the metadata: left unchanged")
            )
            return None
        return Log(
            partition_directory.path,
            self._files,
            topic=topic.name,
            partition=partition_directory.partition,
            topic_id=topic.topic_id,
            settings=self._config.topic_settings(image.topic_config(topic.name)),
            producer_id_expiration_ms=self._config.int("producer.id.expiration.ms"),
        )

    def _load(
        self,
        log: Log,
        directory: LogDirectory,
        recovery_points: dict[TopicPartition, int],
        starts: dict[TopicPartition, int],
    ) -> bool:
        key = (log.topic, log.partition)
        try:
            load_log(
                log,
                recovery_point=0 if self._reads_all else recovery_points.get(key, 0),
                log_start_offset=starts.get(key, 0),
                clean=directory.was_clean and not self._reads_all,
                now_ms=self._clock.now_ms(),
            )
        except KafkaError as error:
            self.problem_count += 1
            self._tell(_problem(log.directory, f"it cannot be opened: {error.message or error}"))
            log.close(clean=False)
            return False
        log.close(clean=True)
        return True

    @contextmanager
    def _counted(self, path: str) -> Generator[None]:
        """Count the bytes of a partition's segments once: as they are read, or at the end."""
        names = self._files.list_files(path)
        logs = [f"{path}/{name}" for name in names if name.endswith(LOG_SUFFIX)]
        self._uncounted_bytes = sum(self._files.data(log_path).size() for log_path in logs)
        yield
        self._count(self._uncounted_bytes)

    def _count(self, count: int) -> None:
        counted = min(count, self._uncounted_bytes)  # some bytes are read twice
        self._uncounted_bytes -= counted
        self._on_bytes(counted)

    @contextmanager
    def _reporting(self, path: str) -> Generator[None]:
        """Report the changes of files below a path."""
        with storage_warnings() as reasons:
            yield
        for reason in reasons:
            self._tell({"type": "reason", "path": path, "message": reason})
        for change in self._journal.take(self._files):
            row = _as_row(change)
            is_log = change.path.endswith(LOG_SUFFIX)
            self._has_deleted |= is_log and row["action"] in {"cut", "removed"}
            self._tell(row)


def as_text(row: Row) -> str:
    """Return a row as one line."""
    if row["type"] != "change":
        return f"{row['type']:<9} {row['path']}: {row['message']}"
    before, after = row["before_bytes"], row["after_bytes"]
    sizes = {
        "cut": f"{(before or 0) - (after or 0)} bytes, {after} are left",
        "removed": f"{before} bytes",
        "created": f"{after} bytes",
    }.get(row["action"], f"{before} -> {after} bytes")
    return f"{row['action']:<9} {row['path']}: {sizes}"


def _as_row(change: Change) -> Row:
    if change.before is None:
        action = "created"
    elif change.after is None:
        action = "swapped" if change.path.endswith(SWAP_SUFFIX) else "removed"
    else:
        is_shorter_log = change.path.endswith(LOG_SUFFIX) and change.after.size < change.before.size
        action = "cut" if is_shorter_log else "rewritten"
    return {
        "type": "change",
        "action": action,
        "path": change.path,
        "before_bytes": change.before and change.before.size,
        "after_bytes": change.after and change.after.size,
    }


def _problem(path: str, message: str) -> Row:
    return {"type": "problem", "path": path, "message": message}
