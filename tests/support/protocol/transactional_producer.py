"""The state of a transactional producer, which makes requests that other code sends.

    InitProducerId -> [AddPartitionsToTxn] Produce, [AddOffsetsToTxn] TxnOffsetCommit, EndTxn

The caller sends each Ask (over a socket, in a simulation, with retries) and passes the responses of
InitProducerId and EndTxn back. With transaction.version 2, clients do not send the requests in
brackets and get a new epoch from each EndTxn (KIP-890).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.support.protocol.requests import produce_request
from tests.support.records.batches import TIMESTAMP_MS, batch
from wirebroker.base.clock import pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

NOBODY = (-1, -1)

# The coordinator moved or does not exist yet; FindCoordinator also creates its topic.
LOOK_AGAIN = {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE}
# Errors that a transactional client retries.
AGAIN = {
    *LOOK_AGAIN,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_ENOUGH_REPLICAS,  # the coordinator that verifies a Produce is loading
}
_GROUP_KEY, _TRANSACTION_KEY = 0, 1
_PATIENCE_S = 30.0


class Versions(NamedTuple):
    """The request versions of one client generation."""

    init: int
    produce: int
    commit_offsets: int
    end: int
    adds: bool  # sends AddPartitionsToTxn and AddOffsetsToTxn


# Before KIP-890; with TRANSACTION_ABORTABLE, for transaction.version 0 and 1; for 2.
OLD_AGES = (Versions(4, 9, 3, 3, adds=True), Versions(5, 11, 4, 4, adds=True))
NEW_AGE = Versions(5, 12, 5, 5, adds=False)


class Ask(NamedTuple):
    """A request: the arguments of a raw client's `ask`."""

    key: ApiKey
    version: int
    request: dict[str, Any]


