"""An event loop whose clock moves instead of waiting, and processes that can be killed or stopped.

    select(timeout)      moves the time by the timeout: a minute of waiting costs microseconds
    run_in_executor      runs the job on the loop, some milliseconds later
    Process              whatever is begun within it (tasks, timers, jobs) belongs to it, by a
                         context variable; it can be killed or stopped between any two steps

The order of events depends on the seed alone. A dead process takes no further step, and what is
left of it changes nothing, as after kill -9.
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
# Jobs of threads take up to this long, a few of them very long.
_LONGEST_JOB_S = 0.01
_SLOW_JOB_S = 2.0
_SLOW_JOBS = 0.03
# When the world begins: some time in 2023.
_EPOCH_MS = 1_700_000_000_000


class KilledError(BaseException):
    """Unwinds the step in which a process dies."""


class DeadlockError(Exception):
    """Nobody will ever do anything again."""


class Process:
    """Something that dies, or is stopped, as a whole.

    Attributes:
        name: For traces.
        is_alive: Whether it takes steps.
        steps: How many callbacks of the loop it has run.
        dies_at_step: It is killed after that many.
        on_death: Called when it dies.
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
        # By number, so that their order is always the same.
        self._tasks: weakref.WeakValueDictionary[int, asyncio.Task[Any]] = (
            weakref.WeakValueDictionary()
        )
        self._task_count = 0
        self._context = contextvars.copy_context()
        self._context.run(_process.set, self)

    def spawn(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Begin a task within the process."""
        return self.within(self.loop.create_task, coroutine)

    def within(self, function: Callable[[*_Arguments], _Result], *args: *_Arguments) -> _Result:
        """Do something at once that belongs to the process."""
        return self._context.copy().run(function, *args)

    def call_later(self, delay_s: float, callback: Callable[..., Any], *args: Any) -> None:
        """Have the process do something later, if it is still alive then."""
        self.loop.call_later(delay_s, callback, *args, context=self._context.copy())

    def kill(self) -> None:
        """Let it take no further step."""
        if self.is_alive:
            self.is_alive = False
            self.on_death()
            self._bury_all()
            self._backlog.clear()

    def stop(self) -> None:
        """Let it take no steps until it goes on (SIGSTOP)."""
        self.is_stopped = True

    def go_on(self) -> None:
        """Do what has piled up, in order (SIGCONT)."""
        self.is_stopped = False
        backlog, self._backlog = self._backlog, []
        for step in backlog:
            if step.handle is not None and not step.handle.cancelled():
                self.loop.resume(step)

    def adopt(self, task: asyncio.Task[Any]) -> None:
        """Note that a task belongs to the process."""
        self._task_count += 1
        self._tasks[self._task_count] = task
        if not self.is_alive:
            self._bury(task)

    def _bury_all(self) -> None:
        for task in list(self._tasks.values()):
            self._bury(task)

    def _bury(self, task: asyncio.Task[Any]) -> None:
        """Close a coroutine now: the garbage collector would do it at any time.

        Its `finally` blocks run, and may wait even so; nobody sees what they do any more.
        """
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        coroutine: Any = task.get_coro()
        context = self._context.copy()
        while inspect.getcoroutinestate(coroutine) in _CLOSABLE:
            with contextlib.suppress(RuntimeError):
                context.run(coroutine.close)

    def run(self, step: _Step) -> None:
        """Take a step, or keep it for later."""
        if not self.is_alive:
            return
        if self.is_stopped:
            self._backlog.append(step)
            return
        self.steps += 1
        with contextlib.suppress(KilledError):
            step.callback(*step.args)
        if not self.is_alive:
            # What died in this step could not be closed from within.
            self._bury_all()
        if self.dies_at_step is not None and self.steps >= self.dies_at_step:
            self.kill()


class _Step:
    """A callback of a process."""

    __slots__ = ("args", "callback", "handle", "process")

    def __init__(self, process: Process, callback: Callable[..., Any], args: Any) -> None:
        self.process = process
        self.callback = callback
        self.args = args
        self.handle: asyncio.Handle | None = None

    def __call__(self) -> None:
        self.process.run(self)


class _Future(asyncio.Future[Any]):
    """A future that knows to whom it belongs."""

    process: Process | None = None


class _Task(asyncio.Task[Any]):
    """A task that knows to whom it belongs."""

    process: Process | None = None


def is_of_the_dead(context: dict[str, Any]) -> bool:
    """Tell whether what an exception handler is told is about a process that is no more."""
    process = getattr(context.get("future") or context.get("task"), "process", None)
    return process is not None and not process.is_alive


class SimulatedLoop(asyncio.BaseEventLoop):
    """The loop of one world. It waits for nothing and needs no sockets."""

    def __init__(self, random: Random) -> None:
        super().__init__()
        self._selector = self
        self._clock_resolution = 1e-7
        self._now = 0.0
        self._random = random
        # How many jobs of threads are very long: of slow disks, more.
        self.slow_jobs = _SLOW_JOBS
        self.set_task_factory(self._make_task)

    # -- time --------------------------------------------------------------------------------

    def time(self) -> float:
        return self._now

    def select(self, timeout: float | None) -> list[Any]:
        """Move the clock to the next timer."""
        if timeout is None:
            raise DeadlockError
        self._now += max(0.0, timeout)
        return []

    def _process_events(self, event_list: list[Any]) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """Nobody waits."""

    def add_reader(  # type: ignore[override]  # typeshed binds args to the callback
        self, fd: Any, callback: Callable[..., Any], *args: Any
    ) -> None:
        """Nothing ever comes: connections are in memory."""

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
        """Run a step that was kept; its former handle can still cancel it."""
        kept = step.handle

        def run() -> None:
            if kept is None or not kept.cancelled():
                step()

        super().call_soon(run, context=getattr(kept, "_context", None))

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
        """Run a job in one piece, later; what happens meanwhile is the seed's choice."""
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
    except Exception as error:  # noqa: BLE001 - whoever waits for the job gets it
        future.set_exception(error)
    else:
        future.set_result(result)


class SimulatedClock:
    """The loop's time; the wall clock goes with it."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop

    def now_ms(self) -> int:
        return _EPOCH_MS + int(self._loop.time() * 1000)

    def monotonic(self) -> float:
        return self._loop.time()


class SkewedClock(SimulatedClock):
    """A clock whose wall time was set wrong, and is too quick or too slow.

    Monotonic time is the loop's own, as on any machine.
    """

    def __init__(self, loop: SimulatedLoop, *, rate: float, ahead_ms: int) -> None:
        super().__init__(loop)
        self._rate = rate
        self._ahead_ms = ahead_ms

    def now_ms(self) -> int:
        return _EPOCH_MS + self._ahead_ms + int(self.monotonic() * self._rate * 1000)
