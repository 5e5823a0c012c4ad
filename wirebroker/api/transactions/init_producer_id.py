"""InitProducerId: returns a producer id, or a new epoch of a transactional id.

v3 current id and epoch (KIP-360), v4 PRODUCER_FENCED (KIP-588), v5 TRANSACTION_ABORTABLE (KIP-890).

Source: Kafka's KafkaApis.handleInitProducerIdRequest and TransactionCoordinator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.groups.group_errors import response_of
from wirebroker.api.registry import handles
from wirebroker.api.transactions.transaction_errors import error_for_version
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.permissions import IDEMPOTENT_WRITE, WRITE_TOPIC, WRITE_TRANSACTIONAL_ID
from wirebroker.coordinator.outcome import ProducerEpoch
from wirebroker.coordinator.transactions.init import Init, check, init_producer_id, refusal
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Mapping

    from wirebroker.api.broker import Broker
    from wirebroker.request.request import Request

    Response = Mapping[str, Any]

_FIRST_FENCED_VERSION = 4
_NO_ID = -1
_NO_EPOCH = -1


@handles(
    ApiKey.INIT_PRODUCER_ID,
    permissions=(WRITE_TRANSACTIONAL_ID, IDEMPOTENT_WRITE, WRITE_TOPIC),
    cost=Cost.LOG,
)
def handle_init_producer_id(
    broker: Broker, request: Request, body: Any
) -> Response | Awaitable[Response]:
    """Return a producer id or epoch."""
    if (body.producer_id == _NO_ID) != (body.producer_epoch == _NO_EPOCH):
        return refusal(ErrorCode.INVALID_REQUEST)
    if broker.producer_ids.is_ready:
        return _serve(broker, request.version, body)
    return _serve_with_ids(broker, request.version, body)


async def _serve_with_ids(broker: Broker, version: int, body: Any) -> Response:
    try:
        await broker.producer_ids.until_ready()
        return await response_of(_serve(broker, version, body))
    except KafkaError as error:
        return refusal(error.code)


def _serve(broker: Broker, version: int, body: Any) -> Response | asyncio.Future[Response]:
    if body.transactional_id is None:
        return {"producer_id": broker.producer_ids.take(), "producer_epoch": 0}
    client_producer = None
    if body.producer_id != _NO_ID:
        client_producer = ProducerEpoch(body.producer_id, body.producer_epoch)
    init = Init(body.transactional_id, body.transaction_timeout_ms, client_producer)
    try:
        check(init, broker.transactions.settings)
    except KafkaError as error:
        return refusal(error.code)
    return broker.transactions.submit(
        init.transactional_id,
        init_producer_id,
        init,
        on_error=lambda error: refusal(
            error_for_version(error, version=version, fenced_from=_FIRST_FENCED_VERSION)
        ),
    )
