"""WriteTxnMarkers: other brokers' coordinators, or an administrator, end transactions here.

v1 flexible, v2 the transaction.version that the transaction goes by (KIP-1228).

Source: Kafka's KafkaApis.handleWriteTxnMarkersRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.registry import Request, handles
from wirebroker.clock import Slices
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.runtime import Marker

if TYPE_CHECKING:
    from wirebroker.broker import Broker


@handles(ApiKey.WRITE_TXN_MARKERS)
async def write_txn_markers(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Write each marker into each of its partitions."""
    del request
    slices = Slices(broker.clock)
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
        topics: list[dict[str, Any]] = []
        for topic in wanted.topics:
            results: list[dict[str, Any]] = []
            for index in topic.partition_indexes:
                error = ErrorCode.UNKNOWN_SERVER_ERROR
                if is_sound:
                    error = await broker.transactions.markers.write(topic.name, index, marker)
                results.append({"partition_index": index, "error_code": error})
                await slices.turn()
            topics.append({"name": topic.name, "partitions": results})
        answers.append({"producer_id": wanted.producer_id, "topics": topics})
    return {"markers": answers}
