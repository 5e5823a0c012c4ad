"""The engine of one state machine: it appends records, applies them, responds, and runs timers.

    run(operation) --> Result --> append --> apply --> responses and effects, once the log has
                                    |                  committed them
                                    '-- failed --> on_failure, every other waiter gets an error

`run` does not await, so no request sees a partial result. A long operation runs in steps; nothing
is appended between its beginning and its result:

    run_in_steps(operation) --> its turn --> in slices --> still leading? --> as above

Source: Kafka's CoordinatorRuntime.CoordinatorContext, QuorumController's event queue.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from wirebroker.base.clock import Slices, next_turn
from wirebroker.codecs.errors import ErrorCode, KafkaError, without_frames
from wirebroker.codecs.records.batch import NO_PRODUCER_ID
from wirebroker.coordinator.machine import Machine
from wirebroker.coordinator.outcome import Moment
from wirebroker.engine.committed_responses import CommittedResponses, ResponseErrors, fail_all

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.base.clock import Clock, Steps
    from wirebroker.coordinator.machine import MachineLog, Result
    from wirebroker.coordinator.outcome import Token
    from wirebroker.storage.log.producers.verification import VerificationGuard

logger = logging.getLogger(__name__)

MachineT = TypeVar("MachineT", bound=Machine)
ResultT = TypeVar("ResultT")

# The longest run of timers before other tasks get a turn.
_TIMER_SLICE_S: Final = 0.005

COORDINATOR_ERRORS: Final = ResponseErrors(
    resigned=ErrorCode.NOT_COORDINATOR,
    disk=ErrorCode.NOT_COORDINATOR,
    late=ErrorCode.COORDINATOR_NOT_AVAILABLE,
)


class Engine(Generic[MachineT]):
    """The runner of one state machine in one term of leadership.

    Attributes:
        is_closed: Whether this node has resigned; then nothing runs.
    """

    __slots__ = (
        "_answers",
        "_armed",
        "_armed_ms",
        "_clock",
        "_errors",
        "_is_draining",
        "_is_refused",
        "_slices",
        "_turn",
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
        errors: ResponseErrors = COORDINATOR_ERRORS,
        on_effect: Callable[[Engine[MachineT], Any], None] | None = None,
    ) -> None:
        self.machine = machine
        self.log = log
        self.is_closed = False
        self._clock = clock
        self._errors = errors
        # Only the first of several failed appends is logged.
        self._is_refused = False
        # Held by an operation in steps; nothing else is appended meanwhile.
        self._turn = asyncio.Lock()
        self._slices = Slices(clock)
        self._is_draining = False

        def bring_about(effect: Any) -> None:
            assert on_effect is not None, "a machine with effects needs on_effect"
            on_effect(self, effect)

        self._answers = CommittedResponses(
            log, clock, timeout_s=commit_timeout_ms / 1000, errors=errors, on_effect=bring_about
        )
        self._armed: asyncio.TimerHandle | None = None
        self._armed_ms = 0

    def now(self) -> Moment:
        """Return the time."""
        return Moment(self._clock.now_ms(), int(self._clock.monotonic() * 1000))

    def begin(self) -> None:
        """Begin to serve the loaded state; call it once, first."""
        now = self.now()
        self.carry_out(self.machine.on_loaded(now), now)
        self._arm(now.monotonic_ms)

    def run(
        self,
        operation: Callable[..., Result],
        *arguments: Any,
        token: Token = None,
        guard: VerificationGuard | None = None,
    ) -> None:
        """Run `operation(machine, *arguments, token, now)`; the token receives the response.

        `guard` is required if the records may begin a producer's transaction here.

        Raises:
            KafkaError: From the operation, which then has changed nothing.
        """
        self.run_with(operation, arguments, token, guard)

    def run_with(
        self,
        operation: Callable[..., Result],
        arguments: tuple[Any, ...],
        token: Token,
        guard: VerificationGuard | None = None,
    ) -> None:
        """Do the same with arguments in a tuple, for every request."""
        assert not self._turn.locked(), f"an operation of {self.log.name} runs in steps"
        clock = self._clock
        now = Moment(clock.now_ms(), int(clock.monotonic() * 1000))
        self._carry_out(operation(self.machine, *arguments, token, now), now, guard)
        self._arm(now.monotonic_ms)

    def run_softly(
        self, operation: Callable[..., ResultT | None], *arguments: Any
    ) -> ResultT | None:
        """Run `operation(machine, *arguments, now)`, which writes no records.

        Return its result; None if it has changed nothing, or if a response would have to wait for
        earlier records.
        """
        log = self.log
        if self.is_closed or self._turn.locked() or not self._answers.is_empty:
            return None
        if log.committed_offset < log.end_offset:
            return None
        now = self.now()
        result = operation(self.machine, *arguments, now)
        if result is not None:
            self._arm(now.monotonic_ms)
        return result

    async def run_in_steps(
        self, operation: Callable[[MachineT, Token, Moment], Steps[Result]], token: Token
    ) -> None:
        """Run an operation in its turn; its token receives the response.

        Raises:
            KafkaError: From the operation, or because this node has resigned or the log has failed.
                Nothing has changed.
        """
        await self._turn.acquire()
        try:
            # Many small operations in a row must not block the loop either.
            await self._slices.turn()
            self._check_serving()
            now = self.now()
            steps = operation(self.machine, token, now)
            result = await Slices(self._clock).run(steps)
            self._check_serving()
            self.carry_out(result, now)
        finally:
            # Here, because the next operation takes the turn before any other task.
            try:
                self._run_due()
            finally:
                self._turn.release()

    async def drain(self) -> None:
        """Finish operations that run in steps and refuse new ones, before `close`."""
        await self._turn.acquire()
        self._is_draining = True
        self._turn.release()

    def _check_serving(self) -> None:
        if self.is_closed or self._is_draining:
            raise KafkaError(self._errors.resigned)
        failure = self.log.failure
        if failure is not None:
            raise failure

    def carry_out(
        self, result: Result, now: Moment, *, guard: VerificationGuard | None = None
    ) -> None:
        """Append and apply a result's records; queue its responses."""
        self._carry_out(result, now, guard)

    def _carry_out(self, result: Result, now: Moment, guard: VerificationGuard | None) -> None:
        assert not self.is_closed, f"{self.log.name} is no longer led here"
        error = self._append_all(result, now, guard) if result.records else None
        if error is not None:
            self._fail(result, error, now)
        elif result.answers or result.effects:
            self._answers.add(result.answers, result.effects)
        if self._answers.is_due:
            self._answers.release()

    def close(self) -> None:
        """Resign: send the machine's last responses, and fail all waiting ones."""
        assert not self.is_closed, f"{self.log.name} is already closed"
        self.is_closed = True
        if self._armed is not None:
            self._armed.cancel()
        for token, response in self.machine.on_unloaded().answers:
            token.resolve(response)
        self._answers.close()

    def _append_all(
        self, result: Result, now: Moment, guard: VerificationGuard | None
    ) -> KafkaError | OSError | None:
        producer = result.producer
        producer_id = NO_PRODUCER_ID if producer is None else producer.producer_id
        log, apply = self.log, self.machine.apply
        pieces = (result.records,) if result.is_atomic else log.cut(result.records)
        # An append may commit earlier records, whose effects may append more. They wait until
        # these records are applied, to keep the order of the log.
        self._answers.is_held = True
        try:
            for records in pieces:
                log.append(records, now, producer, guard)
                apply(records, producer_id)
        except (KafkaError, OSError) as error:
            return without_frames(error)
        finally:
            self._answers.is_held = False
        self._is_refused = False
        return None

    def _fail(self, result: Result, error: KafkaError | OSError, now: Moment) -> None:
        if isinstance(error, OSError):
            message = f"{self.log.name} cannot be written: {error}"
            kafka_error = KafkaError(self._errors.disk, message)
        else:
            kafka_error = error
        if not self._is_refused:
            self._is_refused = True
            logger.warning("cannot append records to %s: %s", self.log.name, kafka_error)
        if result.on_failure is not None:
            self.carry_out(result.on_failure(kafka_error.code, now), now)
        fail_all(result.answers, kafka_error)
        if isinstance(error, OSError):
            self.log.disk_failed(error)

    def _arm(self, now_ms: int) -> None:
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
        """Run the due timers now, because the clock was moved."""
        while not self.is_closed:
            next_ms = self.machine.timers.next_ms()
            if next_ms is None or next_ms > self.now().monotonic_ms:
                return
            await self._turn.acquire()
            try:
                self._run_due()
            finally:
                self._turn.release()
            await next_turn()

    def _on_time(self) -> None:
        self._armed = None
        if not self._turn.locked():  # otherwise the operation runs them at its end
            self._run_due()

    def _run_due(self) -> None:
        if self._armed is not None:
            self._armed.cancel()
            self._armed = None
        give_up_at = self._clock.monotonic() + _TIMER_SLICE_S
        while not self.is_closed:
            now = self.now()
            event = self.machine.timers.take_due(now.monotonic_ms)
            if event is None:
                break
            self.carry_out(self.machine.on_timer(event, now), now)
            if self._clock.monotonic() >= give_up_at:
                break
        self._arm(self.now().monotonic_ms)