class TransactionalProducer:
    """The producer of one transactional id.

    Attributes:
        name: The id.
        versions: The request versions.
        timeout_ms: The transaction timeout.
        producer: Producer id and epoch.
        sequences: The next sequence by topic and partition, if not 0.
    """

    def __init__(
        self, name: str, versions: Versions = NEW_AGE, *, timeout_ms: int = 60_000
    ) -> None:
        self.name = name
        self.versions = versions
        self.timeout_ms = timeout_ms
        self.producer = NOBODY
        self.sequences: dict[tuple[str, int], int] = {}

    def become(self, answer: Any) -> None:
        """Take the producer id and epoch of a response, and reset all sequences."""
        self.producer = answer.producer_id, answer.producer_epoch
        self.sequences.clear()

    def ended(self, answer: Any) -> None:
        """Take the new epoch of an EndTxn response, if its version has one."""
        if not self.versions.adds:
            self.become(answer)

    async def begin(
        self, ask: Callable[[ApiKey, int, Any], Awaitable[Any]], *, has_group: bool = False
    ) -> None:
        """Find the coordinator and initialize the producer id, with retries.

        Args:
            ask: Sends a request and returns the response, like a raw client's `ask`.
            has_group: Whether to find the coordinator of the group of the same name too.

        Raises:
            TimeoutError: The coordinator was not ready in time.
        """
        async with asyncio.timeout(_PATIENCE_S):
            while True:
                answer = await ask(*self.init())
                if answer.error_code not in AGAIN:
                    break
                for find in coordinators_of(self.name)[: 1 + has_group]:
                    await ask(*find)
                await pause(0.001)
        assert answer.error_code == ErrorCode.NONE, answer
        self.become(answer)

    # -- requests --------------------------------------------------------------------------------

    def init(self) -> Ask:
        """Fence earlier producers; pass the response to `become`."""
        request = {
            "transactional_id": self.name,
            "transaction_timeout_ms": self.timeout_ms,
        }
        return Ask(ApiKey.INIT_PRODUCER_ID, self.versions.init, request)

    def appending(
        self, values: Mapping[tuple[str, int], Sequence[bytes]], *, timestamp_ms: int = TIMESTAMP_MS
    ) -> list[Ask]:
        """Return the requests that append a batch to each partition; the last is Produce."""
        asks = []
        if self.versions.adds:
            topics: dict[str, list[int]] = {}
            for topic, index in values:
                topics.setdefault(topic, []).append(index)
            asks = [self.add_partitions(topic, indexes) for topic, indexes in topics.items()]
        return [*asks, self.produce(values, timestamp_ms=timestamp_ms)]

    def add_partitions(self, topic: str, indexes: Iterable[int]) -> Ask:
        request = {f"v3_and_below_{name}": value for name, value in self._identity().items()}
        request["v3_and_below_topics"] = [{"name": topic, "partitions": list(indexes)}]
        return Ask(ApiKey.ADD_PARTITIONS_TO_TXN, 3, request)

    def produce(
        self, values: Mapping[tuple[str, int], Sequence[bytes]], *, timestamp_ms: int = TIMESTAMP_MS
    ) -> Ask:
        records = {
            topic_partition: self.next_batch(
                *topic_partition, partition_values, timestamp_ms=timestamp_ms
            )
            for topic_partition, partition_values in values.items()
        }
        request = produce_request(records, transactional_id=self.name)
        return Ask(ApiKey.PRODUCE, self.versions.produce, request)

    def next_batch(
        self, topic: str, index: int, values: Sequence[bytes], *, timestamp_ms: int = TIMESTAMP_MS
    ) -> bytes:
        """Return a partition's next batch and advance its sequence."""
        sequence = self.sequences.get((topic, index), 0)
        self.sequences[topic, index] = sequence + len(values)
        producer_id, epoch = self.producer
        return batch(
            *values,
            timestamp_ms=timestamp_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            is_transactional=True,
        )

    def committing(
        self, member: Mapping[str, Any], topic: str, offsets: Mapping[int, int]
    ) -> list[Ask]:
        """Return the requests that commit offsets; the last is TxnOffsetCommit."""
        asks = [self.add_group(member["group_id"])] if self.versions.adds else []
        return [*asks, self.commit_offsets(member, topic, offsets)]

    def add_group(self, group: str) -> Ask:
        request = {**self._identity(), "group_id": group}
        return Ask(ApiKey.ADD_OFFSETS_TO_TXN, 3, request)

    def commit_offsets(
        self, member: Mapping[str, Any], topic: str, offsets: Mapping[int, int]
    ) -> Ask:
        partitions = [
            {"partition_index": index, "committed_offset": offset, "committed_metadata": ""}
            for index, offset in offsets.items()
        ]
        topics = [{"name": topic, "partitions": partitions}]
        request = {**self._identity(), **member, "topics": topics}
        return Ask(ApiKey.TXN_OFFSET_COMMIT, self.versions.commit_offsets, request)

    def end(self, *, is_commit: bool) -> Ask:
        """Commit or abort; pass the response to `ended`."""
        request = {**self._identity(), "committed": is_commit}
        return Ask(ApiKey.END_TXN, self.versions.end, request)

    def _identity(self) -> dict[str, Any]:
        producer_id, epoch = self.producer
        return {
            "transactional_id": self.name,
            "producer_id": producer_id,
            "producer_epoch": epoch,
        }


def coordinators_of(name: str) -> list[Ask]:
    return [
        Ask(ApiKey.FIND_COORDINATOR, 1, {"key": name, "key_type": key_type})
        for key_type in (_TRANSACTION_KEY, _GROUP_KEY)
    ]


def error_of(key: ApiKey, answer: Any) -> int:
    """Return the first error of a response, or 0."""
    match key:
        case ApiKey.PRODUCE:
            errors = [partition.error_code for partition in answer.responses[0].partition_responses]
        case ApiKey.ADD_PARTITIONS_TO_TXN:
            (topic,) = answer.results_by_topic_v3_and_below
            errors = [partition.partition_error_code for partition in topic.results_by_partition]
        case ApiKey.TXN_OFFSET_COMMIT:
            errors = [partition.error_code for partition in answer.topics[0].partitions]
        case ApiKey.OFFSET_FETCH:
            errors = [answer.error_code]
            errors += [
                partition.error_code for topic in answer.topics for partition in topic.partitions
            ]
        case ApiKey.FETCH:
            errors = [answer.error_code]
            errors += [
                partition.error_code for topic in answer.responses for partition in topic.partitions
            ]
        case _:
            errors = [answer.error_code]
    return int(next(filter(None, errors), 0))
