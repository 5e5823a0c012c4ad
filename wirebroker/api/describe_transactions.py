"""DescribeTransactions: what transactional ids are doing (KIP-664).

Source: Kafka's KafkaApis.handleDescribeTransactionsRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.registry import Request, handles
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import KafkaError
from wirebroker.coordinator import transaction_admin

if TYPE_CHECKING:
    from wirebroker.broker import Broker


@handles(ApiKey.DESCRIBE_TRANSACTIONS)
def describe_transactions(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Describe each transactional id that is named."""
    del request
    return {"transaction_states": [_describe(broker, each) for each in body.transactional_ids]}


def _describe(broker: Broker, transactional_id: str) -> dict[str, Any]:
    try:
        shard = broker.transactions.shard_of(transactional_id)
        return transaction_admin.describe(shard, transactional_id)
    except KafkaError as error:
        return {"transactional_id": transactional_id, "error_code": error.code}
