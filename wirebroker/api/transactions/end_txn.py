"""EndTxn: commits or aborts a transaction; the markers are written after the response.

v2 PRODUCER_FENCED (KIP-588), v4 TRANSACTION_ABORTABLE, v5 a new epoch or producer id with each
transaction (KIP-890).

Source: Kafka's KafkaApis.handleEndTxnRequest and TransactionCoordinator.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from wirebroker.api.groups.group_errors import response_of
from wirebroker.api.registry import handles
from wirebroker.api.transactions.transaction_errors import error_for_version
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.permissions import WRITE_TRANSACTIONAL_ID
from wirebroker.coordinator.transactions.end import End, end_transaction
from wirebroker.coordinator.transactions.init import refusal
from wirebroker.coordinator.transactions.metadata import EPOCH_BUMP, TV_0
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Mapping

    from wirebroker.api.broker import Broker
    from wirebroker.request.request import Request

    Response = Mapping[str, Any]

_FIRST_FENCED_VERSION = 2
_FIRST_EPOCH_BUMP_VERSION = 5


@handles(ApiKey.END_TXN, permissions=(WRITE_TRANSACTIONAL_ID,), cost=Cost.LOG)
def end_txn(broker: Broker, request: Request, body: Any) -> Response | Awaitable[Response]:
    """Commit or abort a transaction."""
    version = request.version
    end = End(
        body.transactional_id,
        body.producer_id,
        body.producer_epoch,
        body.committed,
        EPOCH_BUMP if version >= _FIRST_EPOCH_BUMP_VERSION else TV_0,
    )
    if broker.producer_ids.is_ready:
        return _serve(broker, version, end)
    return _serve_with_ids(broker, version, end)


async def _serve_with_ids(broker: Broker, version: int, end: End) -> Response:
    # Only a next epoch that starts another producer id needs one.
    with contextlib.suppress(KafkaError):
        await broker.producer_ids.until_ready()
    return await response_of(_serve(broker, version, end))


def _serve(broker: Broker, version: int, end: End) -> Response | asyncio.Future[Response]:
    def on_error(error: ErrorCode) -> dict[str, Any]:
        return refusal(error_for_version(error, version=version, fenced_from=_FIRST_FENCED_VERSION))

    return broker.transactions.submit(end.transactional_id, end_transaction, end, on_error=on_error)
