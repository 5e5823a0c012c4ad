"""Changes of an image's topics and partitions by metadata records.

Source: Kafka's TopicsDelta and TopicDelta.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.controller.image.cluster_image import (
    ClusterImage,
    PartitionImage,
    TopicImage,
)
from wirebroker.coordinator.controller.image.image_change import (
    ImageChange,
    PartitionChange,
    TopicChange,
)
from wirebroker.coordinator.controller.image.image_records import merge_partition, partition_of
from wirebroker.coordinator.controller.image.persistent_map import MapEdit, finished

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.base.clock import Steps
    from wirebroker.codecs.metadata_records import MetadataRecord

# Topics between two yields: 1 ms.
_STEP = 256


class TopicsEdit:
    """The topics of the next image.

    Partitions are collected in `change`, and placed in their topics by `finish`.

    Args:
        base: The image that is changed.
        change: Gets the changes of topics and partitions.
    """

    __slots__ = ("_base", "_change", "_topics", "_topics_by_id")

    def __init__(self, base: ClusterImage, change: ImageChange) -> None:
        self._base = base
        self._change = change
        # Created with the first change.
        self._topics: MapEdit[str, TopicImage] | None = None
        self._topics_by_id: MapEdit[bytes, TopicImage] | None = None

    def finish(self) -> Steps[tuple[Mapping[str, TopicImage], Mapping[bytes, TopicImage]]]:
        """Return the topics by name and by id."""
        placed = 0
        for change in self._change.topics.values():
            yield from self._place_partitions(change)
            placed += 1 + len(change.partitions)
            if placed >= _STEP:
                placed = 0
                yield
        topics = yield from finished(self._topics, self._base.topics)
        topics_by_id = yield from finished(self._topics_by_id, self._base.topics_by_id)
        return topics, topics_by_id

    def _edits(self) -> tuple[MapEdit[str, TopicImage], MapEdit[bytes, TopicImage]]:
        if self._topics is None or self._topics_by_id is None:
            self._topics = MapEdit(self._base.topics)
            self._topics_by_id = MapEdit(self._base.topics_by_id)
        return self._topics, self._topics_by_id

    def _topic(self, record: MetadataRecord) -> TopicImage:
        """Return a record's topic with its earlier partitions."""
        by_id = self._base.topics_by_id if self._topics_by_id is None else self._topics_by_id
        topic = by_id.get(record.body.topic_id)
        if topic is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_ID, f"a {record.type.name} record names an unknown topic"
            )
        return topic

    def _partition(self, topic: TopicImage, index: int) -> PartitionImage | None:
        change = self._change.topics.get(topic.topic_id)
        if change is not None:
            partition = change.partitions.get(index)
            if partition is not None:
                return partition.after
        return topic.partitions.get(index)

    def _put_partition(self, topic: TopicImage, after: PartitionImage) -> None:
        topics = self._change.topics
        change = topics.get(topic.topic_id)
        if change is None:
            change = topics[topic.topic_id] = TopicChange(topic.name, topic.topic_id, is_new=False)
        before = topic.partitions.get(after.index)
        change.partitions[after.index] = PartitionChange(before, after)

    def _place_partitions(self, change: TopicChange) -> Steps[None]:
        topics, topics_by_id = self._edits()
        before = topics_by_id[change.topic_id]
        partitions = MapEdit(before.partitions)
        for count, (index, partition) in enumerate(change.partitions.items(), 1):
            partitions[index] = partition.after
            if count % _STEP == 0:
                yield
        topic = TopicImage(before.name, before.topic_id, (yield from partitions.finish()))
        topics[topic.name] = topic
        topics_by_id[topic.topic_id] = topic

    def add(self, record: MetadataRecord) -> None:
        """Apply a TopicRecord."""
        topic = TopicImage(record.body.name, record.body.topic_id, {})
        topics, topics_by_id = self._edits()
        topics[topic.name] = topic
        topics_by_id[topic.topic_id] = topic
        self._change.topics[topic.topic_id] = TopicChange(topic.name, topic.topic_id, is_new=True)

    def remove(self, record: MetadataRecord) -> TopicImage:
        """Apply a RemoveTopicRecord; return the topic, whose configs the caller removes."""
        topic = self._topic(record)
        topics, topics_by_id = self._edits()
        topics.discard(topic.name)
        topics_by_id.discard(topic.topic_id)
        self._change.topics.pop(topic.topic_id, None)
        before = self._base.topics_by_id.get(topic.topic_id)
        if before is not None:
            self._change.deleted.append(before)
        return topic

    def add_partition(self, record: MetadataRecord) -> None:
        """Apply a PartitionRecord."""
        self._put_partition(self._topic(record), partition_of(record.body))

    def change_partition(self, record: MetadataRecord) -> None:
        """Apply a PartitionChangeRecord."""
        topic = self._topic(record)
        before = self._partition(topic, record.body.partition_id)
        if before is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"a change names partition {record.body.partition_id} of {topic.name},"
                " which does not exist",
            )
        self._put_partition(topic, merge_partition(before, record.body))

    def clear_elr(self, record: MetadataRecord) -> None:
        """Apply a ClearElrRecord, for one topic or for all."""
        name = record.body.topic_name
        topics, _ = self._edits()
        for topic in [topics[name]] if name else list(topics.values()):
            changes = self._change.topics.get(topic.topic_id)
            indexes = {*topic.partitions, *(() if changes is None else changes.partitions)}
            for index in sorted(indexes):
                partition = self._partition(topic, index)
                if partition and (partition.eligible_leader_replicas or partition.last_known_elr):
                    cleared = partition._replace(eligible_leader_replicas=(), last_known_elr=())
                    self._put_partition(topic, cleared)
