"""The error for a partition of which this broker has no replica.

Source: Kafka's ReplicaManager.getPartitionOrError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.primitives import ZERO_UUID

if TYPE_CHECKING:
    from wirebroker.api.broker import Broker


def absence(
    broker: Broker, missing: ErrorCode, index: int, *, name: str = "", topic_id: bytes = ZERO_UUID
) -> ErrorCode:
    """Return why a partition is not among the replicas of this broker.

    NOT_LEADER_OR_FOLLOWER makes clients look for its leader; they take UNKNOWN_TOPIC_OR_PARTITION
    for a broker whose metadata are old, and ask it again.

    Args:
        broker: This one.
        missing: The error for a topic that does not exist.
        index: The partition's.
        name: The topic's, unless its id is given.
        topic_id: The topic's.
    """
    image = broker.metadata.image
    topic = image.topics.get(name) if topic_id == ZERO_UUID else image.topics_by_id.get(topic_id)
    if topic is None:
        return missing
    if index not in topic.partitions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NOT_LEADER_OR_FOLLOWER
