"""Partitions by topic in the heartbeats and descriptions of consumer and share groups.

Source: Kafka's ModernGroupMember, Assignment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.coordinator.groups.assignors.assignor import WORK_PER_STEP

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage


def described_in_steps(
    partitions: Mapping[bytes, Collection[int]], image: ClusterImage
) -> Steps[dict[str, Any]]:
    """Return an assignment in the form of a response, without topics that no longer exist."""
    topics: list[dict[str, Any]] = []
    work = 0
    for topic_id, indexes in partitions.items():
        topic = image.topics_by_id.get(topic_id)
        if topic is not None:
            topics.append(
                {"topic_id": topic_id, "topic_name": topic.name, "partitions": sorted(indexes)}
            )
        work += 1 + len(indexes)
        if work >= WORK_PER_STEP:
            work = 0
            yield
    return {"topic_partitions": topics}


def assigned_in_steps(partitions: Mapping[bytes, Collection[int]]) -> Steps[dict[str, Any]]:
    """Return an assignment in the form of the response to a heartbeat."""
    topics: list[dict[str, Any]] = []
    work = 0
    for topic_id, indexes in partitions.items():
        topics.append({"topic_id": topic_id, "partitions": sorted(indexes)})
        work += 1 + len(indexes)
        if work >= WORK_PER_STEP:
            work = 0
            yield
    return {"topic_partitions": topics}
