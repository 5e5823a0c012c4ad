"""How a Produce waits until its records can be acknowledged.

    acks=1    until they are stored: on disk, if wirebroker.durability or flush.messages requires it
    acks=all  until they are committed. If fewer than min.insync.replicas are left then, the error
              is NOT_ENOUGH_REPLICAS_AFTER_APPEND

A request has an entry in the queue of each partition (response_queue.py). The entry leaves it when
the records are stored or committed, when the partition is lost, or at the request's timeout. The
response of a request on the full path (DelayedProduce) is encoded afterwards; on the fast path it
has been encoded before (deferred_produce.py).

Source: Kafka's DelayedProduce, Partition.checkEnoughReplicasReachOffset.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.hot.produce_response import PartitionResult  # noqa: TC001 - compiled tuples look for it
from wirebroker.replica.partition import Partition  # noqa: TC001 - compiled tuples look for it
from wirebroker.replica.replica_state import ACKS_ALL
from wirebroker.request.deferred_response import DeferredResponse, QueuedResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from wirebroker.replica.response_queue import ResponseQueue

# The least timeout for the local disk: Kafka's timeout does not cover syncs.
LEAST_WAIT_MS = 5_000


class WaitingRecords(QueuedResponse):
    """Records of one partition that cannot be acknowledged yet.

    Attributes:
        partition: Their partition.
    """

    __slots__ = ("_acks", "partition")

    def __init__(
        self, partition: Partition, acks: int, end_offset: int, answer: bytes, deadline_s: float
    ) -> None:
        super().__init__(answer, end_offset, deadline_s)
        self.partition = partition
        self._acks = acks

    def look(self) -> bool:
        """Return whether the records can be acknowledged, or never will be by this node."""
        partition = self.partition
        try:
            partition.check_leader()
        except KafkaError as error:
            self._refuse(error.code, is_withdrawn=True)
            return True
        if partition.acknowledged_offset(self._acks) < self.due_offset:
            return False
        if self._acks == ACKS_ALL and partition.lacks_replicas:
            self._refuse(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
        return True

    def give_up(self) -> None:
        """Time out; the records may still be committed."""
        self._refuse(ErrorCode.REQUEST_TIMED_OUT)

    def give_up_soon(self) -> None:
        """Wait only as long as other requests do for the disk."""
        if self.is_waiting:
            soon_s = asyncio.get_running_loop().time() + LEAST_WAIT_MS / 1000
            self.deadline_s = min(self.deadline_s, soon_s)
            self._queue.check_by(self)

    def join_queue(self) -> None:
        """Wait in the partition's queue."""
        self._queue.add(self)

    @property
    def _queue(self) -> ResponseQueue:
        return self.partition.deferred_responses(self._acks)

    def _refuse(self, code: ErrorCode, *, is_withdrawn: bool = False) -> None:
        raise NotImplementedError


class SeveralParts(DeferredResponse):
    """A request that waits in several partitions, until no part waits."""

    __slots__ = ("_parts", "_unsettled")

    # _unsettled is the number of parts that are queued or about to leave.

    def __init__(self, answer: bytes) -> None:
        super().__init__(answer)
        self._parts: list[Part] = []
        self._unsettled = 0

    def give_up_soon(self) -> None:
        """Wait only as long as other requests do for the disk."""
        for part in self._parts:
            part.give_up_soon()

    def settle_part(self) -> None:
        """Note that a part no longer waits."""
        self._unsettled -= 1
        if not self._unsettled:
            self._finish()

    def _finish(self) -> None:
        raise NotImplementedError


class Part(WaitingRecords):
    """One partition's part of a request.

    Attributes:
        fault: The error, and whether the records may not be in the log.
    """

    __slots__ = ("_owner", "fault")

    def __init__(
        self,
        owner: SeveralParts,
        partition: Partition,
        acks: int,
        end_offset: int,
        deadline_s: float,
    ) -> None:
        super().__init__(partition, acks, end_offset, b"", deadline_s)
        self._owner: SeveralParts | None = owner
        self.fault: tuple[ErrorCode, bool] | None = None

    def leave(self) -> None:
        """Notify the request, once."""
        owner, self._owner = self._owner, None  # breaks a reference cycle
        if owner is not None:
            owner.settle_part()

    def _refuse(self, code: ErrorCode, *, is_withdrawn: bool = False) -> None:
        self.fault = code, is_withdrawn


class Appended(NamedTuple):
    """One partition's part of a Produce."""

    partition: Partition
    result: PartitionResult
    end_offset: int  # after its last record
    is_acknowledged: bool  # when it was appended


class DelayedProduce(SeveralParts):
    """The wait of a request on the full path, which encodes its own response."""

    __slots__ = ("_appended", "_on_done")

    def __init__(
        self,
        appended: Sequence[Appended],
        *,
        acks: int,
        timeout_ms: int,
        on_done: Callable[[], None],
    ) -> None:
        """Start to wait; `on_done` is called when all results are final."""
        super().__init__(b"")
        assert acks in {1, ACKS_ALL}, acks
        self._appended = appended
        self._on_done = on_done
        deadline_s = asyncio.get_running_loop().time() + _timeout_s(appended, acks, timeout_ms)
        self._parts = [
            Part(self, partition, acks, end_offset, deadline_s)
            for partition, _, end_offset, _ in appended
        ]
        waiting = [
            part
            for part, append in zip(self._parts, appended, strict=True)
            # For acks=1, stored records stay acknowledged under a new leader, too. For acks=all,
            # enough replicas must be in sync until all parts are committed, as in Kafka.
            if not (append.is_acknowledged and acks != ACKS_ALL) and not part.look()
        ]
        self._unsettled = len(waiting)
        for part in waiting:
            part.join_queue()
        if not waiting:
            self._finish()

    def _finish(self) -> None:
        for part, (_, result, _, _) in zip(self._parts, self._appended, strict=True):
            if part.fault is not None:
                code, is_withdrawn = part.fault
                if is_withdrawn:
                    withdraw(result, code)
                else:
                    result.error_code = code
        self._parts = []
        self._on_done()


def _timeout_s(appended: Iterable[Appended], acks: int, timeout_ms: int) -> float:
    """Return the timeout, which is longer where only this node's disk is waited for."""
    if acks == ACKS_ALL:
        for partition, _, end_offset, _ in appended:
            leading = partition.leading
            is_alone = leading is None or leading.is_alone
            if not is_alone and partition.acknowledged_offset(acks) < end_offset:
                return max(0, timeout_ms) / 1000
    return max(LEAST_WAIT_MS, timeout_ms) / 1000


def withdraw(result: PartitionResult, code: ErrorCode) -> None:
    """Turn the result of records that may have been written into an error."""
    result.error_code = code
    result.base_offset = result.log_append_time_ms = result.log_start_offset = -1
