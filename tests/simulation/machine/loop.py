"""An event loop with a simulated clock, and processes that can be killed or stopped.

    select(timeout)      advances the time by the timeout without waiting
    run_in_executor      runs the job on the loop, some milliseconds later
    Process              owns the tasks, timers and jobs begun within it, by a context variable;
                         it can be killed or stopped between any two steps

The order of events depends on the seed alone. A dead process takes no further step, and its
remains change nothing, as after kill -9.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import weakref
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from random import Random

_Result = TypeVar("_Result")
_Arguments = TypeVarTuple("_Arguments")

_process: contextvars.ContextVar[Process | None] = contextvars.ContextVar("process", default=None)

_CLOSABLE = {inspect.CORO_CREATED, inspect.CORO_SUSPENDED}
# Durations of thread jobs: the normal maximum, that of slow ones, and the share of slow ones.
_LONGEST_JOB_S = 0.01
_SLOW_JOB_S = 2.0
_SLOW_JOBS = 0.03
# Start of the simulated time, in 2023.
_EPOCH_MS = 1_700_000_000_000


class KilledError(BaseException):
    """Unwinds the step in which a process dies."""


class DeadlockError(Exception):
    """No callback or timer is left to run."""


class Process:
    """A unit that is killed or stopped as a whole.

    Attributes:
        name: For traces.
        steps: The number of loop callbacks that it has run.
        dies_at_step: The step at which it is killed.
    """

    def __init__(self, loop: SimulatedLoop, name: str) -> None:
        self.loop = loop
        self.name = name
        self.is_alive = True
        self.steps = 0
        self.dies_at_step: int | None = None
        self.on_death: Callable[[], None] = lambda: None
        self.is_stopped = False
        self._backlog: list[_Step] = []
        # By number, for a deterministic order.
        self._tasks: weakref.WeakValueDictionary[int, asyncio.Task[Any]] = (
            weakref.WeakValueDictionary()
        )
        self._task_count = 0
        self._context = contextvars.copy_context()
        self._context.run(_process.set, self)

    def spawn(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        return self.within(self.loop.create_task, coroutine)

    def within(self, function: Callable[[*_Arguments], _Result], *args: *_Arguments) -> _Result:
        return self._context.copy().run(function, *args)

    def call_later(self, delay_s: float, callback: Callable[..., Any], *args: Any) -> None:
        self.loop.call_later(delay_s, callback, *args, context=self._context.copy())

    def kill(self) -> None:
        if self.is_alive:
            self.is_alive = False
            self.on_death()
            self._bury_all()
            self._backlog.clear()

    def stop(self) -> None:
        """Suspend the process (SIGSTOP)."""
        self.is_stopped = True

    def go_on(self) -> None:
        """Run the steps that have piled up, in order (SIGCONT)."""
        self.is_stopped = False
        backlog, self._backlog = self._backlog, []
        for step in backlog:
            if step.handle is not None and not step.handle.cancelled():
                self.loop.resume(step)

    def adopt(self, task: asyncio.Task[Any]) -> None:
        self._task_count += 1
        self._tasks[self._task_count] = task
        if not self.is_alive:
            self._bury(task)

    def _bury_all(self) -> None:
        for task in list(self._tasks.values()):
            self._bury(task)

    def _bury(self, task: asyncio.Task[Any]) -> None:
        """Close a coroutine now, not at the garbage collector's unpredictable time.

        Its `finally` blocks run and may even wait, but have no effect.
        """
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        coroutine: Any = task.get_coro()
        context = self._context.copy()
        while inspect.getcoroutinestate(coroutine) in _CLOSABLE:
            with contextlib.suppress(RuntimeError):
                context.run(coroutine.close)

    def run(self, step: _Step) -> None:
        """Take a step, or keep it while stopped."""
        if not self.is_alive:
            return
        if self.is_stopped:
            self._backlog.append(step)
            return
        self.steps += 1
        with contextlib.suppress(KilledError):
            step.callback(*step.args)
        if not self.is_alive:
            # Coroutines of this step could not be closed from within it.
            self._bury_all()
        if self.dies_at_step is not None and self.steps >= self.dies_at_step:
            self.kill()


class _Step:
    __slots__ = ("args", "callback", "handle", "process")

    def __init__(self, process: Process, callback: Callable[..., Any], args: Any) -> None:
        self.process = process
        self.callback = callback
        self.args = args
        self.handle: asyncio.Handle | None = None

    def __call__(self) -> None:
        self.process.run(self)


class _Future(asyncio.Future[Any]):
    process: Process | None = None


class _Task(asyncio.Task[Any]):
    process: Process | None = None


def is_of_the_dead(context: dict[str, Any]) -> bool:
    """Return whether an exception handler's context belongs to a dead process."""
    process = getattr(context.get("future") or context.get("task"), "process", None)
    return process is not None and not process.is_alive


