"""DescribeTransactions: the state of transactional ids (KIP-664).

Source: Kafka's KafkaApis.handleDescribeTransactionsRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.registry import handles
from wirebroker.base.clock import Slices
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import KafkaError
from wirebroker.codecs.permissions import DESCRIBE_TOPIC, DESCRIBE_TRANSACTIONAL_ID
from wirebroker.coordinator.transactions import admin as transaction_admin
from wirebroker.request.handlers import Cost
from wirebroker.request.request import LargeResponse

if TYPE_CHECKING:
    from wirebroker.api.broker import Broker
    from wirebroker.request.request import Request


@handles(
    ApiKey.DESCRIBE_TRANSACTIONS,
    permissions=(DESCRIBE_TRANSACTIONAL_ID, DESCRIBE_TOPIC),
    cost=Cost.READS,
)
async def describe_transactions(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Describe each transactional id once."""
    del request
    slices = Slices(broker.clock)
    states: dict[str, dict[str, Any]] = {}
    for transactional_id in body.transactional_ids:
        if transactional_id not in states:
            states[transactional_id] = await _describe(broker, transactional_id, slices)
        await slices.turn()
    answer = {"transaction_states": list(states.values())}
    return LargeResponse(answer) if len(states) > 1 else answer


async def _describe(broker: Broker, transactional_id: str, slices: Slices) -> dict[str, Any]:
    try:
        shard = broker.transactions.shard_of(transactional_id)
        return await slices.run(transaction_admin.describe(shard, transactional_id))
    except KafkaError as error:
        return {"transactional_id": transactional_id, "error_code": error.code}
