"""Run `async def test_…` on a new event loop, and check that no task is left.

    async def test_a_response_arrives():
        async with connected(server) as client: ...

The loop is the broker's kind; in compat_tests and spark_it, whose tests are clients, it is
asyncio's.

A test fails if it exceeds PATIENCE_S (pytest.mark.patience(SECONDS) overrides it), is cancelled,
or leaves running tasks; the failure lists each task and the line where it waits. Tests that
hypothesis repeats are not coroutine functions; each example calls `on_a_loop`.
"""

from __future__ import annotations

import asyncio
import inspect
import io
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from wirebroker.net.loop_watch import LoopWatch

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable

_Result = TypeVar("_Result")

# Enough for a busy machine, and less than the timeout of pytest-timeout (pyproject.toml), which
# does not report tasks.
PATIENCE_S = 240.0
# Turns of the loop in which tasks may end after the test.
_LAST_TURNS = 10


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    marker = pyfuncitem.get_closest_marker("patience")
    names = pyfuncitem._fixtureinfo.argnames
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    patience_s = PATIENCE_S if marker is None else marker.args[0]
    is_ours = pyfuncitem.nodeid.startswith("tests/")
    on_a_loop(pyfuncitem.obj(**arguments), patience_s=patience_s, is_brokers=is_ours)
    return True


def on_a_loop(
    test: Coroutine[Any, Any, _Result],
    *,
    patience_s: float = PATIENCE_S,
    is_brokers: bool = True,
) -> _Result:
    """Run a coroutine on a new loop and return its result.

    Args:
        test: The coroutine.
        patience_s: Its timeout.
        is_brokers: Whether to use the broker's kind of loop instead of asyncio's.

    Raises:
        pytest.fail.Exception: It timed out, was cancelled or left running tasks.
    """
    factory = LoopWatch().new_event_loop if is_brokers else None
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(_watched(test, patience_s))


async def _watched(test: Coroutine[Any, Any, _Result], patience_s: float) -> _Result:
    current_task = asyncio.current_task()
    task = asyncio.create_task(test, name="test")
    done, _ = await asyncio.wait((task,), timeout=patience_s)
    if not done:
        stacks = _stacks(asyncio.all_tasks() - {current_task})
        pytest.fail(f"the test still waits after {patience_s:g} s\n{stacks}", pytrace=False)
    if task.cancelled():
        pytest.fail("the test was cancelled", pytrace=False)
    result = task.result()
    for _ in range(_LAST_TURNS):
        remaining = asyncio.all_tasks() - {current_task}
        if not remaining:
            return result
        await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop is what is meant
    pytest.fail(f"tasks are left behind:\n{_stacks(remaining)}", pytrace=False)


def _stacks(tasks: Iterable[asyncio.Task[Any]]) -> str:
    text = io.StringIO()
    for task in sorted(tasks, key=lambda task: task.get_name()):
        task.print_stack(file=text)
    return text.getvalue()
