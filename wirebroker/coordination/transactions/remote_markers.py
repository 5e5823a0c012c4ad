"""Sends the markers of transactions to other nodes (WriteTxnMarkers).

Source: Kafka's TransactionMarkerChannelManager, TransactionMarkerRequestCompletionHandler.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.transactions.metadata import TopicPartition, indexes_by_topic
from wirebroker.net.client.errors import PeerError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from wirebroker.coordinator.outcome import Marker
    from wirebroker.net.client.node import Node

logger = logging.getLogger(__name__)

# As in Kafka (request.timeout.ms).
_TIMEOUT_S = 30.0


class RemoteMarkers:
    """A MarkerSender that uses the nodes' connections."""

    __slots__ = ("_find_node",)

    def __init__(self, find_node: Callable[[int], Node | None]) -> None:
        """Use the nodes that `find_node` returns."""
        self._find_node = find_node

    async def send(
        self, node_id: int, marker: Marker, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, ErrorCode]:
        """See MarkerSender."""
        node = self._find_node(node_id)
        if node is None:
            return dict.fromkeys(partitions, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        try:
            answer = await node.request(
                ApiKey.WRITE_TXN_MARKERS, _request(marker, partitions), timeout_s=_TIMEOUT_S
            )
        except PeerError as error:
            logger.info(
                "resending the markers of producer %d to node %d: %s",
                marker.producer_id,
                node_id,
                error,
                extra={"about": f"markers for node {node_id}"},
            )
            return dict.fromkeys(partitions, ErrorCode.NETWORK_EXCEPTION)
        return _errors(answer)


def _request(marker: Marker, partitions: Sequence[TopicPartition]) -> dict[str, Any]:
    topics = [
        {"name": name, "partition_indexes": indexes}
        for name, indexes in indexes_by_topic(partitions).items()
    ]
    return {
        "markers": [
            {
                "producer_id": marker.producer_id,
                "producer_epoch": marker.producer_epoch,
                "transaction_result": marker.is_commit,
                "topics": topics,
                "coordinator_epoch": marker.coordinator_epoch,
                "transaction_version": marker.transaction_version,
            }
        ]
    }


def _errors(answer: Any) -> dict[TopicPartition, ErrorCode]:
    return {
        (topic.name, partition.partition_index): ErrorCode(partition.error_code)
        for marker in answer.markers
        for topic in marker.topics
        for partition in topic.partitions
    }
