"""A prepared Produce to one partition that waits for followers (hot path).

Its answer is filled in when the records are appended, and leaves as it is when they are committed.
Only what goes wrong has it put together anew, as for a request that went the whole way
(delayed_produce.py): the partition is led elsewhere or its disk has failed, too few are in sync by
now, or its time is over.

Source: Kafka's DelayedProduce, Partition.checkEnoughReplicasReachOffset.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from wirebroker.api.delayed_produce import LEAST_WAIT_MS, withdraw
from wirebroker.api.leader_endpoints import leader_endpoints
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.hot.produce import FIRST_FLEXIBLE, ProduceTopic
from wirebroker.codecs.hot.produce_response import PartitionResult, encode_produce
from wirebroker.net.protocol import frame_answer
from wirebroker.owed_answer import OwedAnswer
from wirebroker.session import Session

if TYPE_CHECKING:
    from wirebroker.broker import Broker
    from wirebroker.cluster.partition import Partition
    from wirebroker.storage.log.append import AppendResult

# From this version on an answer names who leads instead (KIP-951).
LEADER_VERSION: Final = 10


class ProduceKind:
    """What a connection's prepared requests have in common, for answers that tell of a fault.

    Attributes:
        broker: Which serves them.
        version: Of the requests.
        topic: Its name and its id.
        timeout_s: For how long they wait for followers.
    """

    __slots__ = ("broker", "timeout_s", "topic", "version")

    def __init__(
        self, broker: Broker, version: int, topic: tuple[str, bytes], timeout_ms: int
    ) -> None:
        self.broker = broker
        self.version = version
        self.topic = topic
        self.timeout_s = max(0, timeout_ms) / 1000


class OwedProduce(OwedAnswer):
    """One such request."""

    __slots__ = ("_correlation_id", "_done", "_kind", "_partition")

    def __init__(
        self,
        kind: ProduceKind,
        partition: Partition,
        done: AppendResult,
        correlation_id: int,
        answer: bytes,
    ) -> None:
        deadline_s = asyncio.get_running_loop().time() + kind.timeout_s
        super().__init__(answer, done.last_offset + 1, deadline_s)
        self._kind = kind
        self._partition = partition
        self._done = done
        self._correlation_id = correlation_id

    def look(self) -> bool:
        """Tell whether the records may be acknowledged, or will not be by this node."""
        partition = self._partition
        try:
            partition.check_leader()
        except KafkaError as error:
            self._refuse(error.code, is_withdrawn=True)
            return True
        if partition.log.high_watermark < self.due_offset:
            return False
        if partition.lacks_replicas:
            self._refuse(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
        return True

    def give_up(self) -> None:
        """Say that they are not committed by now: perhaps they will be."""
        self._refuse(ErrorCode.REQUEST_TIMED_OUT)

    def give_up_soon(self) -> None:
        """Wait no longer than others do for the disk."""
        if self.is_waiting:
            soon_s = asyncio.get_running_loop().time() + LEAST_WAIT_MS / 1000
            self.deadline_s = min(self.deadline_s, soon_s)
            self._partition.owed.hurry(self)

    def _refuse(self, code: ErrorCode, *, is_withdrawn: bool = False) -> None:
        kind, partition, done = self._kind, self._partition, self._done
        result = PartitionResult(
            partition.index,
            code,
            done.base_offset,
            done.log_append_time_ms,
            done.log_start_offset,
        )
        if is_withdrawn:
            withdraw(result, code)
        endpoints = []
        if code == ErrorCode.NOT_LEADER_OR_FOLLOWER and kind.version >= LEADER_VERSION:
            result.current_leader = (partition.leader, partition.leader_epoch)
            if isinstance(self.session, Session):
                endpoints = leader_endpoints(kind.broker, self.session, {partition.leader})
        topics: list[tuple[ProduceTopic, list[PartitionResult]]] = [
            (ProduceTopic(*kind.topic, []), [result])
        ]
        body = encode_produce(kind.version, topics, node_endpoints=endpoints)
        (answer,) = frame_answer(
            self._correlation_id, [body], is_flexible=kind.version >= FIRST_FLEXIBLE
        )
        assert isinstance(answer, bytes)
        self.answer = answer
