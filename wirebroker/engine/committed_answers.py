"""Answers and effects that wait until what they rest on is committed, in order.

Those of a result without records wait for what was appended before it, so that nobody is shown what
may still be lost. An answer is given up after a while (perhaps its records are committed later), an
effect never.

Source: Kafka's CoordinatorRuntime (DeferredEventQueue, CoordinatorTimer of a write).
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from wirebroker.codecs.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from wirebroker.base.clock import Clock
    from wirebroker.codecs.errors import ErrorCode
    from wirebroker.coordinator.machine import MachineLog
    from wirebroker.coordinator.outcome import Answer


class AnswerErrors(NamedTuple):
    """What those are told who get no answer."""

    # This node leads no more: who asks again finds somebody else.
    resigned: ErrorCode
    # The disk has failed under an append.
    disk: ErrorCode
    # It takes longer than anybody should wait. None: whoever asks knows how long to wait.
    late: ErrorCode | None = None


class _Deferred(NamedTuple):
    """What waits for the log's `committed_offset`."""

    end_offset: int
    # None: it was given up, and only the effects are left; or nobody gives up here.
    give_up_at: float | None
    answers: Sequence[Answer]
    effects: Sequence[Any]


class CommittedAnswers:
    """What waits for one log.

    Attributes:
        is_held: Whether nothing may leave now; whoever sets it looks at `is_due` when it is over.
        is_due: Whether something has become free meanwhile: see `release`.
    """

    __slots__ = (
        "_clock",
        "_deferred",
        "_errors",
        "_log",
        "_on_effect",
        "_timeout",
        "_timeout_s",
        "is_due",
        "is_held",
    )

    # _deferred rises by end_offset; the log is watched exactly while it holds something.

    def __init__(
        self,
        log: MachineLog,
        clock: Clock,
        *,
        timeout_s: float,
        errors: AnswerErrors,
        on_effect: Callable[[Any], None],
    ) -> None:
        self._log = log
        self._clock = clock
        self._timeout_s = timeout_s
        self._errors = errors
        self._on_effect = on_effect
        self._deferred: deque[_Deferred] = deque()
        self._timeout: asyncio.TimerHandle | None = None
        self.is_held = False
        self.is_due = False

    def add(self, answers: Sequence[Answer], effects: Sequence[Any]) -> None:
        """Let them go when all that is appended by now is committed: perhaps at once."""
        end_offset = self._log.end_offset
        if not self._deferred:
            if self._log.committed_offset >= end_offset:
                self._let_go(answers, effects)
                return
            failure = self._log.failure
            if failure is not None:
                fail_all(answers, failure)
                return
            self._log.watch(self.release)
        assert not self._deferred or self._deferred[-1].end_offset <= end_offset
        is_patient = self._errors.late is None
        give_up_at = None if is_patient else self._clock.monotonic() + self._timeout_s
        self._deferred.append(_Deferred(end_offset, give_up_at, answers, effects))
        if self._timeout is None and not is_patient:
            loop = asyncio.get_running_loop()
            self._timeout = loop.call_later(self._timeout_s, self._on_timeout)

    def release(self) -> None:
        """Let go what is committed."""
        if self.is_held:
            self.is_due = True
            return
        self.is_due = False
        committed_offset = self._log.committed_offset
        while self._deferred and self._deferred[0].end_offset <= committed_offset:
            deferred = self._deferred.popleft()
            # Effects may bring about more records.
            self._let_go(deferred.answers, deferred.effects)
        failure = self._log.failure
        if failure is not None:
            # What waits will never be committed here.
            self._fail_all(failure)
        if not self._deferred:
            self._log.unwatch(self.release)

    def close(self) -> None:
        """Tell all who wait that this node leads no more; the effects are somebody else's now."""
        self._log.unwatch(self.release)
        if self._timeout is not None:
            self._timeout.cancel()
            self._timeout = None
        self.is_due = False
        self._fail_all(KafkaError(self._errors.resigned))

    def _fail_all(self, error: KafkaError) -> None:
        deferred, self._deferred = self._deferred, deque()
        for each in deferred:
            fail_all(each.answers, error)

    def _let_go(self, answers: Sequence[Answer], effects: Sequence[Any]) -> None:
        for token, response in answers:
            token.resolve(response)
        for effect in effects:
            self._on_effect(effect)

    def _on_timeout(self) -> None:
        """Give up answers that have waited too long."""
        self._timeout = None
        assert self._errors.late is not None
        late = KafkaError(self._errors.late)
        now = self._clock.monotonic()
        waiting: deque[_Deferred] = deque()
        next_at: float | None = None
        for deferred in self._deferred:
            give_up_at = deferred.give_up_at
            if give_up_at is None:
                waiting.append(deferred)
            elif give_up_at > now:
                waiting.append(deferred)
                next_at = min(next_at or give_up_at, give_up_at)
            else:
                fail_all(deferred.answers, late)
                if deferred.effects:
                    waiting.append(deferred._replace(give_up_at=None, answers=()))
        self._deferred = waiting
        if next_at is not None:
            self._timeout = asyncio.get_running_loop().call_later(next_at - now, self._on_timeout)
        if not waiting:
            self._log.unwatch(self.release)


def fail_all(answers: Iterable[Answer], error: KafkaError) -> None:
    """Tell everybody whose answer this would have been what went wrong."""
    for token, _ in answers:
        token.fail(error)
