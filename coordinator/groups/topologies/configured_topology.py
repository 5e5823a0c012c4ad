"""A topology with the cluster's topics: its tasks, and the topics that are to be created.

Members get tasks only if all topics exist with the right partition counts. Otherwise each heartbeat
reports the problem.

Source: Kafka's InternalTopicManager, ConfiguredTopology, ConfiguredSubtopology.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.java_collections import hash_order, java_order
from wirebroker.coordinator.groups.topologies.partition_counts import PartitionCounts
from wirebroker.coordinator.groups.topologies.topic_problem import TopicProblemError, TopicStatus
from wirebroker.coordinator.groups.topologies.topology import TopologyTopic

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from wirebroker.coordinator.controller.image.cluster_image import TopicImage
    from wirebroker.coordinator.groups.topologies.topology import StreamsTopology, Subtopology

_MOST_NAMES: Final = 3
_CONTROLLERS_DEFAULT: Final = -1


@dataclass(slots=True, frozen=True)
class ConfiguredSubtopology:
    """A subtopology with the partition counts of its topics.

    Attributes:
        task_count: The largest partition count among the topics that it reads.
        repartition_source_topics: With their counts, as the changelog topics.
    """

    task_count: int
    source_topics: frozenset[str]
    repartition_source_topics: Mapping[str, TopologyTopic]
    repartition_sink_topics: frozenset[str]
    changelog_topics: Mapping[str, TopologyTopic]

    @property
    def is_stateful(self) -> bool:
        """Whether its tasks have state, of which standby tasks are copies."""
        return bool(self.changelog_topics)

    def internal_topics(self) -> Iterator[TopologyTopic]:
        """Yield its internal topics."""
        yield from self.repartition_source_topics.values()
        yield from self.changelog_topics.values()


@dataclass(slots=True, frozen=True)
class ConfiguredTopology:
    """The result.

    Attributes:
        subtopologies: By id, sorted; None if source topics are missing or counts are wrong.
        missing_topics: Internal topics to be created, in the order of the problem's text.
        problem: Why there are no tasks; None: the topology is ready.
    """

    epoch: int
    subtopologies: Mapping[str, ConfiguredSubtopology] | None
    missing_topics: Sequence[TopologyTopic]
    problem: TopicProblemError | None

    @property
    def is_ready(self) -> bool:
        """Whether its tasks can be assigned."""
        return self.problem is None

    @property
    def tasks_by_subtopology(self) -> Mapping[str, ConfiguredSubtopology]:
        """The subtopologies whose tasks can be assigned."""
        return self.subtopologies or {} if self.is_ready else {}


def configure(topology: StreamsTopology, topics: Mapping[str, TopicImage]) -> ConfiguredTopology:
    """Return a topology with the topics of the cluster.

    Raises:
        KafkaError: STREAMS_INVALID_TOPOLOGY or UNKNOWN_SERVER_ERROR: it is contradictory.
    """
    try:
        _check_sources(topology, topics)
        counts = PartitionCounts(topology, topics)
        counts.decide()
        subtopologies = {
            name: _configured(topology.subtopologies[name], counts)
            for name in sorted(topology.subtopologies, key=java_order)
        }
        missing = _missing_topics(subtopologies, topology, topics)
    except TopicProblemError as found:
        return ConfiguredTopology(topology.epoch, None, (), found)
    problem: TopicProblemError | None = None
    if missing:
        names = summary(topic.name for topic in missing)
        problem = TopicProblemError(
            TopicStatus.MISSING_INTERNAL_TOPICS, f"Internal topics are missing: {names}"
        )
    return ConfiguredTopology(topology.epoch, subtopologies, missing, problem)


def creatable_topic(topic: TopologyTopic) -> dict[str, Any]:
    """Return a topic of a CreateTopics request."""
    return {
        "name": topic.name,
        "num_partitions": topic.partition_count,
        "replication_factor": topic.replication_factor or _CONTROLLERS_DEFAULT,
        "assignments": [],
        "configs": [{"name": name, "value": value} for name, value in topic.configs],
    }


def summary(names: Iterable[str]) -> str:
    """Return the first names, and how many others there are."""
    listed = list(names)
    more = len(listed) - _MOST_NAMES
    text = ", ".join(listed[:_MOST_NAMES])
    return f"{text} and {more} additional topics" if more > 0 else text


def _check_sources(topology: StreamsTopology, topics: Mapping[str, TopicImage]) -> None:
    missing = {
        name
        for subtopology in topology.subtopologies.values()
        for name in subtopology.source_topics
        if name not in topics
    }
    if missing:
        names = summary(sorted(missing, key=java_order))
        raise TopicProblemError(
            TopicStatus.MISSING_SOURCE_TOPICS, f"Source topics {names} are missing."
        )


def _configured(subtopology: Subtopology, counts: PartitionCounts) -> ConfiguredSubtopology:
    task_count = counts.of_inputs(subtopology)
    if task_count <= 0:
        raise _broken(f"Subtopology {subtopology.subtopology_id} has no tasks.")
    return ConfiguredSubtopology(
        task_count,
        frozenset(subtopology.source_topics),
        _with_counts(subtopology.repartition_source_topics, counts),
        frozenset(subtopology.repartition_sink_topics),
        _with_counts(subtopology.changelog_topics, counts),
    )


def _with_counts(
    topics: Sequence[TopologyTopic], counts: PartitionCounts
) -> dict[str, TopologyTopic]:
    counted: dict[str, TopologyTopic] = {}
    for topic in topics:
        count = topic.partition_count or counts.decided.get(topic.name, 0)
        if count < 1 or topic.name in counted:
            raise _broken(f"The partition count of {topic.name} is unknown.")
        configs = tuple(dict(topic.configs).items())
        counted[topic.name] = TopologyTopic(topic.name, count, topic.replication_factor, configs)
    return counted


def _missing_topics(
    subtopologies: Mapping[str, ConfiguredSubtopology],
    topology: StreamsTopology,
    topics: Mapping[str, TopicImage],
) -> list[TopologyTopic]:
    """Return the internal topics that do not exist.

    Raises:
        TopicProblemError: One exists with another partition count.
    """
    internal = {
        topic.name: topic
        for subtopology in subtopologies.values()
        for topic in subtopology.internal_topics()
    }
    counts = {name: len(topics[name].partitions) for name in internal if name in topics}
    differing = {name for name, count in counts.items() if count != internal[name].partition_count}
    if differing:
        name = next(filter(differing.__contains__, hash_order(_required_in_order(topology))))
        raise TopicProblemError(
            TopicStatus.INCORRECTLY_PARTITIONED_TOPICS,
            f"Existing topic {name} has different number of partitions: expected "
            f"{internal[name].partition_count}, found {counts[name]}",
        )
    if len(counts) == len(internal):
        return []
    return [internal[name] for name in hash_order(internal) if name not in counts]


def _required_in_order(topology: StreamsTopology) -> Iterator[str]:
    for name in hash_order(topology.subtopologies):
        subtopology = topology.subtopologies[name]
        yield from subtopology.input_topics()
        for topic in subtopology.changelog_topics:
            yield topic.name


def _broken(message: str) -> KafkaError:
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, message)
