"""The topology of a Kafka Streams application: its subtopologies and their topics.

The first member of a group sets it. A group's topology does not change: Kafka 4.4 refuses another
one, and members with an older epoch learn that theirs is stale.

Source: Kafka's StreamsTopology; KIP-1071.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from wirebroker.codecs.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class TopologyTopic(NamedTuple):
    """A topic that the broker creates for the application.

    Attributes:
        partition_count: 0: decided by the broker.
        replication_factor: 0: the cluster's default.
        configs: Name and value each.
    """

    name: str
    partition_count: int
    replication_factor: int
    configs: tuple[tuple[str, str], ...]


class CopartitionGroup(NamedTuple):
    """Topics that need equal partition counts, as positions in the lists of their subtopology."""

    source_topics: tuple[int, ...]
    source_topic_regex: tuple[int, ...]
    repartition_source_topics: tuple[int, ...]


class Subtopology(NamedTuple):
    """A part of the application whose tasks are independent of each other."""

    subtopology_id: str
    source_topics: tuple[str, ...]
    source_topic_regex: tuple[str, ...]
    changelog_topics: tuple[TopologyTopic, ...]
    repartition_sink_topics: tuple[str, ...]
    repartition_source_topics: tuple[TopologyTopic, ...]
    copartition_groups: tuple[CopartitionGroup, ...]

    def input_topics(self) -> Iterator[str]:
        """Yield the topics that it reads."""
        yield from self.source_topics
        for topic in self.repartition_source_topics:
            yield topic.name

    def copartitioned(self, group: CopartitionGroup) -> frozenset[str]:
        """Return the names of the topics of a copartition group.

        Raises:
            KafkaError: UNKNOWN_SERVER_ERROR: there is no such topic, as in Kafka.
        """
        try:
            return frozenset(
                (
                    *(self.source_topics[_position(at)] for at in group.source_topics),
                    *(
                        self.repartition_source_topics[_position(at)].name
                        for at in group.repartition_source_topics
                    ),
                )
            )
        except IndexError:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"A copartition group of subtopology {self.subtopology_id} has an unknown topic.",
            ) from None


def _position(at: int) -> int:
    if at < 0:
        raise IndexError
    return at


@dataclass(slots=True, frozen=True)
class StreamsTopology:
    """A topology.

    Attributes:
        subtopologies: By id, in the order of the request.
        subtopology_of: The subtopology that reads a topic, by the topic's name.
        required_topics: Source topics and internal topics.
        size_bytes: Number of letters in its names and configs.
    """

    epoch: int
    subtopologies: Mapping[str, Subtopology]
    subtopology_of: Mapping[str, str] = field(compare=False, repr=False)
    required_topics: frozenset[str] = field(compare=False, repr=False)
    size_bytes: int = field(compare=False, repr=False)


def topology_of(body: Any) -> StreamsTopology:
    """Return the topology of a heartbeat or a record.

    Raises:
        KafkaError: UNKNOWN_SERVER_ERROR: it is contradictory, as in Kafka.
    """
    if body.epoch < 0:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, "The epoch of the topology must not be negative."
        )
    subtopologies = {entry.subtopology_id: _subtopology(entry) for entry in body.subtopologies}
    if len(subtopologies) < len(body.subtopologies):
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, "The topology has two subtopologies with one id."
        )
    readers: dict[str, str] = {}
    required: set[str] = set()
    for subtopology in subtopologies.values():
        names = tuple(subtopology.input_topics())
        readers.update(dict.fromkeys(names, subtopology.subtopology_id))
        required.update(names, (topic.name for topic in subtopology.changelog_topics))
    size = sum(map(_size, subtopologies.values()))
    return StreamsTopology(body.epoch, subtopologies, readers, frozenset(required), size)


def topic_names(body: Any) -> Iterator[str]:
    """Yield the topics that the topology of a heartbeat names."""
    for subtopology in body.subtopologies:
        yield from subtopology.source_topics
        yield from subtopology.repartition_sink_topics
        for topic in subtopology.repartition_source_topics:
            yield topic.name
        for topic in subtopology.state_changelog_topics:
            yield topic.name


def _subtopology(entry: Any) -> Subtopology:
    return Subtopology(
        entry.subtopology_id,
        tuple(entry.source_topics),
        tuple(entry.source_topic_regex),
        _internal_topics(entry.state_changelog_topics),
        tuple(entry.repartition_sink_topics),
        _internal_topics(entry.repartition_source_topics),
        tuple(
            CopartitionGroup(
                tuple(group.source_topics),
                tuple(group.source_topic_regex),
                tuple(group.repartition_source_topics),
            )
            for group in entry.copartition_groups
        ),
    )


def _internal_topics(topics: Iterable[Any]) -> tuple[TopologyTopic, ...]:
    return tuple(
        TopologyTopic(
            topic.name,
            topic.partitions,
            topic.replication_factor,
            tuple((config.key, config.value) for config in topic.topic_configs),
        )
        for topic in topics
    )


def _size(subtopology: Subtopology) -> int:
    names = (*subtopology.source_topics, *subtopology.repartition_sink_topics)
    topics = (*subtopology.changelog_topics, *subtopology.repartition_source_topics)
    of_topics = sum(
        len(topic.name) + sum(len(name) + len(value) for name, value in topic.configs)
        for topic in topics
    )
    return len(subtopology.subtopology_id) + sum(map(len, names)) + of_topics
