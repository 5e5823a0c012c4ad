"""A prepared Produce that waits for followers (hot path).

The response is complete when the records are appended, and is sent when they are committed. Only
an error of delayed_produce.py replaces it.

    one partition         the response is in its queue
    several partitions    each queue holds a part; the last part sends the response

Source: Kafka's DelayedProduce, Partition.checkEnoughReplicasReachOffset.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from wirebroker.api.data.delayed_produce import Part, SeveralParts, WaitingRecords, withdraw
from wirebroker.api.data.leader_endpoints import leader_endpoints
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.hot.produce import FIRST_FLEXIBLE, ProduceTopic
from wirebroker.codecs.hot.produce_response import PartitionResult, encode_produce
from wirebroker.net.frames.protocol import frame_answer
from wirebroker.replica.replica_state import ACKS_ALL
from wirebroker.request.session import Session

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wirebroker.api.broker import Broker
    from wirebroker.replica.partition import Partition
    from wirebroker.request.request import Request
    from wirebroker.storage.log.append import AppendResult

# The first version that names new leaders (KIP-951).
LEADER_VERSION: Final = 10


class ProduceKind:
    """The common fields of a connection's prepared requests, for error responses.

    Attributes:
        broker: The broker.
        version: The requests' version.
        topic: Its name and id.
        timeout_s: The timeout for followers.
    """

    __slots__ = ("_errors", "broker", "timeout_s", "topic", "version")

    def __init__(
        self, broker: Broker, request: Request, topic: tuple[str, bytes], timeout_ms: int
    ) -> None:
        self.broker = broker
        self.version = request.version
        self._errors = request.errors
        self.topic = topic
        self.timeout_s = max(0, timeout_ms) / 1000

    def answer(
        self,
        parts: Iterable[tuple[Partition, PartitionResult]],
        correlation_id: int,
        session: object,
    ) -> bytes:
        """Encode the results of `parts`, with the current leaders of lost partitions."""
        results: list[PartitionResult] = []
        leaders: set[int] = set()
        for partition, result in parts:
            results.append(result)
            if result.error_code:
                self._errors[result.error_code] += 1
            if (
                result.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
                and self.version >= LEADER_VERSION
            ):
                result.current_leader = (partition.leader, partition.leader_epoch)
                leaders.add(partition.leader)
        endpoints = []
        if leaders and isinstance(session, Session):
            endpoints = leader_endpoints(self.broker, session, leaders)
        topics: list[tuple[ProduceTopic, list[PartitionResult]]] = [
            (ProduceTopic(*self.topic, []), results)
        ]
        body = encode_produce(self.version, topics, node_endpoints=endpoints)
        (answer,) = frame_answer(correlation_id, [body], is_flexible=self.version >= FIRST_FLEXIBLE)
        assert isinstance(answer, bytes)
        return answer


class DeferredProduce(WaitingRecords):
    """A deferred response for one partition."""

    __slots__ = ("_correlation_id", "_done", "_kind")

    def __init__(
        self,
        kind: ProduceKind,
        partition: Partition,
        done: AppendResult,
        correlation_id: int,
        answer: bytes,
    ) -> None:
        deadline_s = asyncio.get_running_loop().time() + kind.timeout_s
        super().__init__(partition, ACKS_ALL, done.last_offset + 1, answer, deadline_s)
        self._kind = kind
        self._done = done
        self._correlation_id = correlation_id

    def _refuse(self, code: ErrorCode, *, is_withdrawn: bool = False) -> None:
        partition = self.partition
        result = _result(partition, self._done, code, is_withdrawn=is_withdrawn)
        parts = [(partition, result)]
        self.answer = self._kind.answer(parts, self._correlation_id, self.session)


class DeferredProduceOfSeveral(SeveralParts):
    """A deferred response for several partitions."""

    __slots__ = ("_appended", "_correlation_id", "_kind")

    def __init__(
        self,
        kind: ProduceKind,
        appended: Sequence[tuple[Partition, AppendResult]],
        correlation_id: int,
        answer: bytes,
    ) -> None:
        """Queue a part in each partition whose records are not committed."""
        super().__init__(answer)
        self._kind = kind
        self._correlation_id = correlation_id
        self._appended = appended
        deadline_s = asyncio.get_running_loop().time() + kind.timeout_s
        for partition, done in appended:
            if partition.log.high_watermark <= done.last_offset:
                part = Part(self, partition, ACKS_ALL, done.last_offset + 1, deadline_s)
                self._parts.append(part)
                part.join_queue()
        self._unsettled = len(self._parts)

    def _finish(self) -> None:
        if any(part.fault for part in self._parts) or not all(
            partition.directory.is_online for partition, _ in self._appended
        ):
            self.answer = self._kind.answer(self._results(), self._correlation_id, self.session)
        self.leave()

    def _results(self) -> Iterable[tuple[Partition, PartitionResult]]:
        faults = {part.partition.index: part.fault for part in self._parts}
        for partition, done in self._appended:
            fault = faults.get(partition.index)
            code, is_withdrawn = ErrorCode.NONE, False
            if not partition.directory.is_online:  # it has failed during the wait
                code, is_withdrawn = ErrorCode.KAFKA_STORAGE_ERROR, True
            elif fault is not None:
                code, is_withdrawn = fault
            yield partition, _result(partition, done, code, is_withdrawn=is_withdrawn)


def _result(
    partition: Partition, done: AppendResult, code: ErrorCode, *, is_withdrawn: bool
) -> PartitionResult:
    result = PartitionResult(
        partition.index,
        code,
        done.base_offset,
        done.log_append_time_ms,
        done.log_start_offset,
    )
    if is_withdrawn:
        withdraw(result, code)
    return result
