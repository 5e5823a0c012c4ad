"""Verifies transactions with a coordinator on another node (AddPartitionsToTxn).

A failed request returns NETWORK_EXCEPTION, and clients retry.

Source: Kafka's AddPartitionsToTxnManager, KafkaApis.handleAddPartitionsToTxnRequest (KIP-890).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from wirebroker.base.log_bound import about_transaction
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.controller.image.cluster_image import NO_LEADER
from wirebroker.coordinator.groups.partitions import TRANSACTION_STATE, partition_for
from wirebroker.coordinator.transactions.metadata import TopicPartition, indexes_by_topic
from wirebroker.net.client.errors import PeerError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wirebroker.coordinator.transactions.partitions import Claim
    from wirebroker.net.client.node import Node
    from wirebroker.quorum.image.metadata_follower import MetadataFollower

logger = logging.getLogger(__name__)

# As in Kafka (request.timeout.ms).
_TIMEOUT_S = 30.0


class RemoteVerification:
    """The transaction coordinators on other nodes."""

    __slots__ = ("_find_node", "_metadata", "_node_id")

    def __init__(
        self, node_id: int, metadata: MetadataFollower, find_node: Callable[[int], Node | None]
    ) -> None:
        """Use the nodes that `find_node` returns."""
        self._node_id = node_id
        self._metadata = metadata
        self._find_node = find_node

    def coordinator(self, transactional_id: str) -> int | None:
        """Return the coordinator of an id if it is another node."""
        image = self._metadata.image
        topic = image.topics.get(TRANSACTION_STATE)
        if topic is None:
            return None
        index = partition_for(transactional_id, len(topic.partitions))
        partition = topic.partitions.get(index)
        leader = NO_LEADER if partition is None else partition.leader
        return None if leader in {NO_LEADER, self._node_id} else leader

    async def ask(
        self, node_id: int, claim: Claim, *, verify_only: bool
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Have a node verify or add the partitions of a claim; return their errors."""
        node = self._find_node(node_id)
        if node is None:
            return dict.fromkeys(claim.partitions, ErrorCode.NETWORK_EXCEPTION)
        try:
            answer = await node.request(
                ApiKey.ADD_PARTITIONS_TO_TXN,
                _request(claim, verify_only=verify_only),
                timeout_s=_TIMEOUT_S,
            )
        except PeerError as error:
            logger.info(
                "node %d did not verify the transaction of %s: %s",
                node_id,
                claim.transactional_id,
                error,
                extra=about_transaction(claim.transactional_id),
            )
            return dict.fromkeys(claim.partitions, ErrorCode.NETWORK_EXCEPTION)
        return _errors(claim, answer)


def _request(claim: Claim, *, verify_only: bool) -> dict[str, Any]:
    indexes = indexes_by_topic(sorted(claim.partitions))
    return {
        "transactions": [
            {
                "transactional_id": claim.transactional_id,
                "producer_id": claim.producer_id,
                "producer_epoch": claim.producer_epoch,
                "verify_only": verify_only,
                "topics": [
                    {"name": name, "partitions": partition_indexes}
                    for name, partition_indexes in indexes.items()
                ],
            }
        ]
    }


def _errors(claim: Claim, answer: Any) -> dict[TopicPartition, ErrorCode]:
    """Return the errors of the claim's partitions only."""
    request_error = _client_error(answer.error_code)
    silent = ErrorCode.NETWORK_EXCEPTION if request_error is ErrorCode.NONE else request_error
    errors: dict[tuple[str, int], ErrorCode] = dict.fromkeys(claim.partitions, silent)
    for transaction in answer.results_by_transaction:
        for topic in transaction.topic_results:
            for result in topic.results_by_partition:
                partition = topic.name, result.partition_index
                if transaction.transactional_id == claim.transactional_id and partition in errors:
                    errors[partition] = _client_error(result.partition_error_code)
    return errors


def _client_error(code: int) -> ErrorCode:
    error = ErrorCode(code)
    # The client does not learn that the broker is not authorized.
    is_denied = error is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return ErrorCode.INVALID_TXN_STATE if is_denied else error
