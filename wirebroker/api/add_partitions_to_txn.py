"""AddPartitionsToTxn: partitions that a producer is going to write to in its transaction.

v2 PRODUCER_FENCED (KIP-588), v3 flexible, v4 from brokers: several transactions, and verification
(KIP-890), v5 TRANSACTION_ABORTABLE.

All partitions are added, or none: if one does not exist, or is internal, the others get
OPERATION_NOT_ATTEMPTED.

Source: Kafka's KafkaApis.handleAddPartitionsToTxnRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.group_errors import response_of
from wirebroker.api.registry import handles
from wirebroker.api.transaction_errors import known_error
from wirebroker.clock import next_turn
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.controller.topic_names import is_internal
from wirebroker.coordinator.transactions import partitions as transaction_partitions
from wirebroker.coordinator.transactions.metadata import EPOCH_BUMP, TV_0
from wirebroker.coordinator.transactions.partitions import Claim
from wirebroker.handlers import Cost
from wirebroker.needs import CLUSTER_ACTION, WRITE_TOPIC, WRITE_TRANSACTIONAL_ID

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from wirebroker.broker import Broker
    from wirebroker.coordinator.outcome import Moment, Outcome, Token
    from wirebroker.coordinator.transactions.shard import TransactionShard
    from wirebroker.request import Request

    Response = Mapping[str, Any]
    Topics = list[dict[str, Any]]

_FIRST_FENCED_VERSION = 2
FIRST_BATCH_VERSION = 4
# So many partitions are added and answered in one go: about 1 ms.
_AT_ONCE = 500


@handles(
    ApiKey.ADD_PARTITIONS_TO_TXN,
    needs=(WRITE_TRANSACTIONAL_ID, WRITE_TOPIC, CLUSTER_ACTION),
    cost=Cost.LOG,
)
def add_partitions_to_txn(
    broker: Broker, request: Request, body: Any
) -> Response | Awaitable[Response]:
    """Add partitions to one transaction, or to several."""
    version = request.version
    if version >= FIRST_BATCH_VERSION:
        return _serve_batch(broker, body)
    claim = Claim(
        body.v3_and_below_transactional_id,
        body.v3_and_below_producer_id,
        body.v3_and_below_producer_epoch,
        _partitions(body.v3_and_below_topics),
    )

    def respond(error: ErrorCode) -> Response:
        known = known_error(error, version=version, fenced_from=_FIRST_FENCED_VERSION)
        return {"results_by_topic_v3_and_below": _same(body.v3_and_below_topics, known)}

    wrong = _wrong(broker, claim, is_client=True)
    if wrong:
        return {"results_by_topic_v3_and_below": wrong}
    if len(claim.partitions) > _AT_ONCE:
        return _add_many(broker, claim, respond)
    return _add(broker, claim, TV_0, respond)


async def _add_many(
    broker: Broker, claim: Claim, respond: Callable[[ErrorCode], Response]
) -> Response:
    """Add them at once, but serve others before that and before the answer is encoded."""
    await next_turn()
    response = await response_of(_add(broker, claim, TV_0, respond))
    await next_turn()
    return response


async def _serve_batch(broker: Broker, body: Any) -> Response:
    results: list[Response] = []
    for each in body.transactions:
        claim = Claim(
            each.transactional_id, each.producer_id, each.producer_epoch, _partitions(each.topics)
        )

        def respond(error: ErrorCode, each: Any = each) -> Response:
            return {
                "transactional_id": each.transactional_id,
                "topic_results": _same(each.topics, error),
            }

        wrong = _wrong(broker, claim, is_client=False)
        if wrong:
            results.append({"transactional_id": claim.transactional_id, "topic_results": wrong})
        elif each.verify_only:
            results.append(_verify(broker, claim, respond))
        else:
            results.append(await response_of(_add(broker, claim, EPOCH_BUMP, respond)))
        await next_turn()
    return {"results_by_transaction": results}


def _add(
    broker: Broker, claim: Claim, client_version: int, respond: Callable[[ErrorCode], Response]
) -> Response | asyncio.Future[Response]:
    def operation(shard: TransactionShard, token: Token, moment: Moment) -> Outcome:
        return transaction_partitions.add(shard, claim, client_version, token, moment)

    return broker.transactions.submit(
        claim.transactional_id,
        operation,
        on_error=respond,
        finish=lambda answer: respond(answer["error_code"]),
    )


def _verify(broker: Broker, claim: Claim, respond: Callable[[ErrorCode], Response]) -> Response:
    try:
        shard = broker.transactions.shard_of(claim.transactional_id)
        errors = transaction_partitions.verify(shard, claim)
    except KafkaError as error:
        return respond(error.code)
    return {
        "transactional_id": claim.transactional_id,
        "topic_results": _topics(claim, errors.__getitem__),
    }


def _wrong(broker: Broker, claim: Claim, *, is_client: bool) -> Topics:
    """Return the answer if some partitions cannot be added; nothing if all can."""
    topics = broker.metadata.image.topics
    wrong: dict[tuple[str, int], ErrorCode] = {}
    for name, index in claim.partitions:
        if is_client and is_internal(name):
            wrong[name, index] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif name not in topics or index not in topics[name].partitions:
            wrong[name, index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if not wrong:
        return []
    return _topics(claim, lambda each: wrong.get(each, ErrorCode.OPERATION_NOT_ATTEMPTED))


def _partitions(topics: Iterable[Any]) -> frozenset[tuple[str, int]]:
    return frozenset((topic.name, index) for topic in topics for index in topic.partitions)


def _same(topics: Iterable[Any], error: ErrorCode) -> Topics:
    """Return one error for all that was asked, as it was asked."""
    return [
        {
            "name": topic.name,
            "results_by_partition": [
                {"partition_index": index, "partition_error_code": error}
                for index in topic.partitions
            ],
        }
        for topic in topics
    ]


def _topics(claim: Claim, error_of: Callable[[tuple[str, int]], ErrorCode]) -> Topics:
    by_topic: dict[str, list[dict[str, Any]]] = {}
    for name, index in sorted(claim.partitions):
        by_topic.setdefault(name, []).append(
            {"partition_index": index, "partition_error_code": error_of((name, index))}
        )
    return [{"name": name, "results_by_partition": results} for name, results in by_topic.items()]
