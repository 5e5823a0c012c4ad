"""The partition counts of a topology's internal topics.

    1. A repartition topic has the count that the application sets, else the largest count among
       the topics that its writers read.
    2. Topics of a copartition group have equal counts; topics without a set count follow.
    3. A changelog topic has the largest count among the topics that its subtopology reads.

Existing topics have the counts that they have.

Source: Kafka's RepartitionTopics, CopartitionedTopicsEnforcer, ChangelogTopics.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.java_collections import hash_order, java_order
from wirebroker.coordinator.groups.topologies.topic_problem import (
    TopicProblemError,
    TopicStatus,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from wirebroker.coordinator.controller.image.cluster_image import TopicImage
    from wirebroker.coordinator.groups.topologies.topology import StreamsTopology, Subtopology


class PartitionCounts:
    """The counts of existing topics, and those that are decided for internal topics.

    Attributes:
        decided: By name of an internal topic.
    """

    __slots__ = ("_subtopologies", "_topics", "decided")

    def __init__(self, topology: StreamsTopology, topics: Mapping[str, TopicImage]) -> None:
        self._topics = topics
        # In the order in which Kafka visits them.
        self._subtopologies = [
            topology.subtopologies[name] for name in hash_order(topology.subtopologies)
        ]
        self.decided: dict[str, int] = {}

    def decide(self) -> None:
        """Decide all counts.

        Raises:
            TopicProblemError: Topics of a copartition group differ.
            KafkaError: STREAMS_INVALID_TOPOLOGY: counts cannot be decided; UNKNOWN_SERVER_ERROR.
        """
        self.decided.update(self._of_repartition_topics())
        self._copartition()
        self.decided.update(self._of_changelog_topics())

    def of(self, name: str) -> int | None:
        """Return the count of a topic; None if it is neither there nor decided."""
        topic = self._topics.get(name)
        return self.decided.get(name) if topic is None else len(topic.partitions)

    def of_inputs(self, subtopology: Subtopology) -> int:
        """Return the largest count among the topics that a subtopology reads.

        Raises:
            KafkaError: STREAMS_INVALID_TOPOLOGY: it reads none.
        """
        counts = [self._known(name) for name in subtopology.input_topics()]
        if not counts:
            raise _invalid(f"No source topics found for subtopology {subtopology.subtopology_id}")
        return max(counts)

    def _known(self, name: str) -> int:
        count = self.of(name)
        if count is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR, f"The partition count of {name} is unknown."
            )
        return count

    # -- repartition topics ------------------------------------------------------------------

    def _of_repartition_topics(self) -> dict[str, int]:
        """Return the counts of all repartition topics.

        Kafka visits all subtopologies again and again. Each one decides the counts of its sinks in
        the first visit in which it knows the count of a topic that it reads.
        """
        counts = {
            topic.name: topic.partition_count
            for subtopology in self._subtopologies
            for topic in subtopology.repartition_source_topics
            if topic.partition_count
        }
        readers = self._readers()
        # Visits to come: round, position of the subtopology.
        visits = [
            (1, position)
            for position, subtopology in enumerate(self._subtopologies)
            if self._of_inputs_so_far(subtopology, counts) is not None
        ]
        planned = {position for _, position in visits}
        while visits:
            visit = heappop(visits)
            for name in self._decide_sinks(visit[1], counts):
                for reader in readers.get(name, ()):
                    if reader not in planned:
                        planned.add(reader)
                        heappush(visits, (visit[0] + (reader < visit[1]), reader))
        self._check_repartition_topics(counts)
        return counts

    def _readers(self) -> dict[str, list[int]]:
        """Return the positions of the subtopologies that read each repartition topic."""
        readers: dict[str, list[int]] = {}
        for position, subtopology in enumerate(self._subtopologies):
            for topic in subtopology.repartition_source_topics:
                readers.setdefault(topic.name, []).append(position)
        return readers

    def _decide_sinks(self, position: int, counts: dict[str, int]) -> list[str]:
        """Decide the counts of a subtopology's sinks; return those that had none."""
        subtopology = self._subtopologies[position]
        count = self._of_inputs_so_far(subtopology, counts)
        assert count is not None, "a visit is planned when a count is known"
        names = subtopology.repartition_sink_topics
        decided = [name for name in dict.fromkeys(names) if name not in counts]
        counts.update(dict.fromkeys(decided, count))
        return decided

    def _of_inputs_so_far(self, subtopology: Subtopology, counts: Mapping[str, int]) -> int | None:
        known = [
            counts[topic.name]
            for topic in subtopology.repartition_source_topics
            if topic.name in counts
        ]
        known += [count for count in map(self.of, subtopology.source_topics) if count is not None]
        return max(known, default=None)

    def _check_repartition_topics(self, counts: Mapping[str, int]) -> None:
        subtopologies = self._subtopologies
        if any(
            name not in counts for each in subtopologies for name in each.repartition_sink_topics
        ):
            raise _invalid(
                "Failed to compute number of partitions for all repartition topics. There may be "
                "loops in the topology that cannot be resolved."
            )
        if any(
            topic.name not in counts
            for each in subtopologies
            for topic in each.repartition_source_topics
        ):
            raise _invalid(
                "Failed to compute number of partitions for all repartition topics, because a "
                "repartition source topic is never used as a sink topic."
            )

    # -- copartition groups ------------------------------------------------------------------

    def _copartition(self) -> None:
        fixed: set[str] = set()
        flexible: set[str] = set()
        for subtopology in self._subtopologies:
            for topic in subtopology.repartition_source_topics:
                (fixed if topic.partition_count else flexible).add(topic.name)
        # Those of all copartition groups, which do not change.
        of_fixed = {self._known(name) for name in fixed}
        for subtopology in self._subtopologies:
            for group in subtopology.copartition_groups:
                names = subtopology.copartitioned(group)
                self._make_equal(names, fixed, flexible, of_fixed)

    def _make_equal(
        self, names: frozenset[str], fixed: set[str], flexible: set[str], of_fixed: set[int]
    ) -> None:
        """Give the topics of a copartition group equal counts.

        Raises:
            TopicProblemError: Counts that are set differ.
        """
        if not names:
            return
        counts = {name: self._known(name) for name in names}
        repartition = {
            name: count for name, count in counts.items() if name in fixed or name in flexible
        }
        others = {name: count for name, count in counts.items() if name not in repartition}
        if others:
            chosen = _equal(set(others.values()), others)
        elif fixed:
            # As in Kafka, those of all copartition groups.
            chosen = _equal(of_fixed, repartition)
        else:
            chosen = max(repartition.values())
        self.decided.update(dict.fromkeys(repartition, chosen))
        differing = {
            name for name, count in repartition.items() if count != chosen and name in fixed
        }
        if differing:
            name = next(filter(differing.__contains__, hash_order(_sorted(repartition))))
            raise _unequal(
                f"Number of partitions [{repartition[name]}] of repartition topic [{name}] "
                f"doesn't match number of partitions [{chosen}] of the source topic."
            )

    # -- changelog topics --------------------------------------------------------------------

    def _of_changelog_topics(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for subtopology in self._subtopologies:
            count = self.of_inputs(subtopology)
            counts.update((topic.name, count) for topic in subtopology.changelog_topics)
        return counts


def _equal(counts: set[int], shown: Mapping[str, int]) -> int:
    if len(counts) > 1:
        listed = ", ".join(f"{name}={shown[name]}" for name in _sorted(shown))
        raise _unequal(
            f"Following topics do not have the same number of partitions: [{{{listed}}}]"
        )
    (count,) = counts
    return count


def _sorted(names: Iterable[str]) -> Sequence[str]:
    return sorted(names, key=java_order)


def _unequal(detail: str) -> TopicProblemError:
    return TopicProblemError(TopicStatus.INCORRECTLY_PARTITIONED_TOPICS, detail)


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)
