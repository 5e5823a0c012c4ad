"""The error for a partition of which this broker has no replica.

Source: Kafka's ReplicaManager.getPartitionOrError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.primitives import ZERO_UUID

if TYPE_CHECKING:
    from wirebroker.api.broker import Broker


def missing_partition_error(
    broker: Broker, missing: ErrorCode, index: int, *, name: str = "", topic_id: bytes = ZERO_UUID
) -> ErrorCode:
    """Return the error for a partition without a replica here; `missing` is for an unknown topic.

    NOT_LEADER_OR_FOLLOWER makes clients look for the leader. After UNKNOWN_TOPIC_OR_PARTITION they
    assume outdated metadata here and retry.
    """
    image = broker.metadata.image
    topic = image.topics.get(name) if topic_id == ZERO_UUID else image.topics_by_id.get(topic_id)
    if topic is None:
        return missing
    if index not in topic.partitions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NOT_LEADER_OR_FOLLOWER
