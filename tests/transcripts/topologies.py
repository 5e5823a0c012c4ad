"""Topologies of Kafka Streams applications for StreamsGroupHeartbeat requests."""

from __future__ import annotations

from typing import Any

Fields = dict[str, Any]


def topology(*subtopologies: Fields, epoch: int = 0) -> Fields:
    return {"epoch": epoch, "subtopologies": list(subtopologies)}


def subtopology(
    name: str,
    *sources: str,
    changelogs: list[Fields] | None = None,
    sinks: list[str] | None = None,
    repartition: list[Fields] | None = None,
    copartition: list[list[list[int]]] | None = None,
    regex: list[str] | None = None,
) -> Fields:
    """Return a subtopology; a copartition group has source topics and repartition topics."""
    return {
        "subtopology_id": name,
        "source_topics": list(sources),
        "source_topic_regex": regex or [],
        "state_changelog_topics": changelogs or [],
        "repartition_sink_topics": sinks or [],
        "repartition_source_topics": repartition or [],
        "copartition_groups": [
            {"source_topics": first, "repartition_source_topics": second}
            for first, second in copartition or []
        ],
    }


def internal(name: str, partitions: int = 0, replicas: int = 0, **configs: str) -> Fields:
    """Return an internal topic; underscores in names of configs mean dots."""
    return {
        "name": name,
        "partitions": partitions,
        "replication_factor": replicas,
        "topic_configs": [
            {"key": key.replace("_", "."), "value": value} for key, value in configs.items()
        ],
    }


def tasks(name: str, *partitions: int) -> Fields:
    return {"subtopology_id": name, "partitions": list(partitions)}
