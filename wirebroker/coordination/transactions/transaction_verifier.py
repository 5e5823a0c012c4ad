"""Verifies with the transaction coordinator that a batch may begin a transaction (KIP-890).

    Support.DEFAULT_ERROR     Produce v3-10, TxnOffsetCommit v0-3    verify the partition
    Support.GENERIC_ERROR     Produce v11, TxnOffsetCommit v4        likewise
    Support.ADD_PARTITION     Produce v12-, TxnOffsetCommit v5-      add it; begin if necessary

Clients of DEFAULT_ERROR receive INVALID_TXN_STATE instead of TRANSACTION_ABORTABLE.

While the previous transaction is ending (CONCURRENT_TRANSACTIONS), adding is retried for at most
add.partitions.to.txn.retry.backoff.max.ms, because the client's own retry would take much longer.

Source: Kafka's AddPartitionsToTxnManager, ReplicaManager.handleProduceAppend.
"""

from __future__ import annotations

import asyncio
from enum import Enum
from typing import TYPE_CHECKING, Any, cast

from wirebroker.base.clock import pause
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.transactions import partitions as transaction_partitions
from wirebroker.coordinator.transactions.metadata import EPOCH_BUMP

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from wirebroker.base.clock import Clock
    from wirebroker.config import Config
    from wirebroker.coordination.transactions.remote_verification import RemoteVerification
    from wirebroker.coordination.transactions.transaction_coordinator import TransactionCoordinator
    from wirebroker.coordinator.transactions.metadata import TopicPartition
    from wirebroker.coordinator.transactions.partitions import Claim

    # The error of each partition of a claim, or NONE.
    Verdict = Mapping[TopicPartition, ErrorCode]


class Support(Enum):
    """A client's level of support for KIP-890."""

    DEFAULT_ERROR = 0
    GENERIC_ERROR = 1
    ADD_PARTITION = 2

    @classmethod
    def of_version(cls, version: int, *, generic_error: int, add_partition: int) -> Support:
        """Return the level of a request version, given the first version of each higher level."""
        if version >= add_partition:
            return cls.ADD_PARTITION
        return cls.GENERIC_ERROR if version >= generic_error else cls.DEFAULT_ERROR


class TransactionVerifier:
    """Verifies batches with the transaction coordinator."""

    __slots__ = (
        "_backoff_s",
        "_clock",
        "_is_verifying",
        "_longest_wait_s",
        "_remote",
        "_transactions",
    )

    def __init__(
        self,
        transactions: TransactionCoordinator,
        *,
        remote: RemoteVerification,
        clock: Clock,
        config: Config,
    ) -> None:
        self._transactions = transactions
        self._remote = remote
        self._clock = clock
        self.use_config(config)
        self._backoff_s = config.int("add.partitions.to.txn.retry.backoff.ms") / 1000
        self._longest_wait_s = config.int("add.partitions.to.txn.retry.backoff.max.ms") / 1000

    def use_config(self, config: Config) -> None:
        """Apply dynamic configs."""
        self._is_verifying = config.bool("transaction.partition.verification.enable")

    def ask(self, claim: Claim, support: Support) -> Verdict | Awaitable[Verdict]:
        """Return each partition's error, NONE if it may be appended to.

        Return an awaitable of them if the coordinator must be waited for.
        """
        is_adding = support is Support.ADD_PARTITION
        if not is_adding and not self._is_verifying:
            return dict.fromkeys(claim.partitions, ErrorCode.NONE)
        node_id = self._remote.coordinator(claim.transactional_id)
        if node_id is not None:
            return self._ask_remote(node_id, claim, support)
        if not is_adding:
            return self._verify(claim, support)
        verdict = self._add(claim)
        if isinstance(verdict, asyncio.Future) or _is_concurrent(verdict):
            return self._add_with_retries(claim, verdict)
        return verdict

    def _verify(self, claim: Claim, support: Support) -> Verdict:
        try:
            shard = self._transactions.shard_of(claim.transactional_id)
            errors = transaction_partitions.verify(shard, claim)
        except KafkaError as error:
            errors = dict.fromkeys(claim.partitions, error.code)
        return {partition: _client_error(error, support) for partition, error in errors.items()}

    def _add(self, claim: Claim) -> Verdict | asyncio.Future[Verdict]:
        def verdict(error: ErrorCode) -> dict[Any, Any]:
            return dict.fromkeys(claim.partitions, _client_error(error, Support.ADD_PARTITION))

        answer = self._transactions.submit(
            claim.transactional_id,
            transaction_partitions.add,
            claim,
            EPOCH_BUMP,
            on_error=verdict,
            finish=lambda response: verdict(response["error_code"]),
        )
        return cast("Verdict | asyncio.Future[Verdict]", answer)

    async def _ask_remote(self, node_id: int, claim: Claim, support: Support) -> Verdict:
        verify_only = support is not Support.ADD_PARTITION
        give_up_at = self._clock.monotonic() + self._longest_wait_s
        while True:
            results = await self._remote.ask(node_id, claim, verify_only=verify_only)
            errors = {
                partition: _client_error(error, support) for partition, error in results.items()
            }
            is_final = verify_only or not _is_concurrent(errors)
            if is_final or self._clock.monotonic() >= give_up_at:
                return errors
            await pause(self._backoff_s)

    async def _add_with_retries(
        self, claim: Claim, verdict: Verdict | asyncio.Future[Verdict]
    ) -> Verdict:
        give_up_at = self._clock.monotonic() + self._longest_wait_s
        while True:
            errors: Verdict = await verdict if isinstance(verdict, asyncio.Future) else verdict
            if not _is_concurrent(errors) or self._clock.monotonic() >= give_up_at:
                return errors
            await pause(self._backoff_s)
            verdict = self._add(claim)


def _is_concurrent(verdict: Verdict) -> bool:
    return ErrorCode.CONCURRENT_TRANSACTIONS in verdict.values()


def _client_error(error: ErrorCode, support: Support) -> ErrorCode:
    """Translate an error for the producer."""
    if error is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error is ErrorCode.TRANSACTION_ABORTABLE and support is Support.DEFAULT_ERROR:
        return ErrorCode.INVALID_TXN_STATE
    return error
