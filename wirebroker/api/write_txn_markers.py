"""WriteTxnMarkers: other brokers' coordinators, or an administrator, end transactions here.

v1 flexible, v2 the transaction.version that the transaction goes by (KIP-1228).

Source: Kafka's KafkaApis.handleWriteTxnMarkersRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.registry import handles
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.outcome import Marker
from wirebroker.handlers import Cost
from wirebroker.needs import ALTER_CLUSTER, CLUSTER_ACTION

if TYPE_CHECKING:
    from wirebroker.broker import Broker
    from wirebroker.request import Request


@handles(ApiKey.WRITE_TXN_MARKERS, needs=(CLUSTER_ACTION, ALTER_CLUSTER), cost=Cost.LOG)
async def write_txn_markers(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Write each marker into each of its partitions."""
    del request
    # Of one that cannot be a marker Kafka's whole request dies; a client must see the same.
    is_sound = all(each.producer_id >= 0 <= each.producer_epoch for each in body.markers)
    answers: list[dict[str, Any]] = []
    for wanted in body.markers:
        marker = Marker(
            wanted.producer_id,
            wanted.producer_epoch,
            wanted.coordinator_epoch,
            wanted.transaction_result,
            wanted.transaction_version,
        )
        partitions = [
            (topic.name, index) for topic in wanted.topics for index in topic.partition_indexes
        ]
        errors = dict.fromkeys(partitions, ErrorCode.UNKNOWN_SERVER_ERROR)
        if is_sound:
            written = await broker.transactions.markers.write(marker, partitions)
            errors = dict(zip(partitions, written, strict=True))
        topics = [
            {
                "name": topic.name,
                "partitions": [
                    {"partition_index": index, "error_code": errors[topic.name, index]}
                    for index in topic.partition_indexes
                ],
            }
            for topic in wanted.topics
        ]
        answers.append({"producer_id": wanted.producer_id, "topics": topics})
    return {"markers": answers}
