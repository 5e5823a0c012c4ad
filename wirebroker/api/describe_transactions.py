"""DescribeTransactions: what transactional ids are doing (KIP-664).

Source: Kafka's KafkaApis.handleDescribeTransactionsRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.registry import handles
from wirebroker.clock import begun
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import KafkaError
from wirebroker.coordinator.transactions import admin as transaction_admin
from wirebroker.handlers import Cost
from wirebroker.needs import DESCRIBE_TOPIC, DESCRIBE_TRANSACTIONAL_ID

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable

    from wirebroker.broker import Broker
    from wirebroker.clock import Steps
    from wirebroker.request import Request

# Transactions that are described between two steps.
_STEP = 4


@handles(
    ApiKey.DESCRIBE_TRANSACTIONS,
    needs=(DESCRIBE_TRANSACTIONAL_ID, DESCRIBE_TOPIC),
    cost=Cost.SLICES,
)
def describe_transactions(
    broker: Broker, request: Request, body: Any
) -> dict[str, Any] | Awaitable[dict[str, Any]]:
    """Describe each transactional id that is named."""
    del request
    return begun(_answer(broker, body.transactional_ids), broker.clock)


def _answer(broker: Broker, transactional_ids: Iterable[str]) -> Steps[dict[str, Any]]:
    states: list[dict[str, Any]] = []
    for count, each in enumerate(transactional_ids, 1):
        states.append((yield from _describe(broker, each)))
        if count % _STEP == 0:
            yield
    return {"transaction_states": states}


def _describe(broker: Broker, transactional_id: str) -> Steps[dict[str, Any]]:
    try:
        shard = broker.transactions.shard_of(transactional_id)
        return (yield from transaction_admin.describe(shard, transactional_id))
    except KafkaError as error:
        return {"transactional_id": transactional_id, "error_code": error.code}
