"""`wirebroker verify`: checks of log directories.

With a running broker, only immutable data is checked, and partitions removed meanwhile are ignored.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from wirebroker.inspect.rows.file_kinds import METADATA_TOPIC, QUORUM_STATE, FileKind, kind_of
from wirebroker.inspect.rows.small_file_rows import small_file_rows
from wirebroker.inspect.verify.directory_facts import DirectoryFacts, read_facts
from wirebroker.inspect.verify.findings import FileReport
from wirebroker.inspect.verify.partition_check import PartitionCheck, PartitionFacts
from wirebroker.inspect.verify.snapshot_check import check_metadata_snapshot
from wirebroker.inspect.views.metadata_view import UnreadableMetadataError, image_of
from wirebroker.storage.log.segment.segment_files import LOG_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.base.clock import Clock
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.inspect.verify.findings import Finding
    from wirebroker.inspect.views.read_only_files import ReadOnlyFiles
    from wirebroker.storage.file_names import PartitionName

_METADATA_TOPIC_ID = bytes(15) + b"\x01"


class Verification:
    """One run over the log directories of a broker."""

    def __init__(
        self,
        files: ReadOnlyFiles,
        directories: list[str],
        *,
        clock: Clock,
        emit: Callable[[Finding], None],
        on_bytes: Callable[[int], None],
    ) -> None:
        self._files = files
        self._directories = directories
        self._clock = clock
        self._emit = emit
        self._on_bytes = on_bytes
        self._image: ClusterImage | None = None
        self.partition_count = 0

    def run(self) -> None:
        """Make all checks."""
        facts = [read_facts(self._files, path, self._emit) for path in self._directories]
        self._check_identities(facts)
        # Read after the listings, so that it contains every topic in them.
        try:
            self._image = image_of(self._directories, self._clock)
        except UnreadableMetadataError as error:
            report = FileReport(f"{self._directories[0]}/{METADATA_TOPIC}-0", self._emit)
            report.error(f"a start cannot read the metadata log: {error}")
        self._check_duplicates(facts)
        for directory in facts:
            self._check_directory_id(directory)
            for folder, name in sorted(directory.partitions.items()):
                self._check_partition(directory, folder, name)
            self._check_bootstrap(directory)

    def _check_identities(self, facts: list[DirectoryFacts]) -> None:
        identified = [directory for directory in facts if directory.cluster_id is not None]
        for directory in identified[1:]:
            report = FileReport(f"{directory.path}/meta.properties", self._emit)
            for name in ("cluster_id", "node_id"):
                first, other = getattr(identified[0], name), getattr(directory, name)
                if first != other:
                    report.error(f"{name} {other}, but {identified[0].path} has {first}")
            if directory.directory_id == identified[0].directory_id:
                report.error(f"{identified[0].path} has the same directory id")

    def _check_duplicates(self, facts: list[DirectoryFacts]) -> None:
        path_by_partition: dict[tuple[str, int], str] = {}
        for directory in facts:
            for folder, name in directory.partitions.items():
                if name.aside is not None:
                    continue  # its name may belong to another topic now
                other = path_by_partition.setdefault(name[:2], directory.path)
                if other != directory.path:
                    report = FileReport(f"{directory.path}/{folder}", self._emit)
                    report.error(f"the partition is also in {other}")

    def _check_directory_id(self, directory: DirectoryFacts) -> None:
        image = self._image
        if image is None or directory.node_id is None:
            return
        broker = image.brokers.get(directory.node_id)
        report = FileReport(f"{directory.path}/meta.properties", self._emit)
        if broker is None:
            if image.brokers:
                report.warning(f"the metadata has no node {directory.node_id}")
        elif broker.log_directories and directory.directory_id not in broker.log_directories:
            report.warning("the metadata does not have this directory id of this node")

    def _check_partition(self, directory: DirectoryFacts, folder: str, name: PartitionName) -> None:
        path = f"{directory.path}/{folder}"
        report = FileReport(path, self._emit)
        if name.aside is not None:
            report.note(_ASIDE_NOTES[name.aside])
            return
        topic = self._image.topics.get(name.topic) if self._image else None
        topic_id = topic.topic_id if topic else None
        is_compacted: bool | None = None
        if name.topic == METADATA_TOPIC:
            topic_id = _METADATA_TOPIC_ID
        elif self._image is not None:
            if topic is None or name.partition not in topic.partitions:
                if not directory.is_running or self._files.exists(path):
                    report.warning("it is not in the metadata: a start sets it aside")
                topic_id = None
            else:
                policy = self._image.topic_config(name.topic).get("cleanup.policy")
                is_compacted = None if policy is None else "compact" in policy
        key = (name.topic, name.partition)
        facts = PartitionFacts(
            folder=path,
            name=name,
            recovery_point=directory.recovery_points.get(key),
            high_watermark=directory.high_watermarks.get(key),
            log_start_offset=directory.log_start_offsets.get(key),
            was_clean=directory.was_clean,
            is_running=directory.is_running,
            topic_id=topic_id,
            is_compacted=is_compacted,
        )
        self.partition_count += 1
        try:
            log = PartitionCheck(self._files, facts, self._emit, self._on_bytes).run()
        except FileNotFoundError:
            if not directory.is_running:
                raise
            return
        if name.topic == METADATA_TOPIC:
            self._check_quorum_state(path, log.last_epoch)

    def _check_quorum_state(self, folder: str, last_epoch: int) -> None:
        path = f"{folder}/{QUORUM_STATE}"
        report = FileReport(path, self._emit)
        if not self._files.exists(path):
            # A node without a vote has none; a voter creates a new one.
            report.note("it is missing, as on a node without a vote")
            return
        row: dict[str, Any] = next(small_file_rows(self._files, path, FileKind.QUORUM_STATE))
        if row["type"] == "damage":
            report.error(row["message"], position=0)
        elif row["leaderEpoch"] < last_epoch:
            report.error(f"leaderEpoch {row['leaderEpoch']}, the log has epoch {last_epoch}")
        elif row["data_version"] not in {0, 1}:
            report.error(f"unknown data_version {row['data_version']}")

    def _check_bootstrap(self, directory: DirectoryFacts) -> None:
        for name in directory.names:
            if kind_of(name) is FileKind.METADATA_SNAPSHOT:
                report = FileReport(f"{directory.path}/{name}", self._emit)
                check_metadata_snapshot(self._files, report, self._on_bytes)


def size_of(files: ReadOnlyFiles, directories: list[str]) -> int:
    """Return the segments' size in bytes."""
    total = 0
    for directory in directories:
        for folder in files.list_subdirectories(directory):
            path = f"{directory}/{folder}"
            with suppress(FileNotFoundError):
                names = files.list_files(path)
                logs = (name for name in names if name.endswith(LOG_SUFFIX))
                total += sum(files.data(f"{path}/{name}").size() for name in logs)
    return total


_ASIDE_NOTES = {
    "delete": "a deleted partition: a start removes it",
    "stray": "set aside: the metadata did not assign it to this node",
    "future": "an unfinished move",
}