class SimulatedLoop(asyncio.BaseEventLoop):
    """The loop of one world, which never waits and needs no sockets."""

    def __init__(self, random: Random) -> None:
        super().__init__()
        self._selector = self
        self._clock_resolution = 1e-7
        self._now = 0.0
        self._random = random
        # Share of slow thread jobs; higher for slow disks.
        self.slow_jobs = _SLOW_JOBS
        self.set_task_factory(self._make_task)

    # -- time --------------------------------------------------------------------------------

    def time(self) -> float:
        return self._now

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise DeadlockError
        self._now += max(0.0, timeout)
        return []

    def _process_events(self, event_list: list[Any]) -> None:
        """Do nothing: there are no I/O events."""

    def _write_to_self(self) -> None:
        """Do nothing: the loop never blocks."""

    def add_reader(  # type: ignore[override]  # typeshed binds args to the callback
        self, fd: Any, callback: Callable[..., Any], *args: Any
    ) -> None:
        """Do nothing: connections are in memory."""

    def remove_reader(self, fd: Any) -> bool:
        return True

    # -- processes ---------------------------------------------------------------------------

    def call_soon(  # type: ignore[override]
        self,
        callback: Callable[..., Any],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        step = self._step(callback, args, context)
        if step is None:
            return super().call_soon(callback, *args, context=context)
        step.handle = super().call_soon(step, context=context)
        return step.handle

    def call_soon_threadsafe(  # type: ignore[override]
        self,
        callback: Callable[..., Any],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., Any],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        step = self._step(callback, args, context)
        if step is None:
            return super().call_at(when, callback, *args, context=context)
        handle = super().call_at(when, step, context=context)
        step.handle = handle
        return handle

    def resume(self, step: _Step) -> None:
        """Run a kept step; its original handle can still cancel it."""
        handle = step.handle

        def run() -> None:
            if handle is None or not handle.cancelled():
                step()

        super().call_soon(run, context=getattr(handle, "_context", None))

    def _step(
        self, callback: Callable[..., Any], args: Any, context: contextvars.Context | None
    ) -> _Step | None:
        process = _process.get() if context is None else context.get(_process)
        return None if process is None else _Step(process, callback, args)

    def _make_task(
        self, loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any
    ) -> asyncio.Task[Any]:
        task = _Task(coroutine, loop=loop, **options)
        context = options.get("context")
        task.process = _process.get() if context is None else context.get(_process)
        if task.process is not None:
            task.process.adopt(task)
        return task

    def create_future(self) -> asyncio.Future[Any]:
        future = _Future(loop=self)
        future.process = _process.get()
        return future

    # -- threads -----------------------------------------------------------------------------

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Run a job in one piece after a random delay."""
        del executor
        future = self.create_future()
        is_slow = self._random.random() < self.slow_jobs
        delay_s = self._random.uniform(0, _SLOW_JOB_S if is_slow else _LONGEST_JOB_S)
        self.call_later(delay_s, _run_job, future, func, args)
        return future


def _run_job(future: asyncio.Future[Any], func: Callable[..., Any], args: Any) -> None:
    if future.cancelled():
        return
    try:
        result = func(*args)
    except Exception as error:  # noqa: BLE001 - the job's waiter gets it
        future.set_exception(error)
    else:
        future.set_result(result)


class SimulatedClock:
    """The loop's time; the wall clock advances with it."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop

    def now_ms(self) -> int:
        return _EPOCH_MS + int(self._loop.time() * 1000)

    def monotonic(self) -> float:
        return self._loop.time()


class SkewedClock(SimulatedClock):
    """A clock whose wall time is offset and drifts.

    Monotonic time is the loop's own, as on any machine.
    """

    def __init__(self, loop: SimulatedLoop, *, rate: float, ahead_ms: int) -> None:
        super().__init__(loop)
        self._rate = rate
        self._ahead_ms = ahead_ms

    def now_ms(self) -> int:
        return _EPOCH_MS + self._ahead_ms + int(self.monotonic() * self._rate * 1000)
