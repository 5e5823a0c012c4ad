"""A Produce that waits until what it appended is committed: the high watermark has passed it.

Nothing but callbacks: no task is made. Each partition tells when its high watermark moves or when
it goes; the last one to be settled, or the request's own timeout, completes the wait.

With one replica records are committed at once, unless they must be on the disk first
(wirebroker.durability, flush.messages). Replicas to come move the same high watermark.

Source: Kafka's DelayedProduce.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirebroker.cluster.partition import Partition  # noqa: TC001 - compiled tuples look for it
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.produce_response import PartitionResult  # noqa: TC001 - compiled tuples look for it

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from wirebroker.cluster.deadlines import Deadlines


# A timeout that is shorter does not count for our own disk: Kafka does not count its syncs at all.
LEAST_WAIT_MS = 5_000


class Appended(NamedTuple):
    """What one partition's part of a Produce has to wait for."""

    partition: Partition
    result: PartitionResult
    end_offset: int  # behind its last record

    @property
    def is_committed(self) -> bool:
        """Whether it may be acknowledged."""
        return self.partition.log.high_watermark >= self.end_offset


class DelayedProduce:
    """The wait of one Produce."""

    __slots__ = ("_deadline", "_deadlines", "_on_done", "_waits")

    def __init__(
        self,
        appended: Iterable[Appended],
        *,
        timeout_ms: int,
        deadlines: Deadlines,
        on_done: Callable[[], None],
    ) -> None:
        """Begin to wait; `on_done` is called when every result says what became of its records."""
        self._on_done = on_done
        self._waits: set[_Wait] = set()
        for each in appended:
            if not each.is_committed:
                wait = _Wait(self, each)
                self._waits.add(wait)
                each.partition.watch(wait)
        self._deadlines = deadlines
        self._deadline = deadlines.add(self._give_up, delay_s=max(LEAST_WAIT_MS, timeout_ms) / 1000)
        if not self._waits:
            self._settle()
        for wait in tuple(self._waits):
            wait()  # its disk may have failed before

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
            if not self.appended.is_committed:
                return
        self._owner.settled(self)


def withdraw(result: PartitionResult, code: ErrorCode) -> None:
    """Say of records that were perhaps written that they are not acknowledged."""
    result.error_code = code
    result.base_offset = result.log_append_time_ms = result.log_start_offset = -1
