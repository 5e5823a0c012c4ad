"""Runs one machine over its log: append, take over, answer when committed; and its timers.

    run(operation) --> Result --> append --> take over --> answers and effects, once the log
                                    |                      has committed them
                                    '-- failed --> on_failure, every other waiter gets an error

Nothing here awaits: one result is carried through in one go, so no request sees another's half-done
work. The engine knows neither records nor answers: a coordinator's shard over the partition of an
internal topic (partition_log.py) and the controller over the metadata log (controller_log.py) are
the same to it; the controller's operations take steps before (stepped_engine.py).

An engine serves one term of a leadership: from the election of its log, when all is loaded, until
`close` at the resignation. The next term has another engine and another machine.

Source: Kafka's CoordinatorRuntime.CoordinatorContext, QuorumController's event queue.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from wirebroker.base.clock import next_turn
from wirebroker.codecs.errors import ErrorCode, KafkaError, without_frames
from wirebroker.codecs.records.batch import NO_PRODUCER_ID
from wirebroker.coordinator.machine import Machine
from wirebroker.coordinator.outcome import Moment
from wirebroker.engine.committed_answers import AnswerErrors, CommittedAnswers, fail_all

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.base.clock import Clock
    from wirebroker.coordinator.machine import MachineLog, Result
    from wirebroker.coordinator.outcome import Token
    from wirebroker.storage.log.producers.verification import VerificationGuard

logger = logging.getLogger(__name__)

MachineT = TypeVar("MachineT", bound=Machine)

# How long timers that are due may hold the loop before others have a turn.
_TIMER_SLICE_S: Final = 0.005

COORDINATOR_ERRORS: Final = AnswerErrors(
    resigned=ErrorCode.NOT_COORDINATOR,
    disk=ErrorCode.NOT_COORDINATOR,
    late=ErrorCode.COORDINATOR_NOT_AVAILABLE,
)


class Engine(Generic[MachineT]):
    """One machine at work.

    Attributes:
        machine: What it runs; others may read it.
        log: The machine's.
        is_closed: Whether this node leads the log no more; then nothing is run.
    """

    __slots__ = (
        "_answers",
        "_armed",
        "_armed_ms",
        "_clock",
        "_errors",
        "_is_refused",
        "is_closed",
        "log",
        "machine",
    )

    def __init__(
        self,
        machine: MachineT,
        log: MachineLog,
        clock: Clock,
        *,
        commit_timeout_ms: int = 5_000,
        errors: AnswerErrors = COORDINATOR_ERRORS,
        on_effect: Callable[[Engine[MachineT], Any], None] | None = None,
    ) -> None:
        self.machine = machine
        self.log = log
        self.is_closed = False
        self._clock = clock
        self._errors = errors
        # Whether the last append was refused: one line says so, however many there are.
        self._is_refused = False

        def bring_about(effect: Any) -> None:
            assert on_effect is not None, "a machine with effects has somebody for them"
            on_effect(self, effect)

        self._answers = CommittedAnswers(
            log, clock, timeout_s=commit_timeout_ms / 1000, errors=errors, on_effect=bring_about
        )
        self._armed: asyncio.TimerHandle | None = None
        self._armed_ms = 0

    def now(self) -> Moment:
        """Return what time it is."""
        return Moment(self._clock.now_ms(), int(self._clock.monotonic() * 1000))

    def run(
        self,
        operation: Callable[[MachineT, Token, Moment], Result],
        token: Token = None,
        *,
        guard: VerificationGuard | None = None,
    ) -> None:
        """Carry out an operation of the machine.

        Args:
            operation: Gives the result.
            token: Handed to the operation: whoever waits for an answer.
            guard: If the records may begin a producer's transaction here.

        Raises:
            KafkaError: What the operation raised; then it has changed nothing.
        """
        clock = self._clock
        moment = Moment(clock.now_ms(), int(clock.monotonic() * 1000))
        self.carry_out(operation(self.machine, token, moment), moment, guard=guard)
        self._arm(moment.monotonic_ms)

    def carry_out(
        self, result: Result, moment: Moment, *, guard: VerificationGuard | None = None
    ) -> None:
        """Append, take over and answer."""
        assert not self.is_closed, f"{self.log.name} is led no more"
        error = self._append_all(result, moment, guard) if result.records else None
        if error is not None:
            self._fail(result, error, moment)
        elif result.answers or result.effects:
            self._answers.add(result.answers, result.effects)
        if self._answers.is_due:
            self._answers.release()

    def close(self) -> None:
        """Give the machine up: whoever waits is told to look for somebody else."""
        assert not self.is_closed, f"{self.log.name} is given up once"
        self.is_closed = True
        if self._armed is not None:
            self._armed.cancel()
        for token, response in self.machine.on_unloaded().answers:
            token.resolve(response)
        self._answers.close()

    def _append_all(
        self, result: Result, moment: Moment, guard: VerificationGuard | None
    ) -> KafkaError | OSError | None:
        """Append the records and take them over; return what has prevented it."""
        producer = result.producer
        producer_id = NO_PRODUCER_ID if producer is None else producer.producer_id
        log, take_over = self.log, self.machine.take_over
        pieces = (result.records,) if result.is_atomic else log.cut(result.records)
        # An append may commit what was waited for, whose effects may bring about more records: they
        # come when those of this append are taken over, so that the order is that of the log.
        self._answers.is_held = True
        try:
            for records in pieces:
                log.append(records, moment, producer, guard)
                take_over(records, producer_id)
        except (KafkaError, OSError) as error:
            return without_frames(error)
        finally:
            self._answers.is_held = False
        self._is_refused = False
        return None

    def _fail(self, result: Result, error: KafkaError | OSError, moment: Moment) -> None:
        if isinstance(error, OSError):
            message = f"{self.log.name} cannot be written: {error}"
            told = KafkaError(self._errors.disk, message)
        else:
            told = error
        if not self._is_refused:
            self._is_refused = True
            logger.warning("records could not be appended to %s: %s", self.log.name, told)
        if result.on_failure is not None:
            self.carry_out(result.on_failure(told.code, moment), moment)
        fail_all(result.answers, told)
        if isinstance(error, OSError):
            self.log.disk_failed(error)

    # -- timers ------------------------------------------------------------------------------

    def _arm(self, now_ms: int) -> None:
        """Look at the timers when the next one is due."""
        next_ms = self.machine.timers.next_ms()
        if next_ms is None or self.is_closed:
            return
        if self._armed is not None:
            if self._armed_ms <= next_ms:
                return
            self._armed.cancel()
        self._armed_ms = next_ms
        delay_s = max(0, next_ms - now_ms) / 1000
        self._armed = asyncio.get_running_loop().call_later(delay_s, self._on_time)

    async def catch_up(self) -> None:
        """Do what is due at once, because the clock was moved."""
        while not self.is_closed:
            next_ms = self.machine.timers.next_ms()
            if next_ms is None or next_ms > self.now().monotonic_ms:
                return
            if self._armed is not None:
                self._armed.cancel()
            self._on_time()
            await next_turn()

    def _on_time(self) -> None:
        self._armed = None
        give_up_at = self._clock.monotonic() + _TIMER_SLICE_S
        while not self.is_closed:
            moment = self.now()
            event = self.machine.timers.take_due(moment.monotonic_ms)
            if event is None:
                break
            self.carry_out(self.machine.on_timer(event, moment), moment)
            if self._clock.monotonic() >= give_up_at:
                break
        self._arm(self.now().monotonic_ms)
