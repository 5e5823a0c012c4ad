"""An engine whose operations may be interrupted: the controller's, which look at many partitions.

    run_in_steps(operation) --> its turn --> in slices --> still leading? --> as engine.py has it

Operations take turns: each sees all that those before it have appended, and nothing is appended
between its beginning and what comes of it. Everybody else of the loop is served in between; so a
resignation may come, or the log may fail: then nothing has happened but the error.

Source: Kafka's QuorumController (its event queue).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from wirebroker.base.clock import Slices
from wirebroker.codecs.errors import KafkaError
from wirebroker.engine.engine import Engine, MachineT

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.base.clock import Clock, Steps
    from wirebroker.coordinator.machine import MachineLog, Result
    from wirebroker.coordinator.outcome import Moment, Token
    from wirebroker.engine.committed_answers import AnswerErrors


class SteppedEngine(Engine[MachineT]):
    """One machine at work, in steps. Its timers bring about effects and no records."""

    __slots__ = ("_is_draining", "_slices", "_turn")

    def __init__(
        self,
        machine: MachineT,
        log: MachineLog,
        clock: Clock,
        *,
        errors: AnswerErrors,
        on_effect: Callable[[Engine[MachineT], Any], None],
    ) -> None:
        super().__init__(machine, log, clock, errors=errors, on_effect=on_effect)
        self._turn = asyncio.Lock()  # held by the operation that is running
        self._slices = Slices(clock)
        self._is_draining = False

    async def run_in_steps(
        self, operation: Callable[[MachineT, Token, Moment], Steps[Result]], token: Token
    ) -> None:
        """Carry out an operation in its turn; whoever waits is answered by its token.

        Args:
            operation: Gives the result in steps, and appends nothing.
            token: Handed to the operation.

        Raises:
            KafkaError: What the operation raised; that this node leads no more; why the log takes
                nothing. Nothing has changed.
        """
        async with self._turn:
            # Many small operations in a row must not hold the loop either.
            await self._slices.turn()
            self._check_serving()
            moment = self.now()
            steps = operation(self.machine, token, moment)
            result = await Slices(self._clock).run(steps)
            self._check_serving()
            self.carry_out(result, moment)
            self._arm(moment.monotonic_ms)

    async def drain(self) -> None:
        """Let what has begun come to its end, and take nothing more; `close` comes next."""
        async with self._turn:
            self._is_draining = True

    def _check_serving(self) -> None:
        if self.is_closed or self._is_draining:
            raise KafkaError(self._errors.resigned)
        failure = self.log.failure
        if failure is not None:
            raise failure
