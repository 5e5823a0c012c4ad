"""InitProducerId: an id for an idempotent producer (KIP-98).

v0, v2 flexible, v3 the producer's present id and epoch (KIP-360), v4 PRODUCER_FENCED, v5
TRANSACTION_ABORTABLE (KIP-890). A transactional id needs a transaction coordinator, which this
broker does not have: COORDINATOR_NOT_AVAILABLE, as from a Kafka whose coordinator is not up.

Source: Kafka's KafkaApis.handleInitProducerIdRequest and TransactionCoordinator.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from wirebroker.api.registry import Request, handles
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from wirebroker.broker import Broker

_NO_ID = -1
_NO_EPOCH = -1


@handles(ApiKey.INIT_PRODUCER_ID)
def init_producer_id(
    broker: Broker, request: Request, body: Any
) -> dict[str, Any] | Awaitable[dict[str, Any]]:
    """Give out an id that no producer ever had, with epoch 0."""
    del request
    if (body.producer_id == _NO_ID) != (body.producer_epoch == _NO_EPOCH):
        return _failure(ErrorCode.INVALID_REQUEST)
    if body.transactional_id is not None:
        if not body.transactional_id:
            return _failure(ErrorCode.INVALID_REQUEST)
        if body.transaction_timeout_ms <= 0:
            return _failure(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        return _failure(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    producer_id = broker.producer_ids.take()
    if producer_id is None:
        return _after_refill(broker)
    return {"producer_id": producer_id, "producer_epoch": 0}


async def _after_refill(broker: Broker) -> dict[str, Any]:
    ids = broker.producer_ids
    try:
        while (producer_id := ids.take()) is None:
            if ids.refill is None:
                ids.refill = asyncio.create_task(_refill(broker), name="producer ids")
            # One allocation serves all who wait, and goes on if one of them is cancelled.
            await asyncio.shield(ids.refill)
    except KafkaError as error:
        return _failure(error.code)
    return {"producer_id": producer_id, "producer_epoch": 0}


async def _refill(broker: Broker) -> None:
    try:
        block = await broker.metadata.submit(broker.controller.allocate_producer_ids())
        broker.producer_ids.offer(block)
    finally:
        broker.producer_ids.refill = None


def _failure(code: ErrorCode) -> dict[str, Any]:
    return {"error_code": int(code), "producer_id": _NO_ID, "producer_epoch": _NO_EPOCH}
