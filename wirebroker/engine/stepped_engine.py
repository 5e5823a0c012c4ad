"""An engine with interruptible operations, as the controller's check many partitions.

    run_in_steps(operation) --> its turn --> in slices --> still leading? --> as in engine.py

Operations run one after the other: each sees all earlier records, and nothing is appended between
its beginning and its result. Other tasks run in between, so the node may resign or the log may fail
meanwhile; the operation then only raises an error.

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
    from wirebroker.engine.committed_responses import ResponseErrors


class SteppedEngine(Engine[MachineT]):
    """An engine that runs operations in steps. Its timers have effects but no records."""

    __slots__ = ("_is_draining", "_slices", "_turn")

    def __init__(
        self,
        machine: MachineT,
        log: MachineLog,
        clock: Clock,
        *,
        errors: ResponseErrors,
        on_effect: Callable[[Engine[MachineT], Any], None],
    ) -> None:
        super().__init__(machine, log, clock, errors=errors, on_effect=on_effect)
        self._turn = asyncio.Lock()  # held by the running operation
        self._slices = Slices(clock)
        self._is_draining = False

    async def run_in_steps(
        self, operation: Callable[[MachineT, Token, Moment], Steps[Result]], token: Token
    ) -> None:
        """Run an operation, which appends nothing, in its turn; its token receives the response.

        Raises:
            KafkaError: From the operation, or because this node has resigned or the log has failed.
                Nothing has changed.
        """
        async with self._turn:
            # Many small operations in a row must not block the loop either.
            await self._slices.turn()
            self._check_serving()
            now = self.now()
            steps = operation(self.machine, token, now)
            result = await Slices(self._clock).run(steps)
            self._check_serving()
            self.carry_out(result, now)
            self._arm(now.monotonic_ms)

    async def drain(self) -> None:
        """Finish running operations and refuse new ones, before `close`."""
        async with self._turn:
            self._is_draining = True

    def _check_serving(self) -> None:
        if self.is_closed or self._is_draining:
            raise KafkaError(self._errors.resigned)
        failure = self.log.failure
        if failure is not None:
            raise failure
