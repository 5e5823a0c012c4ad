"""DescribeTopicPartitions: topics page by page, with their eligible leader replicas (KIP-966).

v0, flexible. Topics come in the order of their names; a page ends after so many partitions and
names in `next_cursor` where the next one begins.

Source: Kafka's DescribeTopicPartitionsRequestHandler and KRaftMetadataCache.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.authorized_operations import ALL_ON_TOPIC
from wirebroker.api.registry import handles
from wirebroker.authorization.access import asking_of
from wirebroker.codecs.acls import Resource
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.controller.cluster_image import NO_LEADER
from wirebroker.coordinator.controller.topic_names import check_topic_name, is_internal
from wirebroker.handlers import Cost
from wirebroker.needs import DESCRIBE_TOPIC

if TYPE_CHECKING:
    from wirebroker.authorization.access import Asking
    from wirebroker.broker import Broker
    from wirebroker.coordinator.controller.cluster_image import (
        ClusterImage,
        PartitionImage,
        TopicImage,
    )
    from wirebroker.request import Request


@handles(ApiKey.DESCRIBE_TOPIC_PARTITIONS, needs=(DESCRIBE_TOPIC,), cost=Cost.SLICES)
def describe_topic_partitions(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Answer one page from the committed image."""
    image = broker.metadata.image
    cursor = body.cursor
    first = cursor.topic_name if cursor is not None else ""
    is_everything = not body.topics
    names = image.topics.keys() if is_everything else {topic.name for topic in body.topics}
    if cursor is not None and (
        cursor.partition_index < 0 or (not is_everything and first not in names)
    ):
        return _refused(body, ErrorCode.INVALID_REQUEST)
    if "" in names:
        return _refused(body, ErrorCode.UNKNOWN_SERVER_ERROR)  # as Kafka
    asking = None
    if broker.authorization is not None:
        asking = asking_of(broker.authorization, request)
    denied = {name for name in names if asking and not asking.may(DESCRIBE_TOPIC, name)}
    limit = min(
        broker.config.int("max.request.partition.size.limit"), body.response_partition_limit
    )
    page = _Page(image, request.session.listener_name, asking, limit=max(limit, 1))
    for name in sorted(name for name in names if name >= first and name not in denied):
        start = cursor.partition_index if cursor is not None and name == first else 0
        if not page.add(name, start):
            break
    # Of what was not asked for by its name, nothing is said.
    told = () if is_everything else sorted(name for name in denied if name >= first)
    error = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    page.topics += [{"error_code": error, "name": name} for name in told]
    return {"topics": page.topics, "next_cursor": page.next_cursor}


class _Page:
    """What fits into one answer."""

    __slots__ = ("_asking", "_image", "_listener", "_remaining", "next_cursor", "topics")

    def __init__(
        self, image: ClusterImage, listener: str, asking: Asking | None, *, limit: int
    ) -> None:
        self._asking = asking
        self._image = image
        self._listener = listener
        self._remaining = limit
        self.topics: list[dict[str, Any]] = []
        self.next_cursor: dict[str, Any] | None = None

    def add(self, name: str, start: int) -> bool:
        """Add a topic from one of its partitions on; False if the page is full."""
        if self._remaining == 0:
            self.next_cursor = {"topic_name": name, "partition_index": 0}
            return False
        topic = self._image.topics.get(name)
        if topic is None:
            self.topics.append(_missing(name, self._operations(name)))
            return True
        end = min(len(topic.partitions), start + self._remaining)
        self.topics.append(self._describe(topic, start, end))
        if end < len(topic.partitions):
            self.next_cursor = {"topic_name": name, "partition_index": end}
            return False
        self._remaining -= max(0, end - start)
        return True

    def _describe(self, topic: TopicImage, start: int, end: int) -> dict[str, Any]:
        return {
            "name": topic.name,
            "topic_id": topic.topic_id,
            "is_internal": is_internal(topic.name),
            "partitions": [self._partition(topic.partitions[index]) for index in range(start, end)],
            "topic_authorized_operations": self._operations(topic.name),
        }

    def _operations(self, name: str) -> int:
        if self._asking is None:
            return ALL_ON_TOPIC
        return self._asking.operations(Resource.TOPIC, name)

    def _partition(self, partition: PartitionImage) -> dict[str, Any]:
        return {
            "partition_index": partition.index,
            "leader_id": partition.leader if self._is_alive(partition.leader) else NO_LEADER,
            "leader_epoch": partition.leader_epoch,
            "replica_nodes": list(partition.replicas),
            "isr_nodes": list(partition.isr),
            "eligible_leader_replicas": list(partition.eligible_leader_replicas),
            "last_known_elr": list(partition.last_known_elr),
            "offline_replicas": [each for each in partition.replicas if not self._is_alive(each)],
        }

    def _is_alive(self, node_id: int) -> bool:
        broker = self._image.brokers.get(node_id)
        return broker is not None and not broker.fenced and self._listener in broker.endpoints


def _missing(name: str, operations: int) -> dict[str, Any]:
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    try:
        check_topic_name(name)
    except KafkaError as failure:
        error = failure.code
    return {
        "error_code": int(error),
        "name": name,
        "is_internal": is_internal(name),
        "topic_authorized_operations": operations,
    }


def _refused(body: Any, code: ErrorCode) -> dict[str, Any]:
    """Refuse the whole request."""
    return {"topics": [{"error_code": int(code), "name": topic.name} for topic in body.topics]}
