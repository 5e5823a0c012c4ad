"""Abort of timed-out transactions, and removal of unused transactional ids.

Both run at an interval, as in Kafka, so a transaction may outlast its timeout by
transaction.abort.timed.out.transaction.cleanup.interval.ms.

Source: Kafka's TransactionCoordinator.abortTimedOutTransactions,
TransactionStateManager.removeExpiredTransactionalIds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.coordinator_records import CoordinatorRecord
from wirebroker.codecs.transaction_records import transaction_key
from wirebroker.coordinator.outcome import Moment, Outcome
from wirebroker.coordinator.transactions.end import fence
from wirebroker.coordinator.transactions.metadata import TransactionState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirebroker.coordinator.transactions.shard import TransactionShard
    from wirebroker.storage.log.wall_clocks import ClockReading

# Ids per step: about 1 ms.
_STEP = 1_000

# Timeout of two-phase commit transactions, which never expire (KIP-939).
_NO_TIMEOUT_MS = 2**31 - 1


def timed_out(shard: TransactionShard, clocks: ClockReading) -> list[str]:
    """Return the ids of timed-out transactions, in a deterministic order."""
    return sorted(
        transactional_id
        for transactional_id in shard.ongoing
        if _is_overdue(shard, transactional_id, clocks)
    )


def abort_timed_out(
    shard: TransactionShard, transactional_id: str, clocks: ClockReading, now: Moment
) -> Outcome:
    """Abort a timed-out transaction, unless it has ended meanwhile.

    Raises:
        KafkaError: COORDINATOR_LOAD_IN_PROGRESS: no producer id is available.
    """
    if transactional_id not in shard.ongoing:
        return Outcome()
    if not _is_overdue(shard, transactional_id, clocks):
        return Outcome()
    return fence(shard, shard.find(transactional_id), now)


def _is_overdue(shard: TransactionShard, transactional_id: str, clocks: ClockReading) -> bool:
    transaction = shard.recorded[transactional_id]
    timeout_ms = transaction.timeout_ms
    if timeout_ms == _NO_TIMEOUT_MS:
        return False
    return clocks.age_ms(transaction.start_ms, kept_ms=timeout_ms) > timeout_ms


def sweep_expired(shard: TransactionShard, wall_ms: int) -> Iterator[Outcome]:
    """Delete unused ids, in steps."""
    transactional_ids = list(shard.recorded)
    last_ms = wall_ms - shard.settings.id_expiration_ms
    for start in range(0, len(transactional_ids), _STEP):
        records: list[CoordinatorRecord] = []
        for transactional_id in transactional_ids[start : start + _STEP]:
            transaction = shard.recorded.get(transactional_id)
            if (
                transaction is None
                or transaction.state.is_prepared
                or transaction.state is TransactionState.ONGOING
            ):
                continue
            if transaction.updated_ms <= last_ms:
                records.append(CoordinatorRecord(transaction_key(transactional_id), None))
        yield Outcome(records, is_atomic=False)
