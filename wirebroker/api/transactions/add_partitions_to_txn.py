"""AddPartitionsToTxn: adds partitions to which a transaction will write.

v2 PRODUCER_FENCED (KIP-588), v4 from brokers: several transactions, and verification (KIP-890), v5
TRANSACTION_ABORTABLE.

All partitions are added, or none: if one does not exist or is internal, the others get
OPERATION_NOT_ATTEMPTED.

Source: Kafka's KafkaApis.handleAddPartitionsToTxnRequest.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from wirebroker.api.groups.group_errors import response_of
from wirebroker.api.registry import handles
from wirebroker.api.transactions.transaction_errors import error_for_version
from wirebroker.base.clock import Slices, collected, in_one_go, next_turn
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.permissions import CLUSTER_ACTION, WRITE_TOPIC, WRITE_TRANSACTIONAL_ID
from wirebroker.coordinator.controller.image.topic_names import is_internal
from wirebroker.coordinator.transactions import partitions as transaction_partitions
from wirebroker.coordinator.transactions.metadata import EPOCH_BUMP, TV_0
from wirebroker.coordinator.transactions.partitions import Claim
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from wirebroker.api.broker import Broker
    from wirebroker.base.clock import Steps
    from wirebroker.request.request import Request

    Response = Mapping[str, Any]
    Topics = list[dict[str, Any]]

_FIRST_FENCED_VERSION = 2
FIRST_BATCH_VERSION = 4
# Partitions without slices: about 1 ms.
_AT_ONCE = 500


@handles(
    ApiKey.ADD_PARTITIONS_TO_TXN,
    permissions=(WRITE_TRANSACTIONAL_ID, WRITE_TOPIC, CLUSTER_ACTION),
    cost=Cost.LOG,
)
def add_partitions_to_txn(
    broker: Broker, request: Request, body: Any
) -> Response | Awaitable[Response]:
    """Add partitions to one or several transactions."""
    if request.version >= FIRST_BATCH_VERSION:
        return _serve_batch(broker, body)
    topics = body.v3_and_below_topics
    if len(topics) > _AT_ONCE or sum(len(topic.partitions) for topic in topics) > _AT_ONCE:
        return _serve_many(broker, request.version, body)
    outcome = in_one_go(_begin(broker, body))
    if not isinstance(outcome, Claim):
        return outcome
    failed = partial(_failed, request.version, topics)
    return _add(broker, outcome, TV_0, lambda error: in_one_go(failed(error)))


async def _serve_many(broker: Broker, version: int, body: Any) -> Response:
    slices = Slices(broker.clock)
    outcome = await slices.run(_begin(broker, body))
    if not isinstance(outcome, Claim):
        return outcome
    await next_turn()
    added = await response_of(_add(broker, outcome, TV_0, lambda error: {"error": error}))
    await next_turn()
    return await slices.run(_failed(version, body.v3_and_below_topics, added["error"]))


def _begin(broker: Broker, body: Any) -> Steps[Claim | Response]:
    claim = Claim(
        body.v3_and_below_transactional_id,
        body.v3_and_below_producer_id,
        body.v3_and_below_producer_epoch,
        (yield from _partitions(body.v3_and_below_topics)),
    )
    topics = body.v3_and_below_topics
    wrong = yield from _wrong(broker, claim, topics, is_client=True)
    return {"results_by_topic_v3_and_below": wrong} if wrong else claim


def _failed(version: int, topics: Any, error: ErrorCode) -> Steps[Response]:
    error_code = error_for_version(error, version=version, fenced_from=_FIRST_FENCED_VERSION)
    return {"results_by_topic_v3_and_below": (yield from _same(topics, error_code))}


async def _serve_batch(broker: Broker, body: Any) -> Response:
    slices = Slices(broker.clock)
    results: list[Response] = []
    for transaction in body.transactions:
        partitions = await slices.run(_partitions(transaction.topics))
        claim = Claim(
            transaction.transactional_id,
            transaction.producer_id,
            transaction.producer_epoch,
            partitions,
        )
        topic_results = await slices.run(_wrong(broker, claim, transaction.topics, is_client=False))
        if not topic_results and transaction.verify_only:
            topic_results = await slices.run(_verified(broker, claim, transaction.topics))
        elif not topic_results:
            answer = _add(broker, claim, EPOCH_BUMP, lambda error: {"error": error})
            error = (await response_of(answer))["error"]
            topic_results = await slices.run(_same(transaction.topics, error))
        results.append(
            {"transactional_id": transaction.transactional_id, "topic_results": topic_results}
        )
        await next_turn()
    return {"results_by_transaction": results}


def _add(
    broker: Broker, claim: Claim, client_version: int, respond: Callable[[ErrorCode], Response]
) -> Response | asyncio.Future[Response]:
    return broker.transactions.submit(
        claim.transactional_id,
        transaction_partitions.add,
        claim,
        client_version,
        on_error=respond,
        finish=lambda answer: respond(answer["error_code"]),
    )


def _verified(broker: Broker, claim: Claim, topics: Iterable[Any]) -> Steps[Topics]:
    try:
        shard = broker.transactions.shard_of(claim.transactional_id)
        errors = transaction_partitions.verify(shard, claim)
    except KafkaError as error:
        return (yield from _same(topics, error.code))
    return (yield from _topics(topics, errors.__getitem__))


def _wrong(
    broker: Broker, claim: Claim, requested: Iterable[Any], *, is_client: bool
) -> Steps[Topics]:
    topics = broker.metadata.image.topics
    wrong: dict[tuple[str, int], ErrorCode] = {}
    for name, index in claim.partitions:
        if is_client and is_internal(name):
            wrong[name, index] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif name not in topics or index not in topics[name].partitions:
            wrong[name, index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        yield
    if not wrong:
        return []
    not_tried = ErrorCode.OPERATION_NOT_ATTEMPTED
    return (yield from _topics(requested, lambda partition: wrong.get(partition, not_tried)))


def _partitions(topics: Iterable[Any]) -> Steps[frozenset[tuple[str, int]]]:
    partitions: set[tuple[str, int]] = set()
    for topic in topics:
        for index in topic.partitions:
            partitions.add((topic.name, index))
            yield
        yield
    return frozenset(partitions)


def _same(topics: Iterable[Any], error: ErrorCode) -> Steps[Topics]:
    topic_results: Topics = []
    for topic in topics:
        results = yield from collected(
            {"partition_index": index, "partition_error_code": error} for index in topic.partitions
        )
        topic_results.append({"name": topic.name, "results_by_partition": results})
        yield
    return topic_results


def _topics(
    topics: Iterable[Any], error_of: Callable[[tuple[str, int]], ErrorCode]
) -> Steps[Topics]:
    by_topic: dict[str, dict[int, ErrorCode]] = {}
    for topic in topics:
        for index in topic.partitions:
            errors = by_topic.setdefault(topic.name, {})
            errors[index] = error_of((topic.name, index))
            yield
        yield
    topic_results: Topics = []
    for name, errors in by_topic.items():
        results = yield from collected(
            {"partition_index": index, "partition_error_code": error}
            for index, error in errors.items()
        )
        topic_results.append({"name": name, "results_by_partition": results})
        yield
    return topic_results
