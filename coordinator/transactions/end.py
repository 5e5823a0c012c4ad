"""The end of a transaction: decided by a record, written to every partition, completed by a record.

Results of EndTxn (a retry has the previous epoch, or 32766 of the previous id, if TV2 ended the
last transaction):

| state | client | commit | abort |
| --- | --- | --- | --- |
| Ongoing | | decided | decided |
| Prepare* | | CONCURRENT_TRANSACTIONS | CONCURRENT_TRANSACTIONS |
| Empty | TV0, 1 | INVALID_TXN_STATE | INVALID_TXN_STATE |
| Empty | TV2 | INVALID_TXN_STATE | next epoch |
| CompleteCommit | TV0, 1 | already done | INVALID_TXN_STATE |
| CompleteCommit | TV2 | INVALID_TXN_STATE | next epoch |
| ... a retry | TV2 | already done | INVALID_TXN_STATE |
| CompleteAbort | TV0, 1 | INVALID_TXN_STATE | already done |
| CompleteAbort | TV2 | INVALID_TXN_STATE | next epoch |
| ... a retry | TV2 | INVALID_TXN_STATE | already done |

Another producer id gets INVALID_PRODUCER_ID_MAPPING, any other epoch PRODUCER_FENCED.

Source: Kafka's TransactionCoordinator.endTransaction, endTransactionWithTV1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.outcome import Moment, Outcome, Token
from wirebroker.coordinator.transactions.metadata import (
    EPOCH_BUMP,
    LAST_CLIENT_EPOCH,
    NO_EPOCH,
    NO_PRODUCER_ID,
    Transaction,
    TransactionState,
)

if TYPE_CHECKING:
    from wirebroker.coordinator.transactions.shard import TransactionShard, WriteMarkers

_DONE: Final = {True: TransactionState.COMPLETE_COMMIT, False: TransactionState.COMPLETE_ABORT}


class End(NamedTuple):
    """An EndTxn request; its version determines `client_version`."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    is_commit: bool
    client_version: int


def end_transaction(shard: TransactionShard, request: End, token: Token, now: Moment) -> Outcome:
    """Decide a transaction, unless it is decided.

    Raises:
        KafkaError: See the table above; COORDINATOR_LOAD_IN_PROGRESS without a new id.
    """
    transaction = shard.find(request.transactional_id)
    has_new_epochs = request.client_version >= EPOCH_BUMP
    check = _check_with_new_epochs if has_new_epochs else _check
    if check(transaction, request):
        outcome = Outcome()
        final = transaction
    else:
        shard.check_client(request.client_version)
        prepared = transaction.prepared(
            is_commit=request.is_commit,
            now_ms=now.wall_ms,
            client_version=request.client_version,
            next_producer_id=_next_id(shard, transaction, request.client_version),
        )
        outcome = _decide(shard, prepared)
        final = prepared.completed(now_ms=now.wall_ms)
    final_producer = (final.producer_id, final.producer_epoch)
    producer_id, epoch = final_producer if has_new_epochs else (NO_PRODUCER_ID, NO_EPOCH)
    outcome.answer(
        token,
        {"error_code": ErrorCode.NONE, "producer_id": producer_id, "producer_epoch": epoch},
    )
    return outcome


def fence(shard: TransactionShard, transaction: Transaction, now: Moment) -> Outcome:
    """Abort an ongoing transaction in an epoch that fences its producer.

    Raises:
        KafkaError: COORDINATOR_LOAD_IN_PROGRESS without a new id.
    """
    assert transaction.state is TransactionState.ONGOING
    version = shard.transaction_version()
    if version < EPOCH_BUMP:
        return _decide(shard, transaction.fenced(now_ms=now.wall_ms))
    return _decide(
        shard,
        transaction.prepared(
            is_commit=False,
            now_ms=now.wall_ms,
            client_version=version,
            next_producer_id=_next_id(shard, transaction, version),
        ),
    )


def complete(shard: TransactionShard, written: WriteMarkers, now: Moment) -> Outcome:
    """Record that all markers are written, unless recorded before."""
    if not is_due(shard, written):
        return Outcome()
    transaction = shard.find(written.transactional_id)
    return shard.move(transaction.completed(now_ms=now.wall_ms))


def is_due(shard: TransactionShard, effect: WriteMarkers) -> bool:
    """Return whether these markers must still be written."""
    transaction = shard.get(effect.transactional_id)
    if transaction is None or not transaction.state.is_prepared:
        return False
    return shard.markers_of(transaction) == effect


def _decide(shard: TransactionShard, prepared: Transaction) -> Outcome:
    outcome = shard.move(prepared)
    outcome.effects.append(shard.markers_of(prepared))
    return outcome


def _next_id(shard: TransactionShard, transaction: Transaction, client_version: int) -> int:
    if client_version >= EPOCH_BUMP and transaction.is_epoch_exhausted:
        return shard.take_producer_id()
    return NO_PRODUCER_ID


def _check(transaction: Transaction, request: End) -> bool:
    """Return whether the transaction is decided as requested (TV0, TV1)."""
    if transaction.producer_id != request.producer_id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if transaction.producer_epoch != request.producer_epoch:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if transaction.state.is_prepared:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if transaction.state is TransactionState.ONGOING:
        return False
    if transaction.state is _DONE[request.is_commit]:
        return True
    raise KafkaError(ErrorCode.INVALID_TXN_STATE)


def _check_with_new_epochs(transaction: Transaction, request: End) -> bool:
    """Return whether the transaction is decided as requested (TV2).

    The current epoch means the next transaction, the previous one a retry.
    """
    state = transaction.state
    if state.is_prepared:
        # First, since the client may already have the next producer id.
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    # Otherwise another producer fenced the previous epoch and ended the transaction.
    has_new_epochs = transaction.client_version >= EPOCH_BUMP
    is_retry_of_last = (
        has_new_epochs
        and transaction.previous_producer_id == request.producer_id
        and request.producer_epoch == LAST_CLIENT_EPOCH
        and transaction.producer_epoch == 0
    )
    if transaction.producer_id != request.producer_id and not is_retry_of_last:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    is_complete = state in _DONE.values()
    is_retry = is_retry_of_last or (
        has_new_epochs and transaction.producer_epoch == request.producer_epoch + 1
    )
    is_present = transaction.producer_epoch == request.producer_epoch
    if not is_present and not (is_complete and is_retry):
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if state is TransactionState.ONGOING:
        return False
    if is_retry:
        if state is _DONE[request.is_commit]:
            return True
    elif not request.is_commit:
        return False
    raise KafkaError(ErrorCode.INVALID_TXN_STATE)
