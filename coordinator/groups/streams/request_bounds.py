"""The largest StreamsGroupHeartbeat request: counts of elements and lengths of texts.

A larger request is refused before anything is computed from it. Kafka has none of these bounds, and
no real application comes near them. Together they keep the longest step of a request short, and the
memory of a member small.

    subtopologies, topics          each change of the metadata looks at all topics of a topology
    copartition groups, configs    each of their elements is compared when the topics are checked
    reported tasks and offsets     each is compared with the topology
    client tags, ids, host         each member keeps them; ids are hashed with each assignment
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.streams.task_offsets import id_lengths

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_SUBTOPOLOGIES: Final = 500
MOST_TOPICS: Final = 2_000
MOST_COPARTITIONED: Final = 4_000
MOST_CONFIGS: Final = 8_000
MOST_TASKS_REPORTED: Final = 100_000
MOST_OFFSETS: Final = 20_000
# Kafka Streams accepts five.
MOST_TAGS: Final = 100
# Ids of Kafka Streams are UUIDs and numbers; names of hosts have at most 253 letters.
LONGEST_ID: Final = 255

TASK_FIELDS: Final = ("active_tasks", "standby_tasks", "warmup_tasks")


def check_bounds(body: Any) -> None:
    """Refuse a request that is too large.

    Raises:
        KafkaError: INVALID_REQUEST.
    """
    _check_member(body)
    _check_tasks(body)
    for offsets in (body.task_offsets, body.task_end_offsets):
        _check_count(len(offsets or ()), MOST_OFFSETS, "A member can report", "task offsets")
        _check_length(max(id_lengths(offsets or ()), default=0), "Subtopology ids")
    if body.topology is not None:
        check_topology(body.topology)


def check_topology(topology: Any) -> None:
    """Refuse a topology that is too large.

    Raises:
        KafkaError: INVALID_REQUEST.
    """
    subtopologies, subject = topology.subtopologies, "A topology can have"
    _check_count(len(subtopologies), MOST_SUBTOPOLOGIES, subject, "subtopologies")
    for each in subtopologies:
        _check_id(each.subtopology_id, "Subtopology ids")
    topics = sum(map(_topic_count, subtopologies))
    _check_count(topics, MOST_TOPICS, subject, "topics")
    groups = sum(len(each.copartition_groups) for each in subtopologies)
    _check_count(groups, MOST_COPARTITIONED, subject, "topics in copartition groups")
    copartitioned = sum(_copartitioned_counts(topology))
    _check_count(copartitioned, MOST_COPARTITIONED, subject, "topics in copartition groups")
    configs = sum(
        len(topic.topic_configs)
        for each in subtopologies
        for topics in (each.state_changelog_topics, each.repartition_source_topics)
        for topic in topics
    )
    _check_count(configs, MOST_CONFIGS, subject, "configs of topics")


def _topic_count(subtopology: Any) -> int:
    return (
        len(subtopology.source_topics)
        + len(subtopology.source_topic_regex)
        + len(subtopology.repartition_sink_topics)
        + len(subtopology.repartition_source_topics)
        + len(subtopology.state_changelog_topics)
    )


def _copartitioned_counts(topology: Any) -> Iterator[int]:
    """Yield the topics in each copartition group; an empty group counts as one."""
    for subtopology in topology.subtopologies:
        for group in subtopology.copartition_groups:
            yield (
                1
                + len(group.source_topics)
                + len(group.source_topic_regex)
                + len(group.repartition_source_topics)
            )


def _check_member(body: Any) -> None:
    _check_id(body.member_id, "Member ids")
    _check_id(body.process_id, "Process ids")
    if body.user_endpoint is not None:
        _check_id(body.user_endpoint.host, "Hosts of endpoints")
    _check_count(len(body.client_tags or ()), MOST_TAGS, "A member can have", "client tags")


def _check_tasks(body: Any) -> None:
    subject, things = "A member can report", "tasks"
    lists = [getattr(body, name) or () for name in TASK_FIELDS]
    count = sum(map(len, lists))
    # First without a look at their elements, which may be as many as a message can have.
    _check_count(count, MOST_TASKS_REPORTED, subject, things)
    count += sum(map(len, [entry.partitions for tasks in lists for entry in tasks]))
    _check_count(count, MOST_TASKS_REPORTED, subject, things)


def _check_count(count: int, most: int, subject: str, things: str) -> None:
    if count > most:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{subject} at most {most} {things}.")


def _check_id(text: str | None, things: str) -> None:
    _check_length(len(text or ""), things)


def _check_length(length: int, things: str) -> None:
    if length > LONGEST_ID:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"{things} can have at most {LONGEST_ID} characters."
        )
