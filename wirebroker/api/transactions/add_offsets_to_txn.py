"""AddOffsetsToTxn: adds a group whose offsets a transaction will commit.

v2 PRODUCER_FENCED (KIP-588), v4 TRANSACTION_ABORTABLE (KIP-890). With transaction.version 2,
TxnOffsetCommit adds the group instead.

Source: Kafka's KafkaApis.handleAddOffsetsToTxnRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.registry import handles
from wirebroker.api.transactions.transaction_errors import error_for_version
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.permissions import READ_GROUP, WRITE_TRANSACTIONAL_ID
from wirebroker.coordinator.groups.partitions import CONSUMER_OFFSETS
from wirebroker.coordinator.transactions import partitions as transaction_partitions
from wirebroker.coordinator.transactions.metadata import TV_0
from wirebroker.coordinator.transactions.partitions import Claim
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from wirebroker.api.broker import Broker
    from wirebroker.codecs.errors import ErrorCode
    from wirebroker.request.request import Request

    Response = Mapping[str, Any]

_FIRST_FENCED_VERSION = 2


@handles(ApiKey.ADD_OFFSETS_TO_TXN, permissions=(WRITE_TRANSACTIONAL_ID, READ_GROUP), cost=Cost.LOG)
def add_offsets_to_txn(
    broker: Broker, request: Request, body: Any
) -> Response | Awaitable[Response]:
    """Add the group's partition of `__consumer_offsets` to the transaction."""
    version = request.version
    partition = (CONSUMER_OFFSETS, broker.groups.partition_for(body.group_id))
    claim = Claim(
        body.transactional_id, body.producer_id, body.producer_epoch, frozenset({partition})
    )

    def on_error(error: ErrorCode) -> Response:
        error_code = error_for_version(error, version=version, fenced_from=_FIRST_FENCED_VERSION)
        return {"error_code": error_code}

    return broker.transactions.submit(
        body.transactional_id, transaction_partitions.add, claim, TV_0, on_error=on_error
    )
