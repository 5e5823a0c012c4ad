"""Starts the workers, restarts those that end, and stops them in order.

A worker that ends is restarted after half a second; the delay doubles up to 30 s, and a run of a
minute resets it. Worker 1, which runs the controller, starts first. It stops last, because the
controller moves the others' leaderships.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, Protocol

from wirebroker.base.clock import pause
from wirebroker.broker.workers.worker_process import how_it_ended

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from wirebroker.base.clock import Clock
    from wirebroker.broker.workers.orders import WorkerConfig

logger = logging.getLogger("wirebroker")

_FIRST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 30.0
_LONG_RUN_S: Final = 60.0


class RunningWorker(Protocol):
    """See worker_process.WorkerProcess."""

    async def ready_lines(self) -> list[str]:
        """See WorkerProcess."""
        ...

    async def ended(self) -> int:
        """See WorkerProcess."""
        ...

    def stop(self) -> None:
        """See WorkerProcess."""
        ...


class NotStartedError(Exception):
    """A worker ended before it served; it has logged the reason."""

    def __init__(self, status: int) -> None:
        super().__init__(f"a worker ended with status {status}")
        self.status = status


class Supervisor:
    """The workers of one command."""

    __slots__ = ("_clock", "_first", "_others", "_restart_tasks", "_running", "_start")

    def __init__(
        self,
        first: WorkerConfig,
        others: Sequence[WorkerConfig],
        *,
        start: Callable[[WorkerConfig], Awaitable[RunningWorker]],
        clock: Clock,
    ) -> None:
        self._first = first
        self._others = tuple(others)
        self._start = start
        self._clock = clock
        self._running: dict[int, RunningWorker] = {}
        self._restart_tasks: list[asyncio.Task[None]] = []

    async def start(self) -> dict[int, list[str]]:
        """Start all; return the ready lines by worker.

        Raises:
            NotStartedError: One ended; the others are stopped.
            OSError: A process cannot be started; the others are stopped.
        """
        lines: dict[int, list[str]] = {}
        try:
            lines[1] = await self._begin(self._first)
            # If one fails, the others must finish starting before they are stopped.
            results = await asyncio.gather(*map(self._begin, self._others), return_exceptions=True)
            for order, result in zip(self._others, results, strict=True):
                lines[order.worker] = _ready_lines(result)
        except BaseException:
            await self.stop()
            raise
        return lines

    async def stop(self) -> None:
        """Stop all, worker 1 last."""
        for keeper in self._restart_tasks:
            keeper.cancel()
        if self._restart_tasks:
            await asyncio.wait(self._restart_tasks)
        first = self._running.pop(1, None)
        for worker in self._running.values():
            worker.stop()
        await asyncio.gather(*(worker.ended() for worker in self._running.values()))
        if first is not None:
            first.stop()
            await first.ended()

    async def _begin(self, order: WorkerConfig) -> list[str]:
        worker = self._running[order.worker] = await self._start(order)
        lines = await worker.ready_lines()
        if not lines:
            del self._running[order.worker]
            raise NotStartedError(await worker.ended())
        keeper = asyncio.create_task(self._keep(order, worker), name=f"worker {order.worker}")
        self._restart_tasks.append(keeper)
        return lines

    async def _begin_again(self, order: WorkerConfig) -> RunningWorker | None:
        try:
            worker = self._running[order.worker] = await self._start(order)
        except OSError as error:
            logger.warning("cannot start worker %d: %s", order.worker, error)
            return None
        return worker

    async def _keep(self, order: WorkerConfig, worker: RunningWorker) -> None:
        """Restart a worker whenever it ends, until canceled."""
        pause_s = _FIRST_PAUSE_S
        while True:
            began = self._clock.monotonic()
            status = await worker.ended()
            if self._clock.monotonic() - began >= _LONG_RUN_S:
                pause_s = _FIRST_PAUSE_S
            logger.warning(
                "worker %d (node %d) %s: restarting it in %g s",
                order.worker,
                order.node_id,
                how_it_ended(status),
                pause_s,
            )
            again: RunningWorker | None = None
            while again is None:
                await pause(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
                again = await self._begin_again(order)
            worker = again


def _ready_lines(result: list[str] | BaseException) -> list[str]:
    if isinstance(result, BaseException):
        raise result
    return result
