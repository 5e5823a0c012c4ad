"""A Produce that waits until what it appended may be acknowledged.

    acks=1    until it is stored here: on the disk, where wirebroker.durability or flush.messages
              demand that
    acks=all  until it is committed: every in-sync replica has it. Then fewer than
              min.insync.replicas may be left, which is told (NOT_ENOUGH_REPLICAS_AFTER_APPEND)

Nothing but callbacks: no task is made. Each partition tells when what is stored moves, or when the
records in question are committed, or when it is served no more; the last one to be settled, or the
request's own timeout, completes the wait.

Source: Kafka's DelayedProduce, Partition.checkEnoughReplicasReachOffset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.hot.produce_response import PartitionResult  # noqa: TC001 - compiled tuples look for it
from wirebroker.replica.partition import Partition  # noqa: TC001 - compiled tuples look for it
from wirebroker.replica.replica_standing import ACKS_ALL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from wirebroker.replica.deadlines import Deadlines


# A timeout that is shorter does not count for our own disk: Kafka does not count its syncs at all.
LEAST_WAIT_MS = 5_000


class Appended(NamedTuple):
    """What one partition's part of a Produce has to wait for."""

    partition: Partition
    result: PartitionResult
    end_offset: int  # behind its last record


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
        """Begin to wait; `on_done` is called when every result says what became of its records."""
        assert acks in {1, ACKS_ALL}, acks
        self._acks = acks
        self._on_done = on_done
        self._waits: set[_Wait] = set()
        waits_for_others = False
        for each in appended:
            wait = _Wait(self, each)
            if not wait.is_over(acks):
                self._waits.add(wait)
                leading = each.partition.leading
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
            wait()  # watches; its disk may have failed before

    @property
    def acks(self) -> int:
        """What the request asks for."""
        return self._acks

    def give_up_soon(self) -> None:
        """Wait no longer than for our own disk: nobody may be there to hear of more."""
        if self._waits:
            self._deadlines.discard(self._deadline)
            self._deadline = self._deadlines.add(self._give_up, delay_s=LEAST_WAIT_MS / 1000)

    def settled(self, wait: _Wait) -> None:
        """Note that one of the parts waits no more."""
        wait.appended.partition.unwatch(wait)
        self._waits.discard(wait)
        self._settle()

    def _settle(self) -> None:
        if not self._waits:
            self._deadlines.discard(self._deadline)
            self._on_done()

    def _give_up(self) -> None:
        """Answer what is not committed by now: perhaps it will be."""
        for wait in tuple(self._waits):
            wait.appended.result.error_code = ErrorCode.REQUEST_TIMED_OUT
            self.settled(wait)


class _Wait:
    """One part; called when there is news of its partition."""

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
        """Tell whether the records may be acknowledged, or too few replicas are left for that."""
        partition, result, end_offset = self.appended
        if partition.acknowledged_offset(acks) < end_offset:
            return False
        if acks == ACKS_ALL and partition.lacks_replicas:
            result.error_code = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return True


def withdraw(result: PartitionResult, code: ErrorCode) -> None:
    """Say of records that were perhaps written that they are not acknowledged."""
    result.error_code = code
    result.base_offset = result.log_append_time_ms = result.log_start_offset = -1
