"""TxnOffsetCommit: stores a group's offsets as part of a transaction.

v2 COORDINATOR_LOAD_IN_PROGRESS (KAFKA-7296), v3 the producer's member (KIP-447), v4
TRANSACTION_ABORTABLE, v5 without AddOffsetsToTxn (KIP-890), v6 topic ids instead of names,
GROUP_ID_NOT_FOUND (KIP-1319).

Source: Kafka's KafkaApis.handleTxnOffsetCommitRequest, GroupCoordinatorService.
commitTransactionalOffsets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from wirebroker.api.groups.chunked_commit import (
    Topics,
    Valid,
    are_many,
    chunked_commits,
    merged,
    names_many,
    sort_topics,
    with_error,
)
from wirebroker.api.groups.group_errors import response_of
from wirebroker.api.registry import handles
from wirebroker.base.clock import Slices, begun, in_one_go, next_turn
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.permissions import READ_GROUP, READ_TOPIC, WRITE_TRANSACTIONAL_ID
from wirebroker.coordination.transactions.transaction_verifier import Support
from wirebroker.coordinator.groups.partitions import CONSUMER_OFFSETS
from wirebroker.coordinator.groups.shard import txn_offsets as group_txn_offsets
from wirebroker.coordinator.groups.shard.txn_offsets import TxnCommit
from wirebroker.coordinator.transactions.partitions import Claim
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from wirebroker.api.broker import Broker
    from wirebroker.base.clock import Steps
    from wirebroker.replica.partition import Partition
    from wirebroker.request.request import Request
    from wirebroker.storage.log.producers.verification import VerificationGuard

    Response = Mapping[str, Any]

_FIRST_LOADING_VERSION = 2
_FIRST_GENERIC_ERROR_VERSION = 4
_FIRST_ADDING_VERSION = 5
_FIRST_TOPIC_ID_VERSION = 6
_NO_SEQUENCE = -1

# The coordinator is not ready.
_AS_COORDINATOR_ERROR = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
}
# Older clients retry only after this without a new coordinator lookup.
_AS_LOADING = {ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}


@handles(
    ApiKey.TXN_OFFSET_COMMIT,
    permissions=(WRITE_TRANSACTIONAL_ID, READ_GROUP, READ_TOPIC),
    cost=Cost.LOG,
)
def txn_offset_commit(
    broker: Broker, request: Request, body: Any
) -> Response | Awaitable[Response]:
    """Store the offsets of existing partitions, pending until the transaction ends."""
    commit = _TxnOffsetCommit(broker, request.version, body)
    if names_many(body.topics):
        return commit.serve_later()
    in_one_go(commit.sort())
    return commit.serve()


class _TxnOffsetCommit:
    __slots__ = ("_body", "_broker", "_by_id", "_refused", "_valid", "_version")

    def __init__(self, broker: Broker, version: int, body: Any) -> None:
        self._broker = broker
        self._version = version
        self._body = body
        self._by_id = version >= _FIRST_TOPIC_ID_VERSION
        self._valid: Valid = []
        self._refused: Topics = []

    async def serve_later(self) -> Response:
        await Slices(self._broker.clock).run(self.sort())
        return await response_of(self.serve())

    def sort(self) -> Steps[None]:
        self._valid, self._refused = yield from sort_topics(
            self._broker.metadata.image, self._body.topics, by_id=self._by_id
        )

    def serve(self) -> Response | Awaitable[Response]:
        if not self._valid:
            return {"topics": self._refused}
        if not self._body.group_id:
            return self._refuse(ErrorCode.INVALID_GROUP_ID)
        try:
            guard = self._begin()
        except KafkaError as error:
            return self._refuse(_AS_COORDINATOR_ERROR.get(error.code, error.code))
        if guard is None:
            return self._commit(None)
        verdict = self._broker.transaction_verifier.ask(self._claim(), _support(self._version))
        if isinstance(verdict, Mapping):
            (error_code,) = verdict.values()
            return self._commit(guard) if error_code is ErrorCode.NONE else self._refuse(error_code)
        return self._commit_later(guard, verdict)

    async def _commit_later(self, guard: VerificationGuard, verdict: Awaitable[Any]) -> Response:
        errors: Mapping[Any, ErrorCode] = await verdict
        (error,) = errors.values()
        if error is not ErrorCode.NONE:
            return await response_of(self._refuse(_AS_LOADING.get(error, error)))
        return await response_of(self._commit(guard))

    def _begin(self) -> VerificationGuard | None:
        """Return a guard for the transaction's start here."""
        partition = self._partition()
        partition.check_leader()
        body = self._body
        return partition.log.producer_state.begin_verification(
            body.producer_id,
            sequence=_NO_SEQUENCE,
            producer_epoch=body.producer_epoch,
            supports_epoch_bump=self._version >= _FIRST_ADDING_VERSION,
            now_ms=self._broker.clock.now_ms(),
        )

    def _partition(self) -> Partition:
        partitions, _ = self._broker.replicas.find(CONSUMER_OFFSETS, b"", by_id=False)
        partition = partitions.get(self._broker.groups.partition_for(self._body.group_id))
        if partition is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return partition

    def _claim(self) -> Claim:
        body = self._body
        group_partition = (CONSUMER_OFFSETS, self._broker.groups.partition_for(body.group_id))
        return Claim(
            body.transactional_id,
            body.producer_id,
            body.producer_epoch,
            frozenset({group_partition}),
        )

    def _commit(self, guard: VerificationGuard | None) -> Response | Awaitable[Response]:
        if are_many(self._valid):
            return self._commit_in_parts(guard)
        return self._broker.groups.submit(
            self._body.group_id,
            group_txn_offsets.commit,
            TxnCommit(self._body, self._version, self._valid),
            on_error=lambda error: in_one_go(self._failed(error)),
            finish=lambda answer: in_one_go(self._merged(answer["topics"])),
            guard=guard,
        )

    async def _commit_in_parts(self, guard: VerificationGuard | None) -> Response:
        """Store many offsets; an error in one part is for all, so that the client aborts."""
        topics: Topics = []
        for part in chunked_commits(self._valid):
            answer = self._broker.groups.submit(
                self._body.group_id,
                group_txn_offsets.commit,
                TxnCommit(self._body, self._version, part),
                on_error=lambda error: {"refused": error},
                guard=guard,
            )
            stored = await response_of(answer)
            if "refused" in stored:
                return await response_of(self._refuse(stored["refused"]))
            topics += stored["topics"]
            await next_turn()
        return await Slices(self._broker.clock).run(self._merged(topics))

    def _refuse(self, error: ErrorCode) -> Response | Awaitable[Response]:
        return begun(self._failed(error), self._broker.clock)

    def _failed(self, error: ErrorCode) -> Steps[Response]:
        is_unknown = self._version < _FIRST_LOADING_VERSION
        if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and is_unknown:
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        if self._by_id:
            return (yield from self._merged((yield from with_error(self._valid, error))))
        # As in Kafka, for all partitions, even those that do not exist.
        requested = [(topic.name, topic.topic_id, topic.partitions) for topic in self._body.topics]
        return {"topics": (yield from with_error(requested, error))}

    def _merged(self, stored: Topics) -> Steps[Response]:
        key = "topic_id" if self._by_id else "name"
        return {"topics": (yield from merged(self._refused, stored, key))}


def _support(version: int) -> Support:
    return Support.of_version(
        version, generic_error=_FIRST_GENERIC_ERROR_VERSION, add_partition=_FIRST_ADDING_VERSION
    )
