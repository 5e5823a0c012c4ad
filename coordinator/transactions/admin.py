"""DescribeTransactions and ListTransactions.

Source: Kafka's TransactionCoordinator.handleDescribeTransactions,
TransactionStateManager.listTransactionStates; KIP-664, KIP-994 for durations, KIP-1152 for
patterns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.transactions.metadata import STATES_BY_LABEL, TransactionState

if TYPE_CHECKING:
    from collections.abc import Collection, Generator

    from wirebroker.coordinator.transactions.metadata import Transaction
    from wirebroker.coordinator.transactions.shard import TransactionShard

NO_DURATION = -1

# Partitions between two yields.
_STEP = 64


class Pattern(Protocol):
    """A compiled regular expression."""

    def fullmatch(self, text: str, /) -> object | None:
        """Match the whole text."""
        ...


class Filters(NamedTuple):
    """The filters of ListTransactions; an empty one matches all.

    Attributes:
        states: States, possibly unknown ones.
        duration_ms: Minimum age of the transaction; negative: any.
        pattern: For the whole transactional id; None: any.
    """

    producer_ids: Collection[int] = ()
    states: Collection[str] = ()
    duration_ms: int = NO_DURATION
    pattern: Pattern | None = None

    def unknown_states(self) -> list[str]:
        """Return the unknown names in `states`."""
        return [state for state in self.states if state not in STATES_BY_LABEL]

    def admit(self, transaction: Transaction, wall_ms: int) -> bool:
        """Return whether a transaction matches."""
        if self.producer_ids and transaction.producer_id not in self.producer_ids:
            return False
        if self.states and transaction.state.label not in self.states:
            return False
        # Without a start, 1970 counts as the start, as in Kafka.
        if self.duration_ms >= 0 and wall_ms - transaction.start_ms <= self.duration_ms:
            return False
        return (
            self.pattern is None or self.pattern.fullmatch(transaction.transactional_id) is not None
        )


def list_transactions(
    shard: TransactionShard, filters: Filters, wall_ms: int
) -> Generator[None, None, list[dict[str, Any]]]:
    """Return the transactions of a ListTransactions response, in steps."""
    listed: list[dict[str, Any]] = []
    for transaction in tuple(shard.recorded.values()):
        if filters.admit(transaction, wall_ms):
            listed.append(
                {
                    "transactional_id": transaction.transactional_id,
                    "producer_id": transaction.producer_id,
                    "transaction_state": transaction.state.label,
                }
            )
        yield
    return listed


def describe(
    shard: TransactionShard, transactional_id: str
) -> Generator[None, None, dict[str, Any]]:
    """Return a transaction of a DescribeTransactions response, in steps.

    Raises:
        KafkaError: TRANSACTIONAL_ID_NOT_FOUND.
    """
    transaction = shard.recorded.get(transactional_id)
    if transaction is None:
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    by_topic: dict[str, list[int]] = {}
    if transaction.state is not TransactionState.EMPTY:
        for count, (topic, index) in enumerate(sorted(transaction.partitions), 1):
            by_topic.setdefault(topic, []).append(index)
            if count % _STEP == 0:
                yield
    return {
        "transactional_id": transactional_id,
        "transaction_state": transaction.state.label,
        "transaction_timeout_ms": transaction.timeout_ms,
        "transaction_start_time_ms": transaction.start_ms,
        "producer_id": transaction.producer_id,
        "producer_epoch": transaction.producer_epoch,
        "topics": [{"topic": topic, "partitions": ids} for topic, ids in by_topic.items()],
    }
