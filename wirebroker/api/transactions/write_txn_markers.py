"""WriteTxnMarkers: other brokers' coordinators, or an administrator, end transactions here.

v2 has the transaction.version (KIP-1228).

Source: Kafka's KafkaApis.handleWriteTxnMarkersRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.registry import handles
from wirebroker.base.clock import Slices, collected
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.permissions import ALTER_CLUSTER, CLUSTER_ACTION
from wirebroker.coordinator.outcome import Marker
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.api.broker import Broker
    from wirebroker.base.clock import Steps
    from wirebroker.request.request import Request


@handles(ApiKey.WRITE_TXN_MARKERS, permissions=(CLUSTER_ACTION, ALTER_CLUSTER), cost=Cost.LOG)
async def write_txn_markers(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Write each marker to its partitions."""
    del request
    # In Kafka an invalid marker fails the whole request.
    is_sound = all(
        requested.producer_id >= 0 <= requested.producer_epoch for requested in body.markers
    )
    slices = Slices(broker.clock)
    answers: list[dict[str, Any]] = []
    for requested in body.markers:
        marker = Marker(
            requested.producer_id,
            requested.producer_epoch,
            requested.coordinator_epoch,
            requested.transaction_result,
            requested.transaction_version,
        )
        partitions = await slices.run(_partitions(requested))
        errors = dict.fromkeys(partitions, ErrorCode.UNKNOWN_SERVER_ERROR)
        if is_sound:
            written = await broker.transactions.markers.write(marker, partitions)
            errors = dict(zip(partitions, written, strict=True))
        topics = await slices.run(_responses(requested, errors))
        answers.append({"producer_id": requested.producer_id, "topics": topics})
        await slices.turn()
    return {"markers": answers}


def _partitions(requested: Any) -> Steps[list[tuple[str, int]]]:
    partitions: list[tuple[str, int]] = []
    for topic in requested.topics:
        name = topic.name
        partitions += yield from collected((name, index) for index in topic.partition_indexes)
        yield
    return partitions


def _responses(
    requested: Any, errors: Mapping[tuple[str, int], ErrorCode]
) -> Steps[list[dict[str, Any]]]:
    topics: list[dict[str, Any]] = []
    for topic in requested.topics:
        name = topic.name
        partitions = yield from collected(
            {"partition_index": index, "error_code": errors[name, index]}
            for index in topic.partition_indexes
        )
        topics.append({"name": name, "partitions": partitions})
        yield
    return topics
