"""InitProducerId with a transactional id: fences all earlier producers of the id.

| state | no id given by the client | its id and epoch given (KIP-360) |
| --- | --- | --- |
| unknown | new id, epoch 0 | new id, epoch 0 |
| Empty, Complete* | next epoch | next epoch, or the current one for the previous epoch |
| ... epochs used up | new id, epoch 0 | new id, epoch 0 |
| Ongoing | aborted in the next epoch; CONCURRENT_TRANSACTIONS until that is done | likewise |
| Prepare* | CONCURRENT_TRANSACTIONS | likewise |

Source: Kafka's TransactionCoordinator.handleInitProducerId, prepareInitProducerIdTransit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.transactions.end import fence
from wirebroker.coordinator.transactions.metadata import (
    LAST_CLIENT_EPOCH,
    NO_EPOCH,
    NO_PRODUCER_ID,
    Transaction,
    TransactionState,
)

if TYPE_CHECKING:
    from wirebroker.coordinator.outcome import Moment, Outcome, ProducerEpoch, Token
    from wirebroker.coordinator.transactions.settings import TransactionSettings
    from wirebroker.coordinator.transactions.shard import TransactionShard


class Init(NamedTuple):
    """An InitProducerId request with a transactional id, which is not empty.

    Attributes:
        known: The client's current id and epoch, if any.
    """

    transactional_id: str
    timeout_ms: int
    known: ProducerEpoch | None


def check(request: Init, settings: TransactionSettings) -> None:
    """Refuse an invalid request.

    Raises:
        KafkaError: INVALID_REQUEST or INVALID_TRANSACTION_TIMEOUT.
    """
    if not request.transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if not 0 < request.timeout_ms <= settings.max_timeout_ms:
        raise KafkaError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)


def init_producer_id(shard: TransactionShard, request: Init, token: Token, now: Moment) -> Outcome:
    """Assign an id and an exclusive epoch; call `check` before.

    Raises:
        KafkaError: CONCURRENT_TRANSACTIONS or PRODUCER_FENCED; COORDINATOR_LOAD_IN_PROGRESS without
            a new id.
    """
    transaction = shard.get(request.transactional_id)
    if transaction is None:
        transaction = Transaction(request.transactional_id, shard.take_producer_id())
    if transaction.state.is_prepared:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if not _is_valid_producer(transaction, request.known):
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if transaction.state is TransactionState.ONGOING:
        outcome = fence(shard, transaction, now)
        # The client retries, and then gets a higher epoch.
        outcome.answer(token, refusal(ErrorCode.CONCURRENT_TRANSACTIONS))
        return outcome
    target = _next(shard, transaction, request, now)
    outcome = shard.move(target)
    outcome.answer(
        token,
        {"producer_id": target.producer_id, "producer_epoch": target.producer_epoch},
    )
    return outcome


def refusal(error: ErrorCode) -> dict[str, Any]:
    """Return an error response."""
    return {
        "error_code": error,
        "producer_id": NO_PRODUCER_ID,
        "producer_epoch": NO_EPOCH,
    }


def _is_valid_producer(transaction: Transaction, client_producer: ProducerEpoch | None) -> bool:
    if client_producer is None or transaction.producer_epoch == NO_EPOCH:
        return True
    if client_producer.producer_id == transaction.producer_id:
        return True
    # It may not know yet that the epochs of its id are used up.
    is_exhausted = client_producer.producer_epoch >= LAST_CLIENT_EPOCH
    return client_producer.producer_id == transaction.previous_producer_id and is_exhausted


def _next(
    shard: TransactionShard, transaction: Transaction, request: Init, now: Moment
) -> Transaction:
    client_producer, timeout_ms, now_ms = request.known, request.timeout_ms, now.wall_ms
    epoch = transaction.producer_epoch
    is_present = client_producer is None or client_producer.producer_epoch == epoch
    if transaction.is_epoch_exhausted:
        if not is_present:
            # As in Kafka.
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "no epoch is left for this id")
        return transaction.with_new_id(
            shard.take_producer_id(),
            timeout_ms=timeout_ms,
            now_ms=now_ms,
            keep_last=client_producer is not None,
        )
    if is_present or epoch == NO_EPOCH:
        return transaction.with_next_epoch(
            timeout_ms=timeout_ms, now_ms=now_ms, keep_last=client_producer is not None
        )
    assert client_producer is not None
    if client_producer.producer_epoch != transaction.last_producer_epoch:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    return transaction.with_next_epoch(
        timeout_ms=timeout_ms, now_ms=now_ms, is_retry=True, keep_last=True
    )
