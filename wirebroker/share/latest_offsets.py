"""The end offsets of partitions, from their leaders: for the lag of share groups.

Source: Kafka's NetworkPartitionMetadataClient; KIP-1226.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from wirebroker.base.clock import Slices, pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.special_offsets import LATEST
from wirebroker.coordinator.controller.image.cluster_image import NO_LEADER
from wirebroker.net.client.errors import PeerError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from wirebroker.base.clock import Clock
    from wirebroker.net.client.node import Node
    from wirebroker.quorum.image.metadata_follower import MetadataFollower
    from wirebroker.replica.replica_manager import ReplicaManager

logger = logging.getLogger(__name__)

TopicPartition: TypeAlias = "tuple[str, int]"
_Results: TypeAlias = "dict[TopicPartition, int | ErrorCode]"

_TIMEOUT_S: Final = 30.0
_MOST_ATTEMPTS: Final = 5
_FIRST_DELAY_S: Final = 1.0
_CONSUMER: Final = -1


class LatestOffsets:
    """The leaders of all partitions, this node among them."""

    __slots__ = ("_clock", "_find_node", "_metadata", "_node_id", "_replicas")

    def __init__(
        self,
        node_id: int,
        *,
        metadata: MetadataFollower,
        replicas: ReplicaManager,
        find_node: Callable[[int], Node | None],
        clock: Clock,
    ) -> None:
        """Use the nodes that `find_node` returns."""
        self._node_id = node_id
        self._metadata = metadata
        self._replicas = replicas
        self._find_node = find_node
        self._clock = clock

    async def of(self, partitions: Collection[TopicPartition]) -> _Results:
        """Return the high watermark of each partition, or an error."""
        slices = Slices(self._clock)
        results: _Results = {}
        by_leader: dict[int, list[TopicPartition]] = {}
        for name, index in partitions:
            partition = self._metadata.image.partition(name, index)
            leader = NO_LEADER if partition is None else partition.leader
            if leader == NO_LEADER:
                results[name, index] = ErrorCode.LEADER_NOT_AVAILABLE
            elif leader == self._node_id:
                results[name, index] = self._own(name, index)
            else:
                by_leader.setdefault(leader, []).append((name, index))
            await slices.turn()
        for leader, led in by_leader.items():
            results.update(await self._of_leader(leader, led))
        return results

    def _own(self, name: str, index: int) -> int | ErrorCode:
        partitions, absent = self._replicas.find(name, b"", by_id=False)
        partition = partitions.get(index)
        if partition is None:
            return absent
        try:
            partition.check_leader()
        except KafkaError as error:
            return error.code
        if partition.is_catching_up:
            # A new leader does not know the high watermark yet.
            return ErrorCode.OFFSET_NOT_AVAILABLE
        return partition.log.high_watermark

    async def _of_leader(self, node_id: int, partitions: Collection[TopicPartition]) -> _Results:
        delay_s = _FIRST_DELAY_S
        for attempt in range(_MOST_ATTEMPTS):
            if attempt:
                await pause(delay_s)
                delay_s *= 2
            node = self._find_node(node_id)
            if node is None:
                break
            try:
                answer = await node.request(
                    ApiKey.LIST_OFFSETS, _request(partitions), timeout_s=_TIMEOUT_S
                )
            except PeerError as error:
                logger.info("node %d did not return end offsets: %s", node_id, error)
                continue
            return _results(partitions, answer)
        return dict.fromkeys(partitions, ErrorCode.NETWORK_EXCEPTION)


def _request(partitions: Iterable[TopicPartition]) -> dict[str, Any]:
    topics: dict[str, list[dict[str, Any]]] = {}
    for name, index in partitions:
        topics.setdefault(name, []).append({"partition_index": index, "timestamp": LATEST})
    return {
        "replica_id": _CONSUMER,
        "topics": [{"name": name, "partitions": wanted} for name, wanted in topics.items()],
    }


def _results(partitions: Iterable[TopicPartition], answer: Any) -> _Results:
    """Return the results of the requested partitions only."""
    results: _Results = dict.fromkeys(partitions, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    for topic in answer.topics:
        for result in topic.partitions:
            if (topic.name, result.partition_index) in results:
                error = ErrorCode(result.error_code)
                results[topic.name, result.partition_index] = (
                    result.offset if error is ErrorCode.NONE else error
                )
    return results
