"""The topics of a share group whose partitions have share state, or are about to.

    initializing   the persister is asked to create the state of these partitions
    initialized    the state exists; only these partitions are assigned
    deleting       the persister is asked to delete the state

Values are replaced, never changed.

Source: Kafka's ShareGroup.ShareGroupStatePartitionMetadataInfo, InitMapValue; KIP-932.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage

_UNKNOWN_NAME: Final = "<UNKNOWN>"


class NamedPartitions(NamedTuple):
    """Partitions of a topic, with its name at the time of the record."""

    name: str
    partitions: frozenset[int]


# By topic id.
TopicPartitions: TypeAlias = Mapping[bytes, NamedPartitions]
NO_TOPICS: Final[TopicPartitions] = {}


class ShareTopics(NamedTuple):
    """The content of a ShareGroupStatePartitionMetadata record; `deleting` has topic ids."""

    initializing: TopicPartitions = NO_TOPICS
    initialized: TopicPartitions = NO_TOPICS
    deleting: frozenset[bytes] = frozenset()

    @property
    def known(self) -> frozenset[bytes]:
        """Ids of topics with partitions that have state, or are about to."""
        return frozenset((*self.initializing, *self.initialized))

    @property
    def partition_count(self) -> int:
        """Number of partitions that have state, or are about to."""
        return sum(
            len(topic.partitions)
            for topics in (self.initializing, self.initialized)
            for topic in topics.values()
        )

    @property
    def all_ids(self) -> frozenset[bytes]:
        """Ids of all topics."""
        return self.known | self.deleting

    def with_initializing(self, due: TopicPartitions) -> ShareTopics:
        """Return the topics after the begin of an initialization, which ends a deletion."""
        initializing = merged(self.initializing, due)
        return self._replace(
            initializing=initializing, deleting=self.deleting - initializing.keys()
        )

    def with_initialized(self, done: TopicPartitions) -> ShareTopics:
        """Return the topics after a successful initialization."""
        return self._replace(
            initializing=without(self.initializing, _indexes(done)),
            initialized=merged(self.initialized, done),
        )

    def without_initializing(self, failed: Mapping[bytes, Collection[int]]) -> ShareTopics:
        """Return the topics after a failed initialization."""
        return self._replace(initializing=without(self.initializing, failed))

    def without_topics(self, topic_ids: Collection[bytes]) -> ShareTopics:
        """Return the topics without those that were deleted from the cluster."""
        return ShareTopics(
            _except(self.initializing, topic_ids),
            _except(self.initialized, topic_ids),
            self.deleting.difference(topic_ids),
        )

    def with_deleting(self, topic_ids: Collection[bytes]) -> ShareTopics:
        """Return the topics after the begin of a deletion of initialized topics' state."""
        return self._replace(
            initialized=_except(self.initialized, topic_ids),
            deleting=self.deleting.union(topic_ids),
        )

    def without_deleting(self, topic_ids: Collection[bytes]) -> ShareTopics:
        """Return the topics after a successful deletion of share state."""
        return self._replace(deleting=self.deleting.difference(topic_ids))


def merged(topics: TopicPartitions, added: TopicPartitions) -> TopicPartitions:
    """Return the union; names of `added` count."""
    result = dict(topics)
    for topic_id, new in added.items():
        old = result.get(topic_id)
        if old is None:
            result[topic_id] = new
        else:
            result[topic_id] = NamedPartitions(new.name, old.partitions | new.partitions)
    return result


def without(topics: TopicPartitions, removed: Mapping[bytes, Collection[int]]) -> TopicPartitions:
    """Return topics without partitions; topics that lose their last one are left out."""
    result: dict[bytes, NamedPartitions] = {}
    for topic_id, topic in topics.items():
        if topic_id not in removed:
            result[topic_id] = topic
            continue
        partitions = topic.partitions.difference(removed[topic_id])
        if partitions:
            result[topic_id] = topic._replace(partitions=partitions)
    return result


def named(partitions: Mapping[bytes, Collection[int]], image: ClusterImage) -> TopicPartitions:
    """Return partitions with the present names of their topics."""
    return {
        topic_id: NamedPartitions(name_of(topic_id, image), frozenset(indexes))
        for topic_id, indexes in partitions.items()
    }


def name_of(topic_id: bytes, image: ClusterImage) -> str:
    """Return the name of a topic, also if it no longer exists."""
    topic = image.topics_by_id.get(topic_id)
    return _UNKNOWN_NAME if topic is None else topic.name


def names_of(topic_ids: Iterable[bytes], image: ClusterImage) -> dict[bytes, str]:
    """Return the names of topics."""
    return {topic_id: name_of(topic_id, image) for topic_id in topic_ids}


def _indexes(topics: TopicPartitions) -> dict[bytes, frozenset[int]]:
    return {topic_id: topic.partitions for topic_id, topic in topics.items()}


def _except(topics: TopicPartitions, topic_ids: Collection[bytes]) -> TopicPartitions:
    return {topic_id: topic for topic_id, topic in topics.items() if topic_id not in topic_ids}
