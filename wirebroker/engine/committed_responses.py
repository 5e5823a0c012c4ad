"""Responses and effects that wait, in order, until their records are committed.

The records of a response that timed out may still be committed later.

Source: Kafka's CoordinatorRuntime (DeferredEventQueue, CoordinatorTimer of a write).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence  # noqa: TC003 - compiled tuples look for it
from typing import TYPE_CHECKING, Any, NamedTuple

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.outcome import Answer  # noqa: TC001 - compiled tuples look for it

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from wirebroker.base.clock import Clock
    from wirebroker.coordinator.machine import MachineLog


class ResponseErrors(NamedTuple):
    """Error codes for requests that fail."""

    # This node is no longer the leader; the client finds the new one.
    resigned: ErrorCode
    disk: ErrorCode
    # The response timed out. None: the caller has its own timeout.
    late: ErrorCode | None = None


class _Deferred(NamedTuple):
    end_offset: int
    # None: no timeout, or it has passed and only the effects are left.
    give_up_at: float | None
    answers: Sequence[Answer]
    effects: Sequence[Any]


class CommittedResponses:
    """The waiting responses and effects of one log.

    Attributes:
        is_held: Whether nothing may be released now; afterwards the caller checks `is_due`.
        is_due: Whether `release` was called meanwhile.
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

    # _deferred ascends by end_offset; the log is watched while it is not empty.

    def __init__(
        self,
        log: MachineLog,
        clock: Clock,
        *,
        timeout_s: float,
        errors: ResponseErrors,
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

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits."""
        return not self._deferred

    def add(self, answers: Sequence[Answer], effects: Sequence[Any]) -> None:
        """Release them once everything appended by now is committed."""
        end_offset = self._log.end_offset
        if not self._deferred:
            if self._log.committed_offset >= end_offset:
                self._send(answers, effects)
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
        """Send the committed responses."""
        if self.is_held:
            self.is_due = True
            return
        self.is_due = False
        committed_offset = self._log.committed_offset
        while self._deferred and self._deferred[0].end_offset <= committed_offset:
            deferred = self._deferred.popleft()
            # Effects may append more records.
            self._send(deferred.answers, deferred.effects)
        failure = self._log.failure
        if failure is not None:
            # The rest will never be committed here.
            self._fail_all(failure)
        if not self._deferred:
            self._log.unwatch(self.release)

    def close(self) -> None:
        """Fail all responses because of the resignation; drop the effects."""
        self._log.unwatch(self.release)
        if self._timeout is not None:
            self._timeout.cancel()
            self._timeout = None
        self.is_due = False
        self._fail_all(KafkaError(self._errors.resigned))

    def _fail_all(self, error: KafkaError) -> None:
        deferred, self._deferred = self._deferred, deque()
        for waiting in deferred:
            fail_all(waiting.answers, error)

    def _send(self, answers: Sequence[Answer], effects: Sequence[Any]) -> None:
        for token, response in answers:
            token.resolve(response)
        for effect in effects:
            self._on_effect(effect)

    def _on_timeout(self) -> None:
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
    """Fail all responses with an error."""
    for token, _ in answers:
        token.fail(error)
