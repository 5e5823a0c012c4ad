"""ListTransactions: the transactional ids that this broker coordinates (KIP-664).

v1 filter by duration (KIP-994), v2 by pattern (KIP-1152).

Source: Kafka's KafkaApis.handleListTransactionsRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.registry import handles
from wirebroker.base.clock import Slices
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import KafkaError
from wirebroker.codecs.permissions import DESCRIBE_TRANSACTIONAL_ID
from wirebroker.coordinator.patterns import compile_pattern
from wirebroker.coordinator.transactions.admin import Filters, list_transactions
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from wirebroker.api.broker import Broker
    from wirebroker.request.request import Request


@handles(ApiKey.LIST_TRANSACTIONS, permissions=(DESCRIBE_TRANSACTIONAL_ID,), cost=Cost.READS)
async def handle_list_transactions(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """List the transactional ids that pass the filters."""
    del request
    slices = Slices(broker.clock)
    transactions: list[dict[str, Any]] = []
    text = body.transactional_id_pattern
    try:
        filters = Filters(
            frozenset(body.producer_id_filters),
            body.state_filters,
            body.duration_filter,
            compile_pattern(text) if text else None,
        )
        for shard in broker.transactions.shards():
            transactions += await slices.run(
                list_transactions(shard, filters, broker.clock.now_ms())
            )
    except KafkaError as error:
        return {"error_code": error.code}
    return {"unknown_state_filters": filters.unknown_states(), "transaction_states": transactions}
