"""The data directory of a copy: one node of the source's cluster, with its topics.

A controller in this process writes the metadata log: topics with ids and configs, and partitions
with this node as only replica, without a leader, in the source's leader epoch. A broker that opens
the directory elects itself in a higher epoch.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from wirebroker.codecs.metadata_records import RecordType, metadata_record
from wirebroker.config import StartError
from wirebroker.coordinator.controller.controller import Controller
from wirebroker.coordinator.controller.features.feature_control import (
    ELIGIBLE_LEADER_REPLICAS,
    feature_level,
)
from wirebroker.coordinator.controller.image.cluster_image import (
    NO_LEADER,
    PartitionImage,
    ResourceType,
    config_record,
    partition_record,
)
from wirebroker.coordinator.operation import MAX_RECORDS, ControllerResult
from wirebroker.quorum.controller.membership import alone
from wirebroker.quorum.controller.quorum_controller import QuorumController
from wirebroker.storage.directory_identity import LogDirectoryError
from wirebroker.storage.log.log import Log
from wirebroker.storage.log_directory import LogDirectory
from wirebroker.storage.recovery.log_recovery import load_log

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from wirebroker.base.clock import Clock
    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.config import Config
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage, TopicImage
    from wirebroker.coordinator.operation import Operation
    from wirebroker.coordinator.outcome import Moment
    from wirebroker.shadow.source import SourceTopic
    from wirebroker.storage.files import Files

_METADATA_TOPIC: Final = "__cluster_metadata"


class CopyDirectory:
    """An open directory of a copy, created by `open`."""

    def __init__(
        self,
        directory: LogDirectory,
        controller: QuorumController,
        *,
        config: Config,
        clock: Clock,
        files: Files,
    ) -> None:
        self._directory = directory
        self._controller = controller
        self._config = config
        self._clock = clock
        self._files = files
        self._recovery_points = directory.read_recovery_points()
        self._log_starts = directory.read_log_start_offsets()
        self._was_clean = directory.was_clean
        self._found = {
            (partition_directory.topic, partition_directory.partition): partition_directory.path
            for partition_directory in directory.partitions
        }
        self._logs: list[Log] = []
        directory.remove_clean_shutdown_marker()

    @classmethod
    async def open(
        cls, path: str, *, cluster_id: str, config: Config, clock: Clock, files: Files
    ) -> CopyDirectory:
        """Open a new directory, or a copy of the same cluster.

        Raises:
            StartError: It belongs to another cluster, or a broker has used it since.
            OSError: The disk failed.
        """
        try:
            directory = LogDirectory.open(
                path, files, node_id=config.node_id, cluster_id=cluster_id
            )
        except LogDirectoryError as error:
            problem, _, advice = str(error).partition("; ")
            raise StartError(problem, advice) from error
        try:
            rules = Controller(config, node_id=config.node_id, cluster_id=cluster_id)
            controller = await QuorumController.open(
                path,
                files=files,
                clock=clock,
                rules=rules,
                membership=alone(config.node_id, directory.directory_id),
            )
        except BaseException:
            directory.close()
            raise
        copy = cls(directory, controller, config=config, clock=clock, files=files)
        if controller.follower.image.brokers:
            await copy.close()
            raise StartError(
                f"a broker has served {path} since it was copied: its records may differ",
                "copy into a new directory",
            )
        if ELIGIBLE_LEADER_REPLICAS in controller.follower.image.features:
            # On its first registration a broker counts as one that lost the ends of its logs. With
            # eligible leader replicas it would lead none of these partitions.
            without = feature_level(ELIGIBLE_LEADER_REPLICAS, 0)
            await controller.submit(partial(_write, [without]))
        return copy

    @property
    def image(self) -> ClusterImage:
        """The copy's cluster image."""
        return self._controller.follower.image

    async def put_topics(self, topics: Sequence[SourceTopic]) -> None:
        """Store ids, partitions, configs and epochs of topics that are new or have the same id."""
        records: list[MetadataRecord] = []
        for topic in topics:
            records += self._records_of(topic)
        for begin in range(0, len(records), MAX_RECORDS):
            await self._controller.submit(partial(_write, records[begin : begin + MAX_RECORDS]))

    async def raise_epoch(self, topic_id: bytes, partition: int, leader_epoch: int) -> None:
        """Store a leader epoch before its batches are appended."""
        current = self.image.topics_by_id[topic_id].partitions[partition]
        if leader_epoch > current.leader_epoch:
            raised = self._partition(partition, leader_epoch, current)
            await self._controller.submit(partial(_write, [partition_record(topic_id, raised)]))

    def open_log(self, topic: TopicImage, partition: int) -> Log:
        """Open or create a partition's log.

        Raises:
            OSError, KafkaError: The disk failed, or the log is corrupt.
        """
        key = (topic.name, partition)
        path = self._found.get(key)
        if path is None:
            path = self._directory.create_partition_directory(*key, topic.topic_id)
        log = Log(
            path,
            self._files,
            topic=topic.name,
            partition=partition,
            topic_id=topic.topic_id,
            settings=self._config.topic_settings(self.image.topic_config(topic.name)),
        )
        load_log(
            log,
            recovery_point=self._recovery_points.get(key, 0),
            clean=self._was_clean,
            now_ms=self._clock.now_ms(),
            log_start_offset=self._log_starts.get(key, 0),
        )
        log.set_high_watermark(log.log_end_offset)
        self._logs.append(log)
        return log

    def note_log_starts(self) -> None:
        """Write the log start offsets, so that a kill does not undo those within a batch."""
        starts = {
            (log.topic, log.partition): log.log_start_offset
            for log in self._logs
            if log.log_start_offset
        }
        if starts != self._log_starts:
            self._directory.write_log_start_offsets(starts)
            self._log_starts = starts

    async def close(self) -> None:
        """Close as after a clean stop; blocks."""
        await self._controller.close()
        self._directory.sync_names()
        for log in self._logs:
            log.close(clean=True)
        logs_by_partition = {(log.topic, log.partition): log for log in self._logs}
        self._directory.write_recovery_points(
            {key: log.recovery_point for key, log in logs_by_partition.items()}
        )
        self._directory.write_high_watermarks(
            {key: log.high_watermark for key, log in logs_by_partition.items()}
        )
        self.note_log_starts()
        unopened = self._found.keys() - logs_by_partition.keys() - {(_METADATA_TOPIC, 0)}
        if self._was_clean or not unopened:
            self._directory.mark_clean_shutdown(broker_epoch=-1)
        self._directory.close()
        self._files.close_all()

    def _records_of(self, topic: SourceTopic) -> Iterable[MetadataRecord]:
        image = self.image
        topic_image = image.topics_by_id.get(topic.topic_id)
        if topic_image is None:
            yield metadata_record(RecordType.TOPIC, name=topic.name, topic_id=topic.topic_id)
        before: Mapping[str, str] = image.topic_config(topic.name)
        for name in before.keys() - topic.configs.keys():
            yield config_record(ResourceType.TOPIC, topic.name, name, None)
        for name, value in topic.configs.items():
            if before.get(name) != value:
                yield config_record(ResourceType.TOPIC, topic.name, name, value)
        for partition, epoch in sorted(topic.leader_epochs.items()):
            old = None if topic_image is None else topic_image.partitions.get(partition)
            if old is None or old.leader_epoch < epoch:
                raised = self._partition(partition, epoch, old)
                yield partition_record(topic.topic_id, raised)

    def _partition(
        self, index: int, leader_epoch: int, before: PartitionImage | None
    ) -> PartitionImage:
        replicas = (self._config.node_id,)
        return PartitionImage(
            index=index,
            replicas=replicas,
            isr=replicas,
            leader=NO_LEADER,
            leader_epoch=leader_epoch,
            partition_epoch=0 if before is None else before.partition_epoch + 1,
            directories=(self._directory.directory_id,),
        )


def _write(records: list[MetadataRecord], image: ClusterImage, now: Moment) -> Operation[None]:
    del image, now
    yield
    return ControllerResult(None, records)
