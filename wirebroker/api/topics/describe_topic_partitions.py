"""DescribeTopicPartitions: pages of topics, with eligible leader replicas (KIP-966).

Topics are sorted by name; a page is limited in partitions, and `next_cursor` is the start of the
next one.

Source: Kafka's DescribeTopicPartitionsRequestHandler and KRaftMetadataCache.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any, Final

from wirebroker.api.registry import handles
from wirebroker.api.topics.authorized_operations import ALL_ON_TOPIC
from wirebroker.base.clock import Slices, in_one_go
from wirebroker.codecs.acls import Resource
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.permissions import DESCRIBE_TOPIC
from wirebroker.coordinator.controller.image.cluster_image import NO_LEADER
from wirebroker.coordinator.controller.image.topic_names import check_topic_name, is_internal
from wirebroker.request.handlers import Cost
from wirebroker.request.request import LargeResponse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Collection, Iterable, Iterator

    from wirebroker.api.broker import Broker
    from wirebroker.authorization.access import RequestAccess
    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.controller.image.cluster_image import (
        ClusterImage,
        PartitionImage,
        TopicImage,
    )
    from wirebroker.request.request import Request


# Names per step, and names sorted at a time: 1 ms.
_STEP: Final = 64
_RUN: Final = 2048
_AT_ONCE: Final = 500


@handles(ApiKey.DESCRIBE_TOPIC_PARTITIONS, permissions=(DESCRIBE_TOPIC,), cost=Cost.READS)
def describe_topic_partitions(
    broker: Broker, request: Request, body: Any
) -> dict[str, Any] | Awaitable[dict[str, Any]]:
    """Return a page from the committed image."""
    count = len(body.topics) or len(broker.metadata.image.topics)
    answer = _answer(broker, request, body)
    return in_one_go(answer) if count <= _AT_ONCE else _answer_later(broker, answer)


async def _answer_later(broker: Broker, answer: Steps[dict[str, Any]]) -> dict[str, Any]:
    return LargeResponse(await Slices(broker.clock).run(answer))


def _answer(broker: Broker, request: Request, body: Any) -> Steps[dict[str, Any]]:
    image = broker.metadata.image
    cursor = body.cursor
    first = cursor.topic_name if cursor is not None else ""
    is_everything = not body.topics
    names: Collection[str] = image.topics.keys()
    if not is_everything:
        names = yield from _distinct_names(body.topics)
    if cursor is not None and (
        cursor.partition_index < 0 or (not is_everything and first not in names)
    ):
        return _refused(body, ErrorCode.INVALID_REQUEST)
    access = None
    if broker.authorization is not None:
        access = broker.authorization.access_of(request)
    visible, denied = yield from _split_visible(access, names, are_named=not is_everything)
    if "" in visible:
        return _refused(body, ErrorCode.UNKNOWN_SERVER_ERROR)  # as in Kafka
    limit = min(
        broker.config.int("max.request.partition.size.limit"), body.response_partition_limit
    )
    page = _Page(image, request.session.listener_name, access, limit=max(limit, 1))
    for count, name in enumerate((yield from _in_order(visible, first)), 1):
        start = cursor.partition_index if cursor is not None and name == first else 0
        if not page.add(name, start):
            break
        if count % _STEP == 0:
            yield
    error = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    for count, name in enumerate((yield from _in_order(denied, first)), 1):
        page.topics.append({"error_code": error, "name": name})
        if count % _STEP == 0:
            yield
    return {"topics": page.topics, "next_cursor": page.next_cursor}


def _split_visible(
    access: RequestAccess | None, names: Iterable[str], *, are_named: bool
) -> Steps[tuple[list[str], list[str]]]:
    """Return visible names, and denied ones that the request named."""
    if access is None:
        return list(names), []
    visible: list[str] = []
    denied: list[str] = []
    for count, name in enumerate(names, 1):
        if access.may(DESCRIBE_TOPIC, name, logs_denied=are_named):
            visible.append(name)
        elif are_named:
            denied.append(name)
        if count % _STEP == 0:
            yield
    return visible, denied


def _distinct_names(topics: Iterable[Any]) -> Steps[dict[str, None]]:
    names: dict[str, None] = {}
    for count, topic in enumerate(topics, 1):
        names[topic.name] = None
        if count % _RUN == 0:
            yield
    return names


def _in_order(names: list[str], first: str) -> Steps[Iterator[str]]:
    """Return names from `first` on, in runs that are merged lazily."""
    runs: list[list[str]] = []
    for start in range(0, len(names), _RUN):
        runs.append(sorted(name for name in names[start : start + _RUN] if name >= first))
        yield
    return heapq.merge(*runs)


class _Page:
    __slots__ = ("_asking", "_image", "_listener", "_remaining", "next_cursor", "topics")

    def __init__(
        self, image: ClusterImage, listener: str, access: RequestAccess | None, *, limit: int
    ) -> None:
        self._asking = access
        self._image = image
        self._listener = listener
        self._remaining = limit
        self.topics: list[dict[str, Any]] = []
        self.next_cursor: dict[str, Any] | None = None

    def add(self, name: str, start: int) -> bool:
        """Add a topic from a partition on; return False if the page is full."""
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
            "offline_replicas": [
                replica for replica in partition.replicas if not self._is_alive(replica)
            ],
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
    return {"topics": [{"error_code": int(code), "name": topic.name} for topic in body.topics]}
