"""Partitions of a transaction: added by the client or by Produce, and verified for older clients.

A partition is added before its first record is appended, so that a marker always follows. From
transaction.version 2 on the broker of the Produce request adds it; until then clients do
(AddPartitionsToTxn, AddOffsetsToTxn), and their batches are verified (KIP-890).

Source: Kafka's TransactionCoordinator.handleAddPartitionsToTransaction,
handleVerifyPartitionsInTransaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.outcome import Moment, Outcome, Token
from wirebroker.coordinator.transactions.metadata import TransactionState

if TYPE_CHECKING:
    from wirebroker.coordinator.transactions.metadata import TopicPartition, Transaction
    from wirebroker.coordinator.transactions.shard import TransactionShard


class Claim(NamedTuple):
    """Partitions that a producer writes to in a transaction."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: frozenset[TopicPartition]


def add(
    shard: TransactionShard, claim: Claim, client_version: int, token: Token, now: Moment
) -> Outcome:
    """Add partitions to the transaction, and begin it if necessary.

    Raises:
        KafkaError: The error for every partition.
    """
    transaction = shard.find(claim.transactional_id)
    if transaction.state.is_prepared:
        # First, since the client may already have the next producer id.
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    _check_producer(transaction, claim)
    shard.check_client(client_version)
    outcome = Outcome()
    if (
        transaction.state is not TransactionState.ONGOING
        or not claim.partitions <= transaction.partitions
    ):
        outcome = shard.move(
            transaction.with_partitions(
                claim.partitions, now_ms=now.wall_ms, client_version=client_version
            )
        )
    outcome.answer(token, {"error_code": ErrorCode.NONE})
    return outcome


def verify(shard: TransactionShard, claim: Claim) -> dict[TopicPartition, ErrorCode]:
    """Return for each partition whether it is in the transaction.

    Raises:
        KafkaError: The error for every partition.
    """
    transaction = shard.find(claim.transactional_id)
    _check_producer(transaction, claim)
    if transaction.state.is_prepared:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    return {
        partition: ErrorCode.NONE
        if partition in transaction.partitions
        else ErrorCode.TRANSACTION_ABORTABLE
        for partition in claim.partitions
    }


def _check_producer(transaction: Transaction, claim: Claim) -> None:
    if transaction.producer_id != claim.producer_id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if transaction.producer_epoch != claim.producer_epoch:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
