"""A Produce that waits until its records can be acknowledged.

    acks=1    until they are stored: on disk, if wirebroker.durability or flush.messages requires it
    acks=all  until they are committed. If fewer than min.insync.replicas are left then, the error
              is NOT_ENOUGH_REPLICAS_AFTER_APPEND

It uses callbacks instead of a task: a partition calls back when records are stored or committed, or
when it is no longer served. The last part, or the request's timeout, ends the wait.

Source: Kafka's DelayedProduce, Partition.checkEnoughReplicasReachOffset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.hot.produce_response import PartitionResult  # noqa: TC001 - compiled tuples look for it
from wirebroker.replica.partition import Partition  # noqa: TC001 - compiled tuples look for it
from wirebroker.replica.replica_state import ACKS_ALL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from wirebroker.replica.deadlines import Deadlines


# The least timeout for the local disk: Kafka's timeout does not cover syncs.
LEAST_WAIT_MS = 5_000


class Appended(NamedTuple):
    """One partition's part of a Produce."""

    partition: Partition
    result: PartitionResult
    end_offset: int  # after its last record


class DelayedProduce:
    """The wait of one Produce."""

    __slots__ = ("_acks", "_deadline", "_deadlines", "_on_done", "_waits")

    def __init__(
        self,
        appended: Iterable[Appended],
        *,
        acks: int,
        timeout_ms: int,
        deadlines: Deadlines,
        on_done: Callable[[], None],
    ) -> None:
        """Start to wait; `on_done` is called when all results are final."""
        assert acks in {1, ACKS_ALL}, acks
        self._acks = acks
        self._on_done = on_done
        self._waits: set[_Wait] = set()
        waits_for_others = False
        for append in appended:
            wait = _Wait(self, append)
            if not wait.is_over(acks):
                self._waits.add(wait)
                leading = append.partition.leading
                waits_for_others |= (
                    acks == ACKS_ALL and leading is not None and not leading.is_alone
                )
        if not waits_for_others:
            timeout_ms = max(LEAST_WAIT_MS, timeout_ms)
        self._deadlines = deadlines
        self._deadline = deadlines.add(self._give_up, delay_s=max(0, timeout_ms) / 1000)
        if not self._waits:
            self._settle()
        for wait in tuple(self._waits):
            wait()  # starts to watch; the disk may already have failed

    @property
    def acks(self) -> int:
        """The acks of the request."""
        return self._acks

    def give_up_soon(self) -> None:
        """Wait only for the disk, because the client may have disconnected."""
        if self._waits:
            self._deadlines.discard(self._deadline)
            self._deadline = self._deadlines.add(self._give_up, delay_s=LEAST_WAIT_MS / 1000)

    def settled(self, wait: _Wait) -> None:
        """Note that a part no longer waits."""
        wait.appended.partition.unwatch(wait)
        self._waits.discard(wait)
        self._settle()

    def _settle(self) -> None:
        if not self._waits:
            self._deadlines.discard(self._deadline)
            self._on_done()

    def _give_up(self) -> None:
        """Time out; uncommitted records may still be committed."""
        for wait in tuple(self._waits):
            wait.appended.result.error_code = ErrorCode.REQUEST_TIMED_OUT
            self.settled(wait)


class _Wait:
    """The wait of one part; called back by its partition."""

    __slots__ = ("_owner", "appended")

    def __init__(self, owner: DelayedProduce, appended: Appended) -> None:
        self._owner = owner
        self.appended = appended

    def __call__(self) -> None:
        try:
            self.appended.partition.check_leader()
        except KafkaError as error:
            withdraw(self.appended.result, error.code)
        else:
            acks = self._owner.acks
            if not self.is_over(acks):
                self._watch(acks)
                return
        self._owner.settled(self)

    def _watch(self, acks: int) -> None:
        partition, _, end_offset = self.appended
        if acks == ACKS_ALL:
            partition.watch_commit(self, offset=end_offset)
        else:
            partition.watch(self)

    def is_over(self, acks: int) -> bool:
        """Return whether the records can be acknowledged, or too few replicas are left."""
        partition, result, end_offset = self.appended
        if partition.acknowledged_offset(acks) < end_offset:
            return False
        if acks == ACKS_ALL and partition.lacks_replicas:
            result.error_code = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return True


def withdraw(result: PartitionResult, code: ErrorCode) -> None:
    """Turn the result of records that may have been written into an error."""
    result.error_code = code
    result.base_offset = result.log_append_time_ms = result.log_start_offset = -1
